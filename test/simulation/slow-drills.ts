import { type FaultAction, type FaultRule, faultRule } from '../../src/emulator/faults.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import type { Durations } from '../../src/emulator/world.ts';
import { writeFaults } from '../../src/simulation/fault-kinds.ts';
import type { Disturbance, Incident, Story } from '../../src/simulation/story.ts';
import { operations, writes } from './operations.ts';
import { profiledSubjects, subjects } from './subjects.ts';

const second = 1_000;
const minute = 60 * second;
type Write = keyof typeof writes;
type Drill = Omit<Story, 'seed' | 'shown' | 'cut'>;

/** Ways that only stories of slow work and late requests take up. */
export const slowFaults: Readonly<Record<string, FaultAction>> = {
  'task slow': { do: 'task', ms: 9 * 60_000 },
  'task fails, shown later': { do: 'task', outcome: 'fail', leaves: 'later', laterMs: 5 * 60_000 },
  'late, on its way': { do: 'late', ms: 40_000, holdsKey: false },
  'very late, on its way': { do: 'late', ms: 10 * 60_000, holdsKey: false },
  'very late, in flight': { do: 'late', ms: 4 * 60_000 },
};

/**
 * How long a task that creates a resource may take. The resource must be visible within the time
 * that a client has to allow for: half an hour for a server, a quarter for an ISO, ten minutes for the rest.
 */
export const slowTasks: Partial<Durations> = {
  create_server: [minute, 25 * minute],
  create_network: [minute, 9 * minute],
  add_card: [minute, 9 * minute],
  add_iso: [minute, 14 * minute],
  take_image: [minute, 9 * minute],
  delete_server: [minute, 9 * minute],
  delete_network: [minute, 9 * minute],
  remove_card: [minute, 9 * minute],
};

/** The same where a task may be reported as failed and its work shows five minutes later. */
export const slowTasksShownLater: Partial<Durations> = {
  ...slowTasks,
  create_server: [minute, 20 * minute],
  create_network: [minute, 4 * minute],
  add_card: [minute, 4 * minute],
  add_iso: [minute, 9 * minute],
  take_image: [minute, 4 * minute],
};

/** When the resource of each creation becomes visible: every reading of the assumption except the default. */
const visibilities: Partial<Record<Write, readonly Partial<Readings>[]>> = {
  create_server: [
    { addressAt: 'taskDone' },
    { attachedAt: 'taskDone' },
    { addressAt: 'taskDone', attachedAt: 'taskDone', publicCardAt: 'taskDone' },
  ],
  create_network: [{ networkAt: 'accepted' }],
  add_network_interface: [{ interfaceAt: 'taskDone' }],
  add_iso: [{ isoAt: 'taskDone' }],
};

const bodyChecks: readonly Partial<Readings>[] = [
  {},
  { bodyCheck: 'beforeKey' },
  { bodyCheck: 'beforeKeyUnstored' },
];
const inFlight: readonly Partial<Readings>[] = [
  {},
  { inFlightKey: 'conflictRetryAfter' },
  { inFlightKey: 'wait' },
];

/** Creations that have a subject of their own; a server without an address is one more, as no read shows it. */
const creations = operations
  .filter((write) => 'creates' in writes[write])
  .map((write) => [write, writes[write].subject] as const);
const bareServer = ['create_server', 'bare server'] as const;
const all = [...creations, bareServer];
const withTask = all.filter(([write]) => 'task' in writes[write]);

/** Faults that hide whether a creation was carried out, once with its effect and once without. */
const hidden = ['reset after, unstored', '500 after', '504 after'] as const;
const lost = ['reset before', 'reset after', 'reset after, unstored'] as const;

/** Answers that a probe may get in place of one about its body. */
const toProbes = [
  ...[
    'reset after',
    'reset before',
    'proxy page after',
    'malformed',
    'truncated',
    '500 before',
    '503 before',
  ],
  ...['429', '429 stored', '409 with wait', '409 bare', '402', '403', '401', 'slower than the time-out'],
] as const;

/** A server error that had its effect, whose task outlasts every wait that is not for tasks. */
const slowEffects = withTask.flatMap(([write, subject]) =>
  readingsOf(write, subject).flatMap((readings, at) =>
    // One fault each, and all of them where nothing shows before the end.
    (at === 0 ? hidden.slice(0, 1) : hidden).map((what) => ({
      ...drill(subject, [first(write, what)], [], readings),
      durations: slowTasks,
    })),
  ),
);

