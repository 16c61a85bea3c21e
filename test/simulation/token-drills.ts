import type { FaultAction } from '../../src/emulator/faults.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { writeFaults } from '../../src/simulation/fault-kinds.ts';
import type { Disturbance, Incident, SpecModel, Story } from '../../src/simulation/story.ts';
import type { TokenName } from '../../src/simulation/tokens.ts';
import { writes } from './operations.ts';
import { subjects } from './subjects.ts';

const minute = 60_000;
type TokenDrill = Pick<
  Story,
  'state' | 'tokens' | 'specs' | 'faults' | 'incidents' | 'pausesMs' | 'readings'
>;

/** The tokens that a machine may share its work over: two to four, of which not all may do everything, or are right. */
const pools: readonly (readonly TokenName[])[] = [
  ['readWrite', 'second'],
  ['readWrite', 'second', 'third', 'read'],
  ['read', 'second', 'readWrite'],
  ['member', 'second', 'readWrite'],
  ['foreign', 'readWrite', 'second'],
  ['revoked', 'third', 'readWrite', 'second'],
];

const revoked = (token: string): Disturbance => ({
  do: 'mutate',
  mutation: { do: 'revoke_token', token: `4711-${token}` },
});
const after = (nth: number, what: Disturbance): Incident => ({ at: { boundary: 'write:after', nth }, what });
const before = (nth: number, what: Disturbance): Incident => ({
  at: { boundary: 'write:before', nth },
  what,
});

/** More than a minute's worth of writes; then all that goes together, made and taken away. */
const specs: readonly (readonly SpecModel[])[] = [subjects.many ?? [], subjects.parts ?? []];

/** Each of the tokens is revoked or throttled in mid-run, and each usual fault strikes where tokens share the work. */
const drills: readonly TokenDrill[] = [
  ...pools.flatMap((tokens) => specs.map((files) => drill(tokens, files, []))),
  ...pools.flatMap((tokens) =>
    ['second', 'readWrite'].flatMap((token, at) => [
      drill(tokens, specs[at] ?? [], [after(3, revoked(token))]),
      drill(tokens, specs[at] ?? [], [before(4, revoked(token))]),
    ]),
  ),
  ...pools.flatMap((tokens) =>
    (['allocate_ip', 'create_server'] as const).flatMap((write, at) =>
      ['429', '401', '403', 'reset before', 'reset after', '500 after'].map((what) => {
        const fault = faultRule({ path: writes[write].name, nth: 1 }, writeFaults[what] as FaultAction);
        return { ...drill(tokens, specs[at] ?? [], []), faults: [fault] };
      }),
    ),
  ),
  ...pools.map((tokens) => drill(tokens, specs[0] ?? [], [after(15, { do: 'crash' })])),
  ...pools.map((tokens) =>
    drill(tokens, specs[1] ?? [], [after(2, { do: 'crash' }), after(3, revoked('second'))]),
  ),
];

/** Spreads the drills over the numbers; a prime that is no factor of how many there are. */
const stride = 41;

/** The numbers of the drills repeat after this count. */
export const tokenDrillCount = drills.length;

/** The drill of that number, of a machine with several tokens. */
export function tokenDrillOf(number: number): TokenDrill {
  return drills[(number * stride) % drills.length] as TokenDrill;
}

/** One seed of so many plays a drill of a machine with several tokens. */
const seeds = { every: 30, at: 23 };

/** Undisturbed in the first round, then under readings that are drawn. Nothing for the other seeds. */
export function tokenStoryOf(seed: number, readings: () => Story['readings']): Story | undefined {
  if (seed % seeds.every !== seeds.at) return undefined;
  const number = Math.floor(seed / seeds.every);
  return { seed, ...tokenDrillOf(number), readings: number < tokenDrillCount ? {} : readings() };
}

function drill(
  tokens: readonly TokenName[],
  files: readonly SpecModel[],
  incidents: readonly Incident[],
): TokenDrill {
  return { state: 'memory', tokens, specs: files, faults: [], incidents, pausesMs: [minute], readings: {} };
}
