import { availableParallelism } from 'node:os';
import { type Job, jobs } from './configurations.ts';
import { missingPrograms, type Verdict, Verifier } from './verifier.ts';

/** `npm run model`: verifies every configuration and prints the figures of docs/contributing/proof.md. */

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
  const isRight = job.finds === undefined ? error === undefined : job.finds.test(error ?? '');
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
for (const group of new Set(jobs.map((job) => job.group))) {
  console.log(`${group}: ${ofGroup(group).length} configurations, ${statesOf(group)} states`);
}
console.log(
  `${took(startedAt, compiledAt)} to compile, ${took(compiledAt, performance.now())} to verify, ${wrong} wrong`,
);
process.exitCode = wrong === 0 ? 0 : 1;
