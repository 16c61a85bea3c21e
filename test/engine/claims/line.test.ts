import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/core/claims.ts';
import type { DesiredResource } from '../../../src/core/desired.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Plan } from '../../../src/core/plan.ts';
import type { ApplyReport } from '../../../src/core/progress.ts';
import type { Binding } from '../../../src/core/state.ts';
import { Lines } from '../../../src/engine/claims/line.ts';
import { applied, type Rig, sliders } from '../../support/rig.ts';

const hour = 3_600_000;

function codesOf({ blocked }: Pick<Plan | ApplyReport, 'blocked'>) {
  return blocked.map(({ key, code }) => `${key} ${code}`);
}

function made({ project }: Rig) {
  const { servers, networks, isos, ips } = project;
  return {
    servers: servers.length,
    networks: networks.filter((each) => !each.isDefault).length,
    isos: isos.length,
    ips: ips.length,
  };
}

describe('src/engine/claims/line.ts: a server that two keys name', () => {
  test('is counted once next to a server that no read shows', async () => {
    const networks = 'networks: {n: {cidr: 10.20.0.0/24}}\n';
    const entry = (name: string, more = '') => `  ${name}: {${sliders}, network_interfaces: [n]${more}}\n`;
    const world = await applied(`${networks}servers:\n${entry('one')}${entry('lost')}`);
    world.loseState();
    const named = (name: string) => `${networks}servers:\n${entry(name, ', id: 2001')}`;
    await world.clock.advance(30 * hour);
    await world.adopt(named('one'), 'networks.n', String(world.project.networks.at(-1)?.id));
    await world.apply(named('one'));

    const report = await world.apply(`${named('first')}${entry('lost')}`);

    expect(made(world).servers).toBe(2);
    expect(codesOf(report)).toContain('servers.lost unlisted_servers');
  });
});

describe('src/engine/claims/line.ts: addresses', () => {
  test('that are both free go to the servers that name them', async () => {
    const world = await applied('ips: {a: {}, b: {}}\n');
    const spec = `ips: {a: {}, b: {}}\nservers:\n  one: {${sliders}, public_ipv4: {ip: b}}\n  two: {${sliders}, public_ipv4: {ip: a}}\n`;
    const planned = await world.plan(spec);
    const report = await world.apply(spec);
    expect(planned.warnings.map(({ code }) => code)).toContain('addresses_may_exchange');
    expect(codesOf(report)).toEqual([]);
    expect(made(world)).toMatchObject({ servers: 2, ips: 2 });
    expect((await world.plan(spec)).operations).toEqual([]);
  });
});

describe('src/engine/claims/line.ts: a line', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `servers.${name}` as ResourceKey);
  const chain = fc.shuffledSubarray(names, { minLength: 1, maxLength: 3 });
  const entry = ([key, moved]: readonly ResourceKey[]) =>
    ({ key, moved, kind: 'server', managed: true }) as DesiredResource;
  const released = ([formerKey, ...formerKeys]: readonly ResourceKey[], id: number) =>
    ({
      ...{ kind: 'server', id: String(id), identity: {}, at: id % 2 },
      holder: { is: 'released', by: 'file', formerKey, formerKeys },
    }) as Claim;
  const bound = ([key, ...formerKeys]: readonly ResourceKey[], id: number) =>
    ({ ...{ key, kind: 'server', id: String(id), identity: {} }, formerKeys }) as unknown as Binding;
  const unique = { selector: ([key]: readonly ResourceKey[]) => key, maxLength: 4 } as const;
  const scene = fc.record({
    entries: fc.uniqueArray(chain, unique).map((each) => each.map(entry)),
    claims: fc.array(chain, { maxLength: 5 }).map((each) => each.map(released)),
    bindings: fc.uniqueArray(chain, unique).map((each) => each.map((keys, at) => bound(keys, 100 + at))),
  });
  type Drawn = typeof scene extends fc.Arbitrary<infer Value> ? Value : never;
  const linesOf = ({ entries, claims, bindings }: Drawn) =>
    new Lines({
      desired: { resources: entries },
      claims,
      bindings: new Map(bindings.map((each) => [each.key, each])),
    });
  const shown = (drawn: Drawn) => {
    const lines = linesOf(drawn);
    return {
      lines: new Map(drawn.entries.map((each) => [each.key, new Set(lines.of(each))])),
      held: new Map([...lines.returning()].map(([key, { id }]) => [key, id])),
    };
  };

  test('depends on no order of entries, bindings and claims', () => {
    const shuffled = scene.chain((drawn) =>
      fc.tuple(
        fc.constant(drawn),
        fc.record({
          entries: fc.shuffledSubarray(drawn.entries, { minLength: drawn.entries.length }),
          claims: fc.shuffledSubarray(drawn.claims, { minLength: drawn.claims.length }),
          bindings: fc.shuffledSubarray(drawn.bindings, { minLength: drawn.bindings.length }),
        }),
      ),
    );
    fc.assert(
      fc.property(shuffled, ([one, other]) => {
        expect(shown(other)).toEqual(shown(one));
      }),
    );
  });
});
