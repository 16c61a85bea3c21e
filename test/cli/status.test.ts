import { describe, expect, test } from 'vitest';
import { statusText } from '../../src/cli/render/status-text.ts';
import { plainPaint } from '../../src/cli/terminal.ts';
import { startEmulator } from '../../src/emulator/http-server.ts';
import { viewOf } from '../../src/view/build.ts';
import type { KnownFacts, ProjectFacts } from '../../src/view/facts.ts';
import { resolving } from '../support/resolve.ts';
import { folderWith, inProcess, oneNetwork } from './run.ts';

const binding = (key: string, kind: string, id: string, more: object = {}) => ({
  key,
  kind,
  id,
  identity: {},
  applied: null,
  protect: false,
  keep: false,
  boundAt: 0,
  ...more,
});
const intent = (key: string, kind: string, phase: string, more: object = {}) => ({
  id: key,
  key,
  kind,
  verb: 'create',
  phase,
  createdAt: 0,
  lastSentAt: 0,
  ...more,
});

/** The content of a state, and what a refresh shows. */
interface Found extends Omit<KnownFacts, 'now'>, Pick<ProjectFacts, 'offline' | 'plan' | 'prices'> {
  readonly exists?: boolean;
  readonly ips?: NonNullable<ProjectFacts['world']>['ips'];
  readonly entries?: readonly object[];
  readonly at?: number;
}

const facts = {
  info: { lineage: 'x', serial: 3, createdAt: 0, projectId: 4711 },
  bindings: [
    binding('ips.web', 'ip', '5001', { identity: { address: '203.0.113.7' } }),
    binding('servers.a', 'server', '1', { protect: true }),
    binding('servers.b', 'server', '2', { tainted: 'its task failed' }),
  ],
  intents: [
    intent('servers.c', 'server', 'accepted', { answer: { id: '3', facts: {}, taskId: 'task-1' } }),
    intent('servers.d', 'server', 'blocked', {
      blocked: { code: 'ambiguous', reason: 'two candidates', candidates: ['4', '5'] },
    }),
  ],
  claims: [],
} as unknown as Found;

function statusOf({ exists = true, ips, at, entries, offline, plan, prices, ...state }: Found) {
  const desired = { resources: entries, settings: {} };
  const read = {
    id: 4711,
    place: { location: 'state.db', exists, changedAt: 1_000 },
    known: { ...state, now: 90_000 },
    ...{ plan, prices, refreshedAt: at },
    ...(offline === undefined ? {} : { offline }),
    ...(ips === undefined ? {} : { world: { ips, networks: [], observed: new Map() } }),
    ...(entries === undefined ? {} : { offer: { desired, files: [], commit: undefined } }),
  };
  return viewOf(read as unknown as ProjectFacts);
}

