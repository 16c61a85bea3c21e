import { parseArgs } from 'node:util';
import { questionClass } from '../../src/core/codes.ts';
import type { Story } from '../../src/simulation/story.ts';
import { askedByCode } from './asked-by-code.ts';
import { createCoverage, missingCoverage, wantedCoverage } from './coverage.ts';
import { earlierStates, pairsOfFaults, replacements, singleFaults } from './exhaustive.ts';
import { GuidedStories } from './guided.ts';
import { play } from './play.ts';
import { caseJobs, playAll, seedJobs } from './pool.ts';
import { shrink } from './shrink.ts';
import { type Failure, type Family, type Job, storyOf } from './worker.ts';

const usage = `npm run simulate -- [options]

  --seed N [--verbose]   plays one seed; --verbose prints its whole trace
  --seeds N              plays the first N seeds, and wants full coverage
  --seeds N --from M     plays N seeds from M on
  --actions              stories in which operators edit the spec and give commands
  --drills               the short ones of these, of a few edits whose order matters
  --guided               new pairs of trace lines choose the stories that are varied next
  --single, --pairs      every single fault at every boundary; pairs on purchases
  --cuts                 every earlier state put back, behind every write and at rest
  --replaced             a suspension at every boundary, after which another process has the state
  --single --from M      behind the first M of them; so with --pairs and --cuts
  --hours H              plays seeds for so long, from a random one on unless --from
  --threads N            as many as there are cores
  --keep-going           plays on after a failure; --no-shrink tells it as it is
`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    verbose: { type: 'boolean' },
    seeds: { type: 'string' },
    from: { type: 'string' },
    actions: { type: 'boolean' },
    drills: { type: 'boolean' },
    guided: { type: 'boolean' },
    single: { type: 'boolean' },
    pairs: { type: 'boolean' },
    cuts: { type: 'boolean' },
    replaced: { type: 'boolean' },
    hours: { type: 'string' },
    threads: { type: 'string' },
    'keep-going': { type: 'boolean' },
    'no-shrink': { type: 'boolean' },
    help: { type: 'boolean' },
  },
});
const shownLines = 40;
const family: Family = values.drills ? 'drills' : values.actions ? 'actions' : 'faults';

if (values.help) console.log(usage);
else if (values.seed !== undefined) await replay(Number(values.seed));
else await many();

/** Plays one seed, and tells how it went. */
async function replay(seed: number): Promise<void> {
  const { violation, trace, elapsedMs, runs } = await play(storyOf(family, seed));
  if (values.verbose) console.log(trace.join('\n'));
  if (violation === undefined) {
    console.log(`seed ${seed}: sound, ${runs} runs in ${Math.round(elapsedMs / 1000)} simulated seconds`);
    return;
  }
  await tell({ name: `seed ${seed}`, story: storyOf(family, seed), ...violation });
  process.exitCode = 1;
}

async function many(): Promise<void> {
  const coverage = createCoverage();
  const failures: Failure[] = [];
  const startedAt = performance.now();
  const endsAt = values.hours === undefined ? undefined : startedAt + Number(values.hours) * 3_600_000;
  let toldAt = startedAt;
  let played = 0;
  const stories = jobs();
  await playAll(
    stories,
    (done) => {
      played += done.played;
      if (stories instanceof GuidedStories) stories.learn(done);
      coverage.merge(done.hits);
      for (const failure of done.failures) {
        failures.push(failure);
        console.log(summary(failure));
      }
      if (performance.now() - toldAt > 10_000) {
        toldAt = performance.now();
        console.log(progress(played, failures.length, startedAt));
      }
      if (endsAt !== undefined && performance.now() > endsAt) return 'stop';
      return failures.length > 0 && !values['keep-going'] ? 'stop' : 'go on';
    },
    values.threads === undefined ? undefined : Number(values.threads),
  );
  console.log(progress(played, failures.length, startedAt));
  if (stories instanceof GuidedStories) console.log(`${stories.pairs} pairs of consecutive trace lines`);
  const [first] = failures;
  if (first !== undefined) await tell(first);
  tellQuestions(coverage, played);
  if (values.seeds !== undefined) tellCoverage(coverage, values.from === undefined && family === 'faults');
  if (failures.length === 0) return;
  process.exitCode = 1;
  for (const failure of failures) console.log(`  ${summary(failure)}`);
  console.log(`simulation: ${failures.length} failures, ${failures.map(({ name }) => name).join(', ')}`);
}