/** The original is carried out after its answer was given up, known to the service meanwhile or not. */
const lateOriginals = all.flatMap(([write, subject], place) => [
  ...bodyChecks.map((readings, at) => {
    const what = (place + at) % 2 === 0 ? 'late, on its way' : 'very late, on its way';
    return drill(subject, [first(write, what)], [], readings);
  }),
  drill(subject, [first(write, 'very late, in flight')], [], inFlight[place % inFlight.length]),
]);

/** The process dies between the send of a probe and its answer, or just before the send. */
const crashedProbes = all.flatMap(([write, subject], place) =>
  bodyChecks.map((readings, at) => {
    const side = (place + at) % 3 === 0 ? 'before' : 'after';
    const crash = happens(`probe ${writes[write].path}:${side}`, 1 + (at % 2), { do: 'crash' });
    return drill(subject, [first(write, lost[(place + at) % lost.length])], [crash], readings);
  }),
);

/** The other answers that a probe can get. */
const answeredProbes = toProbes.map((answer, at) => {
  const [write, subject] = all[at % all.length] as (typeof all)[number];
  const faults = [first(write, lost[at % lost.length]), first(write, answer)];
  return drill(subject, faults, [], bodyChecks[at % bodyChecks.length]);
});

/** A task that is reported as failed, and whose work shows minutes later. */
const shownLater = withTask.flatMap(([write, subject]) =>
  readingsOf(write, subject).map((readings) => ({
    ...drill(subject, [first(write, 'task fails, shown later')], [], readings),
    durations: slowTasksShownLater,
  })),
);

/** A CI job is killed, and its rerun starts from an empty state at once: with the answer lost, or with the task under way. */
const rerunJobs = all.flatMap(([write, subject]) =>
  [undefined, 'reset after', '500 after'].flatMap((what, at) => ({
    ...drill(
      subject,
      what === undefined ? [] : [first(write, what)],
      [happens(`${writes[write].path}:after`, 1, { do: 'lose_state' })],
      { ...bodyChecks[at], ...visibilities[write]?.at(-1) },
    ),
    ...(at === 0 ? {} : { durations: slowTasks }),
    pausesMs: [second],
  })),
);

/** Conditions that refuse a probe for a while: a token, a payment, a permission; before the key is checked or after. */
const refusedQuestions = all.flatMap(([write, subject], at) => {
  const whats: readonly Disturbance[] = [
    { do: 'mutate', mutation: { do: 'set_standing', standing: 'suspended' } },
    { do: 'token', to: 'revoked', runs: 2 },
    { do: 'token', to: 'read', runs: 2 },
  ];
  const readings: readonly Partial<Readings>[] = [
    { paymentCheck: 'beforeKey' },
    { stored401: true },
    { scopeCheck: 'beforeKey' },
  ];
  return whats.map((what, nth) =>
    drill(
      subject,
      [first(write, lost[(at + nth) % lost.length])],
      [happens(`${writes[write].path}:after`, 1, what)],
      readings[nth],
    ),
  );
});

const drills: readonly Drill[] = [
  ...slowEffects,
  ...lateOriginals,
  ...crashedProbes,
  ...answeredProbes,
  ...shownLater,
  ...rerunJobs,
  ...refusedQuestions,
];

/** Spreads the drills over the numbers; a prime that is no factor of how many there are. */
const stride = 37;
export const slowDrillCount = drills.length;

/** The drill of that number, of slow work, late requests and the questions that they raise. */
export function slowDrillOf(number: number): Drill {
  return drills[(number * stride) % drills.length] as Drill;
}

/** The default first. No list shows a server without an address, under any reading. */
function readingsOf(write: Write, subject: string): readonly Partial<Readings>[] {
  return subject === 'bare server' ? [{}] : [{}, ...(visibilities[write] ?? [])];
}

function drill(
  subject: string,
  faults: readonly FaultRule[],
  incidents: readonly Incident[],
  readings: Partial<Readings> = {},
): Drill {
  const specs = subjects[subject] ?? profiledSubjects[subject] ?? [];
  const profile = subject in profiledSubjects ? ({ profile: true } as const) : {};
  return { state: 'memory', specs, faults, incidents, readings, pausesMs: [minute, 10 * minute], ...profile };
}

function first(write: Write, what: string | undefined): FaultRule {
  const action = { ...writeFaults, ...slowFaults }[what ?? ''] as FaultAction;
  return faultRule({ path: writes[write].name, nth: 1 }, action);
}

function happens(boundary: string, nth: number, what: Disturbance): Incident {
  return { at: { boundary, nth }, what };
}
