import { settlesAnOutcome } from '../../core/codes.ts';
import type { KindName } from '../../core/kind-facts.ts';
import type { Plan } from '../../core/plan.ts';
import { type FaultAction, faultRule } from '../../emulator/faults.ts';
import { readFaults, writeFaults } from '../../simulation/fault-kinds.ts';
import { play } from '../../simulation/scenario.ts';
import type { SpecModel, Story } from '../../simulation/story.ts';

/** One story that the spec was played through. */
export interface Trial {
  readonly name: string;
  readonly story: Story;
}

export type TrialEnd = Awaited<ReturnType<typeof runTrial>>;

const minute = 60_000;
/** Two resources for one key, or two keys for one resource. */
const duplicateRules = new Set(['I2', 'I3']);

export function isDuplicate({ rule }: TrialEnd): boolean {
  return rule !== null && duplicateRules.has(rule);
}

/** The write that makes a resource of the kind, by its name in the emulator. */
const makingWrites: Partial<Record<KindName, string>> = {
  ip: 'allocate_ip',
  iso: 'add_iso',
  network: 'create_network',
  server: 'create_server',
  network_interface: 'add_network_interface',
  firewall: 'replace_firewall',
  backup: 'take_backup',
};

/** A crash at every boundary that a run crosses, spread evenly where there are more than `most`; then each fault on each write. */
export async function trialsFor(spec: SpecModel, plan: Plan, most: number): Promise<readonly Trial[]> {
  const base: Story = {
    ...{ seed: 1, state: 'memory', readings: {}, specs: [spec] },
    ...{ faults: [], incidents: [], pausesMs: [minute] },
  };
  const { boundaries } = await play(base);
  const steps = spread(boundaries.get('*') ?? 0, most);
  const crashes = steps.map(
    (nth): Trial => ({
      name: `crash at step ${nth}`,
      story: { ...base, incidents: [{ at: { boundary: '*', nth }, what: { do: 'crash' } }] },
    }),
  );
  const kinds = new Set<string>(plan.operations.map(({ kind }) => kind));
  const paths = Object.entries(makingWrites).flatMap(([kind, path]) => (kinds.has(kind) ? [path] : []));
  const onWrites = paths.flatMap((path) => faultsOn(base, writeFaults, path, { path }));
  const onReads = faultsOn(base, readFaults, 'a read', { method: 'GET' });
  return [...crashes, ...onWrites, ...onReads];
}

function faultsOn(
  base: Story,
  actions: Readonly<Record<string, FaultAction>>,
  what: string,
  when: { readonly path?: string; readonly method?: string },
): Trial[] {
  return Object.entries(actions).map(([name, action]) => ({
    name: `${name} on ${what}`,
    story: { ...base, faults: [faultRule({ ...when, nth: 1 }, action)] },
  }));
}

/** Up to `most` whole numbers from 1 to `count`, evenly spread, both ends among them. */
export function spread(count: number, most: number): readonly number[] {
  if (count <= most) return Array.from({ length: count }, (_, at) => at + 1);
  if (most <= 1) return count > 0 && most === 1 ? [1] : [];
  const step = (count - 1) / (most - 1);
  return Array.from({ length: most }, (_, at) => Math.round(1 + at * step));
}

/** @returns `rule`: the invariant that was broken, if any */
export async function runTrial({ name, story }: Trial) {
  const { violation, blockedRuns, questions } = await play(story);
  const codes = [...new Set(questions.map(({ code }) => code))];
  /** Codes by which an operator was asked to settle an outcome. */
  const asked = codes.filter(settlesAnOutcome);
  /** A refusal or a late task, which no answer of an operator settles. */
  const stopped = blockedRuns > 0 && asked.length === 0;
  const { rule = null, message } = violation ?? {};
  const converged = violation === undefined;
  return { name, converged, asked, stopped, rule, message: message?.split('\n')[0] ?? null };
}

/** In how many trials each code has asked, most first. */
export function askedByCode(ends: readonly TrialEnd[]): readonly (readonly [code: string, trials: number])[] {
  const counts = new Map<string, number>();
  for (const code of ends.flatMap(({ asked }) => asked)) counts.set(code, (counts.get(code) ?? 0) + 1);
  return [...counts].toSorted(([one, times], [other, others]) => others - times || (one < other ? -1 : 1));
}
