import { describe, expect, test } from 'vitest';
import type { DesiredResource } from '../../src/core/desired.ts';
import { digestOf } from '../../src/core/json.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Plan } from '../../src/core/plan.ts';
import type { Binding, Intent } from '../../src/core/state.ts';
import type { PlanInput } from '../../src/plan/build.ts';
import { resolveOf } from '../support/resolve.ts';
import { load } from '../support/rig.ts';
import { asLines, Texts } from '../support/texts.ts';
import { planOf, worldOf } from './support.ts';

const desired = load(
  'networks: {a: {cidr: 10.1.0.0/24}}\nservers: {web: {server_type: 3, image: ubuntu-24.04, cores: 1, memory_mb: 1, disk_gb: 1, network_interfaces: [a]}}\n',
);
const value = desired.resources.find(({ key }) => key === 'networks.a')?.value;

interface Given {
  /** Other fields of each entry, and of the settings. */
  readonly entry?: Partial<DesiredResource>;
  readonly settings?: object;
  readonly observed?: ReadonlyMap<string, object>;
  readonly input?: Partial<PlanInput>;
}

/** The plan beside an open write of the network. */
function planWith(write: object, { entry, settings, observed = new Map(), input }: Given = {}): Plan {
  const resources = desired.resources.map((each) => ({ ...each, ...entry }));
  const spec = { ...desired, resources, settings: { ...desired.settings, ...settings } };
  const of = { key: 'networks.a', kind: 'network', verb: 'create', phase: 'blocked', preimage: {} };
  const intent = { ...of, basis: digestOf(value), ...write } as unknown as Intent;
  return planOf(worldOf(spec, { observed } as never), { openIntents: [intent], ...input });
}

/** The operations, those in progress with a mark, then the objections and the warnings about open writes. */
function textOf({ operations, blocked, warnings }: Plan): string {
  const ids = operations.map(({ id, open }) => (open === undefined ? id : `${id} (in progress)`));
  const held = blocked.map((each) =>
    asLines(`${each.key} ${each.code}: ${each.reason} → ${resolveOf(each)}`),
  );
  const open = warnings.filter(({ code }) => code === 'in_flight');
  return [...ids, ...held, ...open.map(({ key, message }) => `in_flight ${key}: ${message}`)].join('\n');
}

const texts = new Texts(import.meta.dirname, 'intents.txt');
const unknown = {
  blocked: { code: 'outcome_unknown', reason: 'the answer was lost', candidates: ['41', '42'] },
};
const refused = (more: object = {}) => ({
  blocked: { code: 'invalid_request', reason: 'cidr: is taken', candidates: [], until: 'file', ...more },
});
const accepted = { phase: 'accepted' };
const waiting = { phase: 'waiting', detail: '409 no_gpu_capacity · no host has the cards free' };
const unconfirmed = { phase: 'unknown', unconfirmed: { since: 0, why: 'timeout' } };
const one = { blocked: { ...unknown.blocked, candidates: ['41'] } };
const otherId = { entry: { id: '41' } };
const unmanaged = { entry: { id: '41', managed: false } };
const live = { id: 41, name: 'a', cidr: '10.1.0.0/24', is_default: false, server_count: 0, router: null };
const isThere = { observed: new Map([['networks.a', { sameName: [live] }]]) };
const selection = { targets: ['servers.web' as ResourceKey], excludes: ['networks.a' as ResourceKey] };
const selected = { input: { selection } };

describe('src/plan/open-writes.ts: open writes', () => {
  test.each<[string, object, Given?]>([
    ['a question blocks the operations that wait for it', unknown],
    ['an `id` of another resource is removed before an adoption', unknown, otherId],
    [
      'an `id` is removed from the entry for which an earlier key is asked',
      { key: 'networks.former', recovers: 'networks.a', ...unknown },
      otherId,
    ],
    ['an entry with `managed: false` keeps its `id`, which is all that it has', unknown, unmanaged],
    ['a write that waits names the reason', waiting],
    ['a question about one candidate suggests `exclusive`', one],
    ['a question in an exclusive project suggests nothing more', one, { settings: { exclusive: true } }],
    ['a refusal of a resource that another client created names that resource', refused(), isThere],
    ['a refusal names the place in the spec', refused()],
    ['a refusal ends when the entry changes', { ...refused(), basis: 'sha256:older' }],
    ['a refusal of a member points at its field', refused({ parameters: ['cidr[0]', 'name'] })],
    ['a refusal of a pointer points at its field', refused({ parameters: ['/cidr'] })],
    ['a refusal of a path points at its field', refused({ parameters: ['body.cidr_id', 'cidr'] })],
    ['a refusal of a field that the entry lacks', refused({ parameters: ['name'] })],
    ['a deletion is settled by its effect, or given up', { verb: 'delete', ...unknown }],
    ['an update is settled by its effect', { verb: 'update', ...unknown }],
    ['a write under way takes no further write', accepted],
    ['a replacement under way names the deletion that follows', { ...accepted, replaces: '31' }],
    ['a write under way, and an edited entry', { ...accepted, replaces: '31', basis: 'sha256:older' }],
    ['a write under way is shown outside the selection too', accepted, selected],
    ['a write that waits for an unselected resource is not shown', { phase: 'waiting' }, selected],
    ['a creation that is unconfirmed', unconfirmed],
  ])('%s', (name, write, given) => {
    expect(textOf(planWith(write, given))).toBe(texts.of(name));
  });

  test.each([
    accepted,
    unconfirmed,
  ])('a creation under way is in progress, neither planned nor unchanged', (write) => {
    const [before, plan] = [planOf(worldOf(desired)), planWith(write)];
    const { create, unchanged } = before.summary;
    expect(plan.summary).toMatchObject({ create: create - 1, in_progress: 1, unchanged });
    expect(plan.effort.writes).toBe(before.effort.writes - 1);
  });

  test('the old server of an open replacement is blocked if its entry protects it by now', () => {
    const blockedBeside = (write: object, protect = true, id = '31') => {
      const resources = desired.resources.map((each) => ({ ...each, protect }));
      const of = { key: 'servers.web', kind: 'server', verb: 'create', preimage: {}, replaces: '31' };
      const bound = { ...of, id, identity: {}, boundAt: 1, applied: {} } as unknown as Binding;
      const intent = { ...of, basis: 'sha256:older', ...write } as unknown as Intent;
      const { blocked } = planOf(worldOf({ ...desired, resources }, {}, [bound]), { openIntents: [intent] });
      return blocked.filter(({ code }) => code === 'protected').map((each) => [each.key, resolveOf(each)]);
    };
    for (const write of [accepted, unconfirmed])
      expect(blockedBeside(write)).toEqual([
        [
          'servers.web~31',
          "write `protect: false` in servers.web; then vdcsync apply (to have it deleted) | vdcsync apply; then vdcsync forget 'servers.web~31' (to keep it, no longer managed and still billed)",
        ],
      ]);
    expect(blockedBeside(accepted, false)).toEqual([]);
    expect(blockedBeside(accepted, true, '30')).toEqual([]);
    expect(blockedBeside({ ...accepted, replaces: undefined })).toEqual([]);
    expect(blockedBeside({ phase: 'blocked', ...unknown })).toEqual([]);
  });
});
