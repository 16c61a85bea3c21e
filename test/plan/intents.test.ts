import { describe, expect, test } from 'vitest';
import { digestOf } from '../../src/core/json.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Intent } from '../../src/core/state.ts';
import { codesOf, idsOf } from '../reconcilers/support.ts';
import { resolveOf } from '../support/resolve.ts';
import { load } from '../support/rig.ts';
import { planOf, worldOf } from './support.ts';

const desired = load(
  'networks: {a: {cidr: 10.1.0.0/24}}\nservers: {web: {server_type: 3, image: ubuntu-24.04, cores: 1, memory_mb: 1, disk_gb: 1, network_interfaces: [a]}}\n',
);
const value = desired.resources.find(({ key }) => key === 'networks.a')?.value;

function intent(parts: object): Intent {
  return {
    key: 'networks.a',
    kind: 'network',
    verb: 'create',
    phase: 'blocked',
    basis: digestOf(value),
    preimage: {},
    ...parts,
  } as Intent;
}

const unknown = { code: 'outcome_unknown', reason: 'the answer was lost', candidates: ['41', '42'] };
const refused = { code: 'invalid_request', reason: 'cidr: is taken', candidates: [], until: 'file' } as const;

describe('src/plan/open-writes.ts: writes that are not settled', () => {
  test('a blocked one is told with each way to settle it, and holds what waits for it', () => {
    const plan = planOf(worldOf(desired), { openIntents: [intent({ blocked: unknown })] });

    expect(idsOf(plan)).toEqual(['create:servers.web']);
    expect(codesOf(plan)).toEqual({
      'networks.a': 'outcome_unknown',
      'servers.web.network_interfaces.a': 'dependency_blocked',
    });
    expect(resolveOf(plan.blocked[0]).split(' | ')).toEqual([
      'vdcsync resolve networks.a --adopt 41 (if 41 is networks.a: see the client area)',
      'vdcsync resolve networks.a --adopt 42 (if 42 is networks.a: see the client area)',
      'vdcsync resolve networks.a --adopt ID (if networks.a is another resource: the client area shows its id)',
      'vdcsync resolve networks.a --absent (only if the client area does not show the resource; otherwise the next apply creates a duplicate)',
    ]);
  });

  test('an `id` of another resource is removed before the resource is adopted', () => {
    const wrong = { ...desired, resources: desired.resources.map((each) => ({ ...each, id: '41' })) };
    const plan = planOf(worldOf(wrong), { openIntents: [intent({ blocked: unknown })] });

    expect(resolveOf(plan.blocked[0]).split(' | ').slice(0, 2)).toEqual([
      'vdcsync resolve networks.a --adopt 41 (if 41 is networks.a: see the client area)',
      'remove `id` in networks.a; then vdcsync resolve networks.a --adopt 42 (if 42 is networks.a: see the client area)',
    ]);
  });

  test('an `id` of another resource is removed from the entry for which an earlier key is asked', () => {
    const wrong = { ...desired, resources: desired.resources.map((each) => ({ ...each, id: '41' })) };
    const asked = intent({ key: 'networks.former', recovers: 'networks.a', blocked: unknown });
    const plan = planOf(worldOf(wrong), { openIntents: [asked] });

    expect(resolveOf(plan.blocked.find(({ key }) => key === 'networks.former')).split(' | ')[1]).toBe(
      'remove `id` in networks.a; then vdcsync resolve networks.former --adopt 42 (if 42 is networks.former: see the client area)',
    );
  });

  test('an entry with `managed: false` keeps its `id`, which is all that it has', () => {
    const resources = desired.resources.map((each) => ({ ...each, id: '41', managed: false }));
    const plan = planOf(worldOf({ ...desired, resources }), { openIntents: [intent({ blocked: unknown })] });

    expect(resolveOf(plan.blocked[0]).split(' | ')[1]).toBe(
      'vdcsync resolve networks.a --adopt 42 (if 42 is networks.a: see the client area)',
    );
  });

  test('one that waits is told with what it waits for', () => {
    const waiting = intent({ phase: 'waiting', detail: '409 no_gpu_capacity · no host has the cards free' });
    const { warnings } = planOf(worldOf(desired), { openIntents: [waiting] });
    expect(warnings.find(({ code }) => code === 'in_flight')?.message).toContain(
      '(409 no_gpu_capacity · no host has the cards free)',
    );
  });

  test('where one candidate is all there is, it says what would have decided that', () => {
    const one = intent({ blocked: { ...unknown, candidates: ['41'] } });
    const asked = (settings: object) =>
      planOf(worldOf({ ...desired, settings: { ...desired.settings, ...settings } }), { openIntents: [one] })
        .blocked[0];

    expect(resolveOf(asked({}))).toContain('write `exclusive: true` under `settings`');
    expect(resolveOf(asked({ exclusive: true }))).not.toContain('exclusive');
  });

  test('a refusal of what has come to be by another hand offers to adopt it', () => {
    const live = { id: 41, name: 'a', cidr: '10.1.0.0/24', is_default: false, server_count: 0, router: null };
    const observed = new Map([['networks.a', { sameName: [live] }]]);
    const plan = planOf(worldOf(desired, { observed } as never), {
      openIntents: [intent({ blocked: refused })],
    });

    expect(plan.blocked[0]?.reason).toContain(
      'cidr: is taken; the project already has an unmanaged network "a" (id 41',
    );
    expect(resolveOf(plan.blocked[0])).toContain(
      '| vdcsync resolve networks.a --adopt ID (if the resource exists',
    );
  });

  test('a refusal names the place in the spec, and ends when the entry changes', () => {
    const held = planOf(worldOf(desired), { openIntents: [intent({ blocked: refused })] });
    const edited = planOf(worldOf(desired), {
      openIntents: [intent({ blocked: refused, basis: 'sha256:older' })],
    });

    expect(resolveOf(held.blocked[0])).toMatch(/^correct the entry at vdcsync\.yaml:3:12 \|/);
    expect(idsOf(edited)).toContain('create:networks.a');
    expect(edited.blocked).toEqual([]);
  });

  test.each([
    [['cidr[0]', 'name'], '`cidr` at vdcsync.yaml:3:16'],
    [['/cidr'], '`cidr` at vdcsync.yaml:3:16'],
    [['body.cidr_id', 'cidr'], '`cidr` at vdcsync.yaml:3:16'],
    [['name'], 'the entry at vdcsync.yaml:3:12'],
  ])('a refusal of %j points at the fields that the entry has', (parameters, place) => {
    const openIntents = [intent({ blocked: { ...refused, parameters } })];
    const [blocked] = planOf(worldOf(desired), { openIntents }).blocked;
    expect(resolveOf(blocked).split(' | ')[0]).toBe(`correct ${place}`);
  });

  test.each([
    [
      'delete',
      '--absent (if the client area does not show the resource) | vdcsync resolve networks.a --abandon (if the resource still exists)',
    ],
    ['update', '--retry (if the write had no effect)'],
  ])('a write without a resource of its own (%s) is settled by its effect, or given up', (verb, ways) => {
    const plan = planOf(worldOf(desired), { openIntents: [intent({ verb, blocked: unknown })] });

    expect(resolveOf(plan.blocked[0])).toBe(`vdcsync resolve networks.a ${ways}`);
  });

  test('one under way is a warning', () => {
    const plan = planOf(worldOf(desired), { openIntents: [intent({ phase: 'accepted' })] });

    expect(plan.warnings).toMatchObject([{ code: 'in_flight', key: 'networks.a' }]);
    expect(plan.blocked).toEqual([]);
  });

  test('one under way is in progress: it is neither to be done nor unchanged, and takes no further write', () => {
    const before = planOf(worldOf(desired));
    const plan = planOf(worldOf(desired), { openIntents: [intent({ phase: 'accepted' })] });
    const { create, unchanged } = before.summary;

    expect(plan.operations.filter(({ open }) => open).map(({ id }) => id)).toEqual(['create:networks.a']);
    expect(plan.summary).toMatchObject({ create: create - 1, in_progress: 1, unchanged });
    expect(plan.effort.writes).toBe(before.effort.writes - 1);
  });

  test('one under way is shown outside the selection too, unless the write waits for what the selection leaves out', () => {
    const chosen = (phase: string) => {
      const selection = { targets: ['servers.web' as ResourceKey], excludes: ['networks.a' as ResourceKey] };
      const plan = planOf(worldOf(desired), { openIntents: [intent({ phase })], selection });
      return [idsOf(plan), plan.summary.in_progress, plan.warnings.map(({ code }) => code)];
    };

    expect(chosen('accepted')).toEqual([
      ['create:networks.a', 'create:servers.web'],
      1,
      expect.arrayContaining(['in_flight']),
    ]);
    expect(chosen('waiting')).toEqual([['create:servers.web'], 1, expect.arrayContaining(['in_flight'])]);
  });

  test('a creation that is unconfirmed is in progress too', () => {
    const unconfirmed = intent({ phase: 'unknown', unconfirmed: { since: 0, why: 'timeout' } });
    const { summary } = planOf(worldOf(desired), { openIntents: [unconfirmed] });
    expect(summary).toMatchObject({ in_progress: 1, unchanged: planOf(worldOf(desired)).summary.unchanged });
  });
});