describe('src/cli/commands/status.ts', () => {
  test('backups of a server that is gone are billed, and told with the command that ends it', () => {
    const holder = { is: 'leftover', formerKey: 'servers.old' };
    const claims = [
      { kind: 'backup', id: '2026-01-01T00:00:00Z', parentId: '9', identity: {}, holder, at: 1_000 },
    ];
    const view = statusOf({ ...facts, offline: 'as --offline asks', claims } as unknown as Found);

    expect(view.billed.map(({ what }) => what)).toContain('backup 2026-01-01T00:00:00Z of server 9');
    expect(view.left_backups).toMatchObject([{ server_id: '9', key: 'servers.old' }]);
    expect(statusText(view, plainPaint)).toMatch(
      /1\. in the client area, delete the backups that you do not need\n\s+2\. vdcsync ignore 9\n/,
    );
  });

  test("what is left alone as somebody else's is told, with the way back", () => {
    const ignored = { holder: { is: 'ignored', by: 'operator' }, at: 1_000 };
    const claims = [
      { kind: 'server', id: '9', identity: {}, ...ignored },
      { kind: 'ip', id: '5009', identity: { address: '203.0.113.9' }, ...ignored },
    ];
    const view = statusOf({ ...facts, offline: 'as --offline asks', claims } as unknown as Found);

    expect(view.ignored).toEqual([
      { kind: 'server', id: '9', addresses: [] },
      { kind: 'ip', id: '5009', addresses: ['203.0.113.9'] },
    ]);
    expect(statusText(view, plainPaint)).toContain(
      'Released or ignored, and still billed\n  server 9, address 203.0.113.9\n    → vdcsync ignore --undo ID',
    );
  });

  test('`ignore --undo` ends the mark of an ignored resource', async () => {
    const api = await startEmulator({ speed: 60 });
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const env = { VDC_BASE_URL: api.baseUrl, VDC_TOKEN: api.emulator.tokens(4711).readWrite };
    const run = async (...args: string[]) => (await inProcess(args, { cwd, env })).stdout;
    const left = async () => JSON.parse(await run('status', '--format', 'json')).ignored;
    try {
      api.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
      await run('ignore', '2001');
      expect(await left()).toEqual([{ kind: 'server', id: '2001', addresses: ['203.0.113.10'] }]);
      expect(await run('ignore', '--undo', '2001')).toMatch(
        /^Server 2001 \(203\.0\.113\.10\) is no longer ignored/,
      );
      expect(await left()).toEqual([]);
    } finally {
      await api.close();
    }
  });

  test('of the state alone: what is recorded, blocked with its commands, in flight and billed already', () => {
    const view = statusOf({ ...facts, offline: 'as --offline asks' });
    expect(view.resources.map(({ key, standing }) => [key, standing])).toEqual([
      ['ips.web', 'unknown'],
      ['servers.a', 'unknown'],
      ['servers.b', 'tainted'],
    ]);
    expect(view.blocked).toEqual([
      {
        key: 'servers.d',
        since: '1970-01-01T00:00:00.000Z',
        verb: 'create',
        code: 'ambiguous',
        reason: 'two candidates',
        decision: true,
        resolve: expect.stringContaining('vdcsync resolve servers.d --adopt 4 '),
        remedies: resolving(
          expect.stringMatching(/ --adopt 4 .*\| .* --adopt 5 .*\| .* --adopt ID .*\| .* --absent /),
        ),
      },
    ]);
    expect(view.in_flight).toMatchObject([{ key: 'servers.c', phase: 'accepted', task_id: 'task-1' }]);
    expect(view.billed.map(({ what }) => what)).toEqual([
      'server 1',
      'server 2',
      'server 3',
      'address 203.0.113.7',
    ]);
    expect(view.idle).toBeNull();
  });

  test('a creation whose outcome is not known is never left out of the bill', () => {
    const doubt = { code: 'outcome_unknown', reason: '', candidates: [] };
    const unconfirmed = { why: 'lost', question: { stage: 'unasked' } };
    const intents = [
      intent('servers.gpu', 'server', 'blocked', { blocked: doubt, unconfirmed }),
      intent('ips.refused', 'ip', 'blocked', { blocked: { ...doubt, until: 'file' } }),
      intent('networks.free', 'network', 'blocked', { blocked: doubt, unconfirmed }),
    ];
    const open = { ...facts, bindings: [], intents, ips: [], at: 1 } as unknown as Found;
    expect(statusOf(open).unconfirmed_creations).toEqual(['servers.gpu']);
    const bill = (each: Found) => /^Billed: .*$/m.exec(statusText(statusOf(each), plainPaint))?.[0] ?? '';
    expect(bill(open)).toContain('servers.gpu');
    expect(bill({ ...open, intents: [] })).toBe('Billed: nothing');
    const found = {
      ...{ kind: 'server', id: '2002', identity: {}, at: 1 },
      holder: { is: 'found', key: 'servers.gone' },
    };
    expect(bill({ ...open, intents: [], claims: [found as never] })).toContain('Billed: 1 server');
    const warnings = [{ code: 'unlisted_servers', key: null, message: 'network "a" has 1 billed server' }];
    const shop = { id: 4711, name: 'shop', status: 'Active' };
    const plan = {
      project: shop,
      operations: [],
      blocked: [],
      warnings,
      cost: {
        left_billed: [],
        monthly: { known_before: '0', known_after: '0', currency: null, unknown: [] },
      },
    };
    expect(bill({ ...open, intents: [], plan } as unknown as Found)).toBe(
      'Billed: nothing; not included: servers that the API does not list',
    );
    const { ips: _none, at: _never, ...never } = open;
    expect(bill({ ...never, exists: false, intents: [] })).toBe('Billed: unknown without the API');
  });

  test('what the spec binds by id is of this spec before it is bound', () => {
    const ips = [
      { id: 5001, address: '203.0.113.7', server_id: null, primary: false },
      { id: 5002, address: '203.0.113.8', server_id: 1, primary: true },
    ];
    const operations = [
      { key: 'ips.web', kind: 'ip', verb: 'adopt', target: '5001' },
      { key: 'servers.a', kind: 'server', verb: 'adopt', target: '1' },
      { key: 'servers.a.public_ipv4', kind: 'ip', verb: 'adopt', target: '5002' },
    ];
    const plan = { operations, blocked: [], warnings: [], project: { id: 4711 }, cost: {} };
    const entries = [{ key: 'ips.web', kind: 'ip', id: '5001', value: {}, managed: true }];
    const more = { bindings: [], intents: [], ips, plan, entries, at: 2_000 };
    const view = statusOf({ ...facts, ...more } as unknown as Found);

    expect(view.billed).toMatchObject([
      { what: 'server 1', key: 'servers.a' },
      { what: 'address 203.0.113.7', key: 'ips.web' },
      { what: 'address 203.0.113.8', key: 'servers.a.public_ipv4' },
    ]);
    const text = statusText(view, plainPaint);
    expect(text).toContain('Billed and idle\n  address 203.0.113.7, id 5001, ips.web\n\n');
    expect(text).toContain('Existing, to be adopted by the next apply\n  ips.web\n  servers.a\n');
    expect(text).toContain('Billed: 1 server, 2 addresses\n');
  });

  test('what is idle is told in money, where an address has a price', () => {
    const ips = [5001, 5002].map((id) => ({
      id,
      address: `203.0.113.${id}`,
      server_id: null,
      primary: false,
    }));
    const idle = (prices: object | undefined) =>
      statusOf({ ...facts, ips, prices, at: 2_000 } as unknown as Found);

    expect(idle(undefined).idle_monthly).toBeNull();
    expect(statusText(idle({ currency: 'EUR', address: '3.00' }), plainPaint)).toContain(
      'Monthly cost of idle addresses: 6.00 EUR\n',
    );
  });

  test('a part that has left the entry of its server is not converged as if the spec declared it', () => {
    const warnings = [{ code: 'no_longer_declared', key: 'servers.a.backup', message: '' }];
    const plan = { operations: [], blocked: [], warnings, project: { id: 4711 }, cost: {} };
    const bindings = ['servers.a.backup', 'servers.a.backup.old', 'servers.a.firewall'].map((key) =>
      binding(key, 'backup', '1'),
    );
    const view = statusOf({ ...facts, bindings, intents: [], plan, at: 0 } as unknown as Found);
    expect(view.resources.map(({ standing }) => standing)).toEqual(['undeclared', 'undeclared', 'converged']);
    expect(view.converged).toBe(true);
  });

  test('is never converged while a write is open, nor where drift is only reported', () => {
    const summary = { operations: [], blocked: [], warnings: [], project: { id: 4711 }, cost: {} };
    const calm = { ...facts, bindings: facts.bindings.slice(1, 2), intents: [], at: 2_000 };
    const view = (more: object) => statusOf({ ...calm, plan: summary, ...more } as unknown as Found);
    expect(view({}).converged).toBe(true);
    const open = view({ intents: facts.intents.filter(({ phase }) => phase !== 'blocked') });
    expect(open.converged).toBe(false);
    expect(statusText(open, plainPaint)).toContain('Not converged: `vdcsync apply` finishes the open write.');
    expect(view({ intents: facts.intents }).converged).toBe(false);
    const warnings = [{ code: 'drift', key: 'servers.a', message: '' }];
    const drifting = view({ plan: { ...summary, warnings } });
    expect(drifting).toMatchObject({ converged: false, resources: [{ standing: 'differs' }] });
  });

  test('for an operator ends with what to do', () => {
    const text = statusText(statusOf({ ...facts, offline: 'as --offline asks' }), plainPaint);
    expect(text).toContain(
      '  servers.a  1                  recorded 1970-01-01 00:00:00 UTC, 1 min 30 s ago, protected\n',
    );
    expect(text).toContain('create servers.c: accepted since 1970-01-01 00:00:00 UTC, task task-1');
    expect(text).toContain('        or vdcsync resolve servers.d --absent');
    expect(text.trimEnd().split('\n').at(-1)).toBe('1 operation blocked.');
  });
});
