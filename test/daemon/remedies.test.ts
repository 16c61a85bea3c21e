import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { command, outside, type Remedy, setting } from '../../src/core/remedy.ts';
import { billPanel } from '../../src/daemon/http/bill.ts';
import { idlePanel } from '../../src/daemon/http/dangers.ts';
import { Pager } from '../../src/daemon/http/pager.ts';
import { remediesHtml } from '../../src/daemon/http/remedies.ts';
import { notificationOf } from '../../src/daemon/notifications/notification.ts';
import { viewOf } from '../../src/view/build.ts';
import { conditionOf } from '../../src/view/condition.ts';
import type { ProjectFacts } from '../../src/view/facts.ts';
import { idleDaemon } from '../support/project.ts';

const blocked = [
  {
    key: 'ips.web',
    verb: 'create',
    code: 'outcome_unknown',
    reason: 'the answer was lost',
    remedies: [
      command('resolve', ['ips.web', '--adopt', '5001'], { when: 'if it is this' }),
      command('resolve', ['ips.web', '--absent']),
    ],
  },
];
const noProject = { id: 4711, daemon: idleDaemon };
const planWith = (more: object) =>
  ({ operations: [], blocked: [], warnings: [], ...more }) as unknown as Plan;

describe('src/daemon/http/remedies.ts', () => {
  test('shows a command on its own line for copying, with its condition', async () => {
    const shown = async (remedy: Remedy, flags = '') =>
      (await Promise.all(remediesHtml([remedy], flags))).map(String).join('');
    const first = await shown(
      command('resolve', ['ips.web', '--adopt', '5001'], { when: 'if `this` is it' }),
    );
    expect(first).toContain('<span class="dim">If <code>this</code> is it:</span>');
    expect(first).toContain('data-copy="vdcsync resolve ips.web --adopt 5001"');
    const flags = ` -f 'my file.yaml' --state "$VDCSYNC_STATE&state=7"`;
    expect(await shown(command('adopt', ['ips.web', '5001']), flags)).toContain(
      'data-copy="vdcsync adopt -f &#39;my file.yaml&#39; --state &quot;$VDCSYNC_STATE&amp;state=7&quot; ips.web 5001"',
    );
    const edited = await shown(setting('prune', true, 'to have it deleted'));
    expect(edited).toContain('→ Write <code>prune: true</code> under <code>settings</code>.');
    expect(edited).toContain('<span class="dim">To have it deleted:</span>');
    expect(await shown(outside('delete it', { next: [command('ignore', ['9'])] }))).toContain(
      'data-copy="vdcsync ignore 9"',
    );
    expect(await shown(outside('<b>`'))).toContain('→ &lt;b&gt;');
  });

  test('shows no apply command, because the daemon tries again by itself', async () => {
    const shown = async (remedy: Remedy) =>
      (await Promise.all(remediesHtml([remedy], ''))).map(String).join('');

    expect(await shown(command('apply', [], { when: 'once the cause is gone' }))).toContain(
      '→ vdcsync tries again by itself.',
    );
    const paying = await shown(outside('pay', { next: [command('apply')] }));
    expect(paying).toContain('→ Pay.');
    expect(paying).not.toContain('data-copy');
  });

  test('lists a backup of a deleted server as billed, with the command for this project', async () => {
    const holder = { is: 'leftover', formerKey: 'servers.old' };
    const claims = [
      { kind: 'backup', id: '2026-01-01T00:00:00Z', parentId: '9', identity: {}, holder, at: 0 },
    ];
    const known = { now: 90_000, bindings: [], intents: [], claims };
    const facts = { ...noProject, known, flags: ' -f shop.yaml' } as unknown as ProjectFacts;
    const card = String(await idlePanel(viewOf(facts), new Pager()));
    expect(card).toMatch(/2026-01-01T00:00:00Z<\/span> still exists and is billed/);
    expect(card).toContain('>for 90 s<');
    expect(card).toContain('data-copy="vdcsync ignore -f shop.yaml 9"');
  });

  test('lists an ignored server as billed, with the command that ends the ignoring', async () => {
    const holder = { is: 'ignored', by: 'operator' };
    const claims = [{ kind: 'server', id: '9', identity: {}, holder, at: 0 }];
    const known = { bindings: [], intents: [], claims };
    const facts = { ...noProject, known } as unknown as ProjectFacts;
    const card = String(await billPanel(viewOf(facts), new Pager()));
    expect(card).toContain('Released or ignored, and still billed: server 9');
    expect(card).toContain('data-copy="vdcsync ignore --undo ID"');
  });

  test('a notification lists each remedy separately', () => {
    expect(notificationOf('blocked', planWith({ blocked }), undefined).resolve).toEqual([
      'vdcsync resolve ips.web --adopt 5001 (if it is this)',
      'vdcsync resolve ips.web --absent',
    ]);
  });

  test('a blocked plan with operations that wait for approval ends with the approve command', () => {
    const cost = { known_monthly_delta: '0', monthly: { currency: null }, unpriced: [] };
    const operations = [{ key: 'ips.a', verb: 'create', kind: 'ip', changes: [] }];
    const plan = planWith({ blocked, operations, cost, digest: `sha256:${'ab'.repeat(32)}` });
    const { detail, resolve } = notificationOf('blocked', plan, undefined, '', true);
    expect(detail).toContain('A plan waits for your approval:\ncreate ips.a');
    expect(resolve.at(-1)).toBe('vdcsync approve abababababab');
  });

  test('a difference that no operation can remove is drift, and is reported', () => {
    const plan = planWith({ warnings: [{ code: 'backup_policy_differs', key: 'servers.a', message: 'x' }] });
    expect(conditionOf({ plan, error: undefined, observing: false, pauses: [] })).toBe('drifting');
    expect(notificationOf('drifting', plan, undefined).detail).toBe('servers.a: x');
  });
});