/** The story, the broken rule and the first line of its message. */
function summary({ name, rule, message }: Failure): string {
  return `${name}: ${rule} ${message.split('\n')[0]?.slice(0, 220)}`;
}

function jobs(): Iterator<Job> | AsyncIterator<Job> {
  const skipped = Number(values.from ?? 0);
  if (values.single) return caseJobs(singleFaults(), skipped);
  if (values.pairs) return caseJobs(pairsOfFaults(), skipped);
  if (values.cuts) return caseJobs(earlierStates(), skipped);
  if (values.replaced) return caseJobs(replacements(), skipped);
  const from = values.from ?? (values.hours === undefined ? 1 : Math.floor(Math.random() * 2 ** 31));
  const count = values.seeds === undefined ? Number.POSITIVE_INFINITY : Number(values.seeds);
  return values.guided
    ? new GuidedStories(family, Number(from), count)
    : seedJobs(Number(from), count, family);
}

function progress(played: number, failed: number, startedAt: number): string {
  const seconds = (performance.now() - startedAt) / 1000;
  return `${played} stories, ${failed} failures, ${Math.round(seconds)} s, ${(played / seconds).toFixed(1)} a second`;
}

function tellCoverage(coverage: ReturnType<typeof createCoverage>, complete: boolean): void {
  const missing = missingCoverage(coverage);
  const counts = [...coverage.hits].filter(([name]) => name.startsWith('count ')).sort();
  for (const [name, times] of counts) console.log(`${name.slice('count '.length)}: ${times}`);
  const wanted = wantedCoverage().length;
  console.log(`covered: ${wanted - missing.length} of ${wanted} rows × operations and sides of readings`);
  if (!complete) return;
  for (const name of missing) console.log(`not met: ${name}`);
  if (missing.length === 0) return;
  console.log(`simulation: ${missing.length} rows without a story`);
  process.exitCode = 1;
}

/** Code × how often an operator was asked (I16). */
function tellQuestions(coverage: ReturnType<typeof createCoverage>, played: number): void {
  const asked = askedByCode(coverage);
  const widest = Math.max(4, ...asked.map(({ code }) => code.length));
  const line = (
    code: string,
    asks: string,
    questions: string,
    stories: string,
    share: string,
    kinds: string,
  ) =>
    [
      code.padEnd(widest),
      asks.padEnd(10),
      questions.padStart(9),
      stories.padStart(8),
      share.padStart(7),
      kinds,
    ].join(' ');
  console.log(line('code', 'class', 'questions', 'stories', 'share', 'about'));
  for (const { code, questions, stories, kinds } of asked) {
    const share = `${((stories / Math.max(1, played)) * 100).toFixed(1)} %`;
    const about = kinds.map(([kind, times]) => `${kind} ${times}`).join(', ');
    console.log(
      line(code, questionClass(code) ?? 'refusal', String(questions), String(stories), share, about),
    );
  }
}

/** The smallest story that fails the same way, the end of its trace, and how to see it again. */
async function tell(failure: Failure): Promise<void> {
  const story = values['no-shrink']
    ? failure.story
    : await shrink(failure.story, (each) => fails(each, failure));
  const { trace, violation } = await play(story);
  console.log(`\n${failure.name} breaks ${failure.rule}: ${violation?.message ?? failure.message}`);
  console.log(`the smallest story: ${JSON.stringify(story, null, 1)}`);
  if (trace.length > shownLines) console.log(`… ${trace.length - shownLines} lines before`);
  for (const line of trace.slice(-shownLines)) console.log(line.slice(0, 260));
  if (failure.name.startsWith('seed '))
    console.log(
      `\nagain: npm run simulate -- ${family === 'faults' ? '' : `--${family} `}--seed ${failure.story.seed} --verbose`,
    );
}

async function fails(story: Story, { rule }: Failure): Promise<boolean> {
  return (await play(story)).violation?.rule === rule;
}
