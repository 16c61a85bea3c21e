import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { billPanel } from '../../src/daemon/http/bill.ts';
import { dangersPanel } from '../../src/daemon/http/dangers.ts';
import { wayOut } from '../../src/daemon/http/way-out.ts';
import { told } from '../../src/daemon/notices/notice.ts';
import { conditionOf } from '../../src/daemon/project/condition.ts';
import type { ProjectFacts } from '../../src/daemon/project/facts.ts';

const blocked = [
  {
    key: 'ips.web',
    verb: 'create',
    code: 'outcome_unknown',
    reason: 'the answer was lost',
    resolve: 'vdcsync resolve ips.web --adopt 5001 (if it is this) | vdcsync resolve ips.web --absent',
  },
];
const planWith = (more: object) =>
  ({ operations: [], blocked: [], warnings: [], ...more }) as unknown as Plan;

describe('daemon: ways out', () => {
  test('a command stands alone, to be copied; when to take it, and what is no command, are words', async () => {
    const shown = async (text: string) => String(await wayOut(text));
    const first = await shown('vdcsync resolve ips.web --adopt 5001 (if `this` is it)');
    expect(first).toContain('<span class="dim">if <code>this</code> is it</span>');
    expect(first).toContain('data-copy="vdcsync resolve ips.web --adopt 5001"');
    expect(await shown("vdcsync adopt ips.web 5001 -f 'my file.yaml' --state /x/state.db")).toContain(
      'data-copy="vdcsync adopt ips.web 5001 -f &#39;my file.yaml&#39; --state /x/state.db"',
    );
    expect(await shown('vdcsync adopt -f a.yaml --state "$VDCSYNC_STATE&state=7" ips.web 5001')).toContain(
      'data-copy="vdcsync adopt -f a.yaml --state &quot;$VDCSYNC_STATE&amp;state=7&quot; ips.web 5001"',
    );
    expect(await shown('write `prune: true` under `settings` (to have it deleted)')).toBe(
      '<div class="way">→ write <code>prune: true</code> under <code>settings</code> (to have it deleted)</div>',
    );
    expect(await shown('vdcsync resolve ips.web, as is said there; then vdcsync apply')).not.toContain(
      '<code',
    );
    expect(await shown('<b>`')).toBe('<div class="way">→ &lt;b&gt;</div>');
  });

  test('a backup of a server that is gone is billed, with the command that means this project', async () => {
    const leftBackups = [{ server: '9', key: 'servers.old', backups: ['2026-01-01T00:00:00Z'], at: 0 }];
    const known = { bindings: [], intents: [], leftBackups };
    const carry = (text: string) => text.replace('ignore 9', 'ignore 9 -f shop.yaml');
    const card = String(await dangersPanel({ known, carry } as unknown as ProjectFacts));
    expect(card).toContain('2026-01-01T00:00:00Z still exists and is billed');
    expect(card).toContain('data-copy="vdcsync ignore 9 -f shop.yaml"');
  });

  test("what is left alone as somebody else's is on the bill, with the way back", async () => {
    const known = { bindings: [], intents: [], vouched: { servers: [9], addresses: [] } };
    const facts = { known, carry: (text: string) => text } as unknown as ProjectFacts;
    const card = String(await billPanel(facts));
    expect(card).toContain('Ignored, and still billed: server 9');
    expect(card).toContain('data-copy="vdcsync ignore --undo ID"');
  });

  test('a notice has each of them by itself', () => {
    expect(told('blocked', planWith({ blocked }), undefined).resolve).toEqual([
      'vdcsync resolve ips.web --adopt 5001 (if it is this)',
      'vdcsync resolve ips.web --absent',
    ]);
  });

  test('what differs and can be changed by nothing is no convergence, and is told', () => {
    const plan = planWith({ warnings: [{ code: 'backup_policy_differs', key: 'servers.a', message: 'x' }] });
    expect(conditionOf({ plan, error: undefined, observing: false, holds: [] })).toBe('drifting');
    expect(told('drifting', plan, undefined).detail).toBe('servers.a: x');
  });
});
