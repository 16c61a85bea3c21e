import { describe, expect, test } from 'vitest';
import { statusText } from '../../src/cli/render/status-text.ts';
import { plainPaint } from '../../src/cli/terminal.ts';
import { viewOf } from '../../src/view/build.ts';
import type { KnownFacts, ProjectFacts } from '../../src/view/facts.ts';
import { resolving } from '../support/resolve.ts';

const binding = (key: string, kind: string, id: string, more: object = {}) => ({
  ...{ key, kind, id, identity: {}, applied: null, protect: false, keep: false, boundAt: 0 },
  ...more,
});
const intent = (key: string, kind: string, phase: string, more: object = {}) => ({
  ...{ id: key, key, kind, verb: 'create', phase, createdAt: 0, lastSentAt: 0 },
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
  test('shows recorded, blocked, open and billed resources from the state alone', () => {
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

  test('shows a part that has left the entry of its server as undeclared', () => {
    const warnings = [{ code: 'no_longer_declared', key: 'servers.a.backup', message: '' }];
    const plan = { operations: [], blocked: [], warnings, project: { id: 4711 }, cost: {} };
    const bindings = ['servers.a.backup', 'servers.a.backup.old', 'servers.a.firewall'].map((key) =>
      binding(key, 'backup', '1'),
    );
    const view = statusOf({ ...facts, bindings, intents: [], plan, at: 0 } as unknown as Found);
    expect(view.resources.map(({ standing }) => standing)).toEqual(['undeclared', 'undeclared', 'converged']);
    expect(view.converged).toBe(true);
  });

  test('is not converged while a write is open or drift is only reported', () => {
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
});
