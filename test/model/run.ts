import { availableParallelism } from 'node:os';
import { type Configuration, ending, limits, mistakes, sound } from './configurations.ts';
import { missingPrograms, type Property, type Verdict, Verifier } from './verifier.ts';

/** `npm run model`: verifies every configuration and prints the figures of docs/contributing/proof.md. */

interface Job extends Configuration {
  readonly group: string;
  readonly property: Property;
  readonly isSound: boolean;
}

const jobs: readonly Job[] = [
  ...sound.map((each) => ({ ...each, group: 'sound', property: 'safety' as const, isSound: true })),
  ...ending.map((each) => ({ ...each, group: 'ending', property: 'no cycles' as const, isSound: true })),
  ...limits.map((each) => ({ ...each, group: 'limit', property: 'safety' as const, isSound: false })),
  ...mistakes.map(({ name, settings, mistake, breaks }) => ({
    name,
    settings: { ...settings, [mistake]: 1 },
    group: 'mistake',
    property: breaks === 'every run ends' ? ('no cycles' as const) : ('safety' as const),
    isSound: false,
  })),
];

const missing = missingPrograms();
if (missing.length > 0) {
  process.stderr.write(`Install ${missing.join(' and ')} to verify the key protocol.\n`);
  process.exit(1);
}

const startedAt = performance.now();
const verifier = await Verifier.compile();
const compiledAt = performance.now();
const verdicts = new Map<Job, Verdict>();
const queue = [...jobs];
await Promise.all(
  Array.from({ length: availableParallelism() }, async () => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      verdicts.set(job, await verifier.verify(job.settings, job.property));
    }
  }),
);
verifier.dispose();

let wrong = 0;
for (const [job, { error, states, seconds }] of verdicts) {
  const isRight = (error === undefined) === job.isSound;
  if (!isRight) wrong += 1;
  const result = error === undefined ? 'no error' : `error: ${error.slice(0, 40)}`;
  console.log(
    [
      isRight ? 'ok   ' : 'WRONG',
      job.group.padEnd(7),
      String(states).padStart(9),
      `${seconds.toFixed(2)} s`,
      job.name,
      result,
    ].join('  '),
  );
}
const ofGroup = (group: string) => [...verdicts].filter(([job]) => job.group === group);
const statesOf = (group: string) => ofGroup(group).reduce((sum, [, { states }]) => sum + states, 0);
const took = (from: number, to: number) => `${((to - from) / 1000).toFixed(0)} s`;
for (const group of ['sound', 'ending', 'limit', 'mistake']) {
  console.log(`${group}: ${ofGroup(group).length} configurations, ${statesOf(group)} states`);
}
console.log(
  `${took(startedAt, compiledAt)} to compile, ${took(compiledAt, performance.now())} to verify, ${wrong} wrong`,
);
process.exitCode = wrong === 0 ? 0 : 1;
