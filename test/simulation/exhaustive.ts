import { faultRule } from '../../src/emulator/faults.ts';
import { readFaults, writeFaults } from '../../src/simulation/fault-kinds.ts';
import type { Disturbance, Incident, SpecModel, Story } from '../../src/simulation/story.ts';
import { operationsWith, writeNames, writes } from './operations.ts';
import { play } from './play.ts';
import { slowFaults } from './slow-drills.ts';
import { profiledSubjects, subjects } from './subjects.ts';

const minute = 60_000;
const hour = 60 * minute;
/** The disturbances that a process can meet at any boundary. */
const sudden: Readonly<Record<string, Disturbance>> = {
  crash: { do: 'crash' },
  halt: { do: 'halt' },
  stop: { do: 'stop' },
  'disk full': { do: 'disk_full', writes: 1, durable: false },
  'failing fsync': { do: 'disk_full', writes: 1, durable: true },
};

/** A process that is replaced continues before its successor asks the key of a write in flight, or after that. */
const replaced: Readonly<Record<string, Disturbance>> = Object.fromEntries(
  [true, false].flatMap((knows) =>
    [30_000, 90_000, 600_000].map((ms) => [
      `replaced for ${ms / 1000} s${knows ? '' : ' unknowingly'}`,
      { do: 'replace', ms, knows },
    ]),
  ),
);

/** A named story. The name says which disturbance happens at which boundary. */
export interface Case {
  readonly name: string;
  readonly story: Story;
}

/** Builds it up, takes it away again, and strikes nowhere yet. */
function base(specs: readonly SpecModel[], incidents: readonly Incident[]): Story {
  const profiled = Object.values(profiledSubjects).includes(specs);
  const profile = profiled ? ({ profile: true } as const) : {};
  const pausesMs = specs === profiledSubjects.backups ? [25 * hour] : [minute];
  return { seed: 1, state: 'memory', readings: {}, ...profile, specs, faults: [], incidents, pausesMs };
}

/** Where faults can strike in a file. */
function writesIn(subject: string): readonly string[] {
  if (subject in subjects) return writeNames;
  return operationsWith((write) => write.subject === subject).map((name) => writes[name].name);
}

/** The spec is emptied once the first run has nothing left to do. */
async function boundariesOf(specs: readonly SpecModel[]): Promise<number> {
  const { boundaries } = await play(base(specs, [late]));
  return boundaries.get('*') ?? 0;
}

/** Never struck: it only keeps the story from being a calm one, so that the edit is played. */
const late: Incident = { at: { boundary: '*', nth: 1_000_000 }, what: { do: 'crash' } };

/** Every single fault at every boundary, and on every write and read. */
export async function* singleFaults(): AsyncGenerator<Case> {
  for (const [subject, specs] of Object.entries({ ...subjects, ...profiledSubjects })) {
    yield* atEachBoundary(subject, specs, sudden);
    for (const [what, action] of Object.entries({ ...writeFaults, ...slowFaults })) {
      for (const path of writesIn(subject)) {
        const faults = [faultRule({ path, nth: 1 }, action)];
        yield { name: `${subject}: ${what} on ${path}`, story: { ...base(specs, []), faults } };
      }
    }
    for (const [what, action] of Object.entries(readFaults)) {
      for (let nth = 1; nth <= 12; nth++) {
        const faults = [faultRule({ method: 'GET', nth }, action)];
        yield { name: `${subject}: ${what} on read ${nth}`, story: { ...base(specs, []), faults } };
      }
    }
  }
}

/** A suspension at every boundary, after which another process has the state. */
export async function* replacements(only?: string): AsyncGenerator<Case> {
  for (const [subject, specs] of Object.entries({ ...subjects, ...profiledSubjects }))
    if (only === undefined || only === subject) yield* atEachBoundary(subject, specs, replaced);
}

async function* atEachBoundary(
  subject: string,
  specs: readonly SpecModel[],
  disturbances: Readonly<Record<string, Disturbance>>,
): AsyncGenerator<Case> {
  const count = await boundariesOf(specs);
  for (const [what, disturbance] of Object.entries(disturbances)) {
    for (let nth = 1; nth <= count; nth++) {
      const incident = { at: { boundary: '*', nth }, what: disturbance };
      yield { name: `${subject}: ${what} at boundary ${nth}`, story: base(specs, [incident]) };
    }
  }
}

/** Pairs where money is spent: a fault on the purchase, then a crash or a second fault behind it. */
export async function* pairsOfFaults(): AsyncGenerator<Case> {
  const purchases = { ip: 'allocate_ip', server: 'create_server', 'bare server': 'create_server' } as const;
  for (const [subject, path] of Object.entries(purchases)) {
    const specs = (subjects[subject] ?? []).slice(0, 1);
    for (const [first, action] of Object.entries(writeFaults)) {
      const faults = [faultRule({ path, nth: 1 }, action)];
      for (const [second, other] of Object.entries(writeFaults)) {
        const both = [...faults, faultRule({ path, nth: 1 }, other)];
        yield { name: `${subject}: ${first}, then ${second}`, story: { ...base(specs, []), faults: both } };
      }
      for (let nth = 1; nth <= 20; nth++) {
        const incident: Incident = { at: { boundary: 'change:after', nth }, what: { do: 'crash' } };
        yield {
          name: `${subject}: ${first}, then a crash after change ${nth}`,
          story: { ...base(specs, [incident]), faults },
        };
      }
    }
  }
}

/** The state put back to each earlier one: behind every write, and once all is at rest, at once and when no key is known any more. */
export async function* earlierStates(): AsyncGenerator<Case> {
  for (const [subject, specs] of Object.entries({ ...subjects, ...profiledSubjects })) {
    const { boundaries, changes } = await play(base(specs, [late]));
    const backs = Array.from({ length: changes }, (_, at) => at + 1);
    const sends = boundaries.get('write:after') ?? 0;
    for (let nth = 1; nth <= sends; nth++) {
      for (const back of backs.slice(0, Math.ceil((changes * nth) / sends))) {
        const incident: Incident = { at: { boundary: 'write:after', nth }, what: { do: 'cut_state', back } };
        yield { name: `${subject}: ${back} changes back after write ${nth}`, story: base(specs, [incident]) };
      }
    }
    for (const left of specs.slice(0, -1).map((_, at) => specs.slice(0, at + 1))) {
      for (const afterMs of [minute, 25 * hour]) {
        for (const back of backs) {
          const story = { ...base(left, [late]), cut: { back, afterMs } };
          yield {
            name: `${subject}: ${back} changes back, ${afterMs / minute} min after rest ${left.length}`,
            story,
          };
        }
      }
    }
  }
}
