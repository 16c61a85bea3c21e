import { withEntry } from '../../src/simulation/spec-file.ts';
import type { SpecModel, Story } from '../../src/simulation/story.ts';
import { withoutEntry } from './edited-file.ts';

/** Whether the story still fails the same way. */
export type StillFails = (story: Story) => Promise<boolean>;

/** Plays a failing story may cost while it is made smaller. */
const mostPlays = 400;

/**
 * Removes the parts that a failing story does not need: faults, incidents, actions, edits, readings,
 * entries of the spec. It repeats until every further removal makes the story succeed.
 */
export async function shrink(story: Story, stillFails: StillFails): Promise<Story> {
  let best = story;
  let plays = 0;
  for (let smaller = true; smaller && plays < mostPlays; ) {
    smaller = false;
    for (const candidate of candidates(best)) {
      if (++plays > mostPlays) break;
      if (!(await stillFails(candidate))) continue;
      best = candidate;
      smaller = true;
      break;
    }
  }
  return best;
}

/** One part less each, large parts first. */
function* candidates(story: Story): Generator<Story> {
  const { faults, incidents, actions = [], specs, readings } = story;
  const { cut: _cut, ...uncut } = story;
  if (story.cut !== undefined) yield uncut;
  const { shown: _shown, ...unshown } = story;
  if (story.shown) yield unshown;
  if (faults.length > 0) yield { ...story, faults: [] };
  if (incidents.length > 0) yield { ...story, incidents: [] };
  if (actions.length > 0) yield { ...story, actions: [] };
  const { durations: _durations, ...quick } = story;
  if (story.durations !== undefined) yield quick;
  if (Object.keys(readings).length > 0) yield { ...story, readings: {} };
  for (let at = 0; at < faults.length; at++) yield { ...story, faults: without(faults, at) };
  for (let at = 0; at < incidents.length; at++) yield { ...story, incidents: without(incidents, at) };
  for (let at = 0; at < actions.length; at++) yield { ...story, actions: without(actions, at) };
  if (specs.length > 1) yield { ...story, specs: specs.slice(0, -1) };
  for (const name of Object.keys(readings)) {
    const { [name as keyof typeof readings]: _left, ...rest } = readings;
    yield { ...story, readings: rest };
  }
  for (const spec of smallerSpecs(specs)) yield { ...story, specs: spec };
  if (story.state === 'sqlite') yield { ...story, state: 'memory' };
}

/** The same entry, or field of a server, left out of every version of the spec. */
function* smallerSpecs(specs: readonly SpecModel[]): Generator<readonly SpecModel[]> {
  for (const section of ['servers', 'isos', 'ips', 'networks'] as const) {
    const names = new Set(specs.flatMap((spec) => Object.keys(spec[section])));
    for (const name of names) yield specs.map((spec) => withoutEntry(spec, `${section}.${name}`));
  }
  const optional = ['backup', 'firewall', 'network_interfaces', 'protect', 'keep_ip', 'public_ipv4'];
  for (const name of new Set(specs.flatMap(({ servers }) => Object.keys(servers)))) {
    for (const field of optional) {
      if (!specs.some(({ servers }) => servers[name]?.[field] !== undefined)) continue;
      if (field === 'public_ipv4' && specs.some(({ servers }) => servers[name]?.firewall !== undefined))
        continue;
      yield specs.map((spec) => {
        const server = spec.servers[name];
        return server === undefined ? spec : withEntry(spec, `servers.${name}`, omit(server, field));
      });
    }
  }
}

function omit<Value>(entries: Readonly<Record<string, Value>>, name: string): Record<string, Value> {
  return Object.fromEntries(Object.entries(entries).filter(([each]) => each !== name));
}

function without<Value>(values: readonly Value[], at: number): readonly Value[] {
  return values.filter((_, place) => place !== at);
}
