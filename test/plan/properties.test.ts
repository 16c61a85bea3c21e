import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { share } from '../support/drawn.ts';
import { load, rig } from '../support/rig.ts';
import { resources } from './specs.ts';
import { planOf, shuffled, worldOf } from './support.ts';

const roomy = 'settings: {prune: true, max_deletions: 50}\n';

function expectTopological({ operations }: Plan): void {
  const done = new Set<string>();
  for (const { id, needs } of operations) {
    expect(
      needs.filter((need) => !done.has(need)),
      `${id} comes too early`,
    ).toEqual([]);
    done.add(id);
  }
}

function expectConsistent(plan: Plan, wanted: number): void {
  const { summary, operations, blocked } = plan;
  expect(summary.create + summary.update + summary.delete + summary.adopt + 2 * summary.replace).toBe(
    operations.length,
  );
  expect(summary.blocked).toBe(blocked.length);
  const touched = new Set([...operations, ...blocked].map(({ key }) => key));
  expect(summary.unchanged + touched.size).toBeGreaterThanOrEqual(wanted);
  expect(
    operations.filter(({ id }) =>
      blocked.some((each) =>
        operations.some((one) => one.id === id && each.key === one.key && each.verb === one.verb),
      ),
    ),
  ).toEqual([]);
  for (const { verb, replacement } of operations) {
    if (replacement !== undefined)
      expect(
        operations.some(({ id }) => id === replacement),
        verb,
      ).toBe(true);
  }
}

/** The same list in an order that depends on nothing but the number. */
function reorder(seed: number) {
  return <T>(list: readonly T[]): T[] =>
    list
      .map((each, at) => ({ each, rank: ((at + 1) * (seed | 1) * 2_654_435_761) % 4_294_967_291 }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ each }) => each);
}

describe('src/plan/build.ts', () => {
  test('the order of the input makes no difference', () => {
    fc.assert(
      fc.property(resources, fc.nat(), (text, seed) => {
        const world = worldOf(load(text));
        const one = planOf(world);
        const other = planOf(shuffled(world, reorder(seed)), { now: 1 });
        expect({ ...other, observed_at: '' }).toEqual({ ...one, observed_at: '' });
        expectTopological(one);
        const steps = load(text).resources.filter(({ key }) => !key.endsWith('.public_ipv4'));
        expectConsistent(one, steps.length);
      }),
      { numRuns: share(80) },
    );
  });

  test('the digest shows every difference of the operations', () => {
    fc.assert(
      fc.property(resources, resources, (a, b) => {
        const [one, other] = [planOf(worldOf(load(a))), planOf(worldOf(load(b)))];
        const doing = ({ operations, blocked }: Plan) => ({
          operations,
          blocked: blocked.map(({ key, code }) => ({ key, code })),
        });
        const same = JSON.stringify(doing(one)) === JSON.stringify(doing(other));
        expect(one.digest === other.digest).toBe(same);
      }),
      { numRuns: share(80) },
    );
  });

  test('apply makes the project match the spec, from nothing and from one spec to the next', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(resources, { minLength: 1, maxLength: 3 }), async (files) => {
        const { apply, plan, emulator } = rig();
        for (const text of files) {
          const planned = await plan(roomy + text);
          expectTopological(planned);
          const report = await apply(roomy + text);
          // A named address may be out of reach beside another free one; everything else has to come to be.
          const codes = report.blocked.map(({ code }) => code);
          const known = [
            'address_not_the_only_free_one',
            'address_in_use',
            'dependency_blocked',
            'ip_in_use',
            'network_in_use',
            'firewall_no_public_iface',
          ];
          expect(codes.filter((code) => !known.includes(code))).toEqual([]);
          if (report.blocked.length === 0) {
            expect(report.outcome, JSON.stringify(report.plan.operations)).toBe('converged');
            expect((await plan(roomy + text)).operations).toEqual([]);
            const desired = load(roomy + text).resources;
            const live = emulator.world.projects[0];
            const names = (kind: string) =>
              desired
                .filter((each) => each.kind === kind)
                .map(({ key }) => key.split('.')[1])
                .sort();
            expect(live?.servers.map(({ name }) => name).sort()).toEqual(names('server'));
            expect(live?.isos.map(({ name }) => name).sort()).toEqual(names('iso'));
            expect(
              live?.networks
                .map(({ name }) => name)
                .filter((name) => name !== 'default')
                .sort(),
            ).toEqual(names('network'));
          }
        }
      }),
      { numRuns: share(20) },
    );
  });
});
