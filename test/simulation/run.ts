import { drawStory } from '../../src/simulation/draw.ts';
import { play } from '../../src/simulation/scenario.ts';

const from = Number(process.argv[2] ?? 1);
const count = Number(process.argv[3] ?? 20);
const verbose = process.argv[4] === 'v';
const started = performance.now();
let bad = 0;
for (let seed = from; seed < from + count; seed++) {
  const story = drawStory(seed);
  const outcome = await play(story);
  if (verbose) console.log(outcome.trace.join('\n'));
  if (outcome.violation) {
    bad++;
    const line = `${outcome.violation.rule}: ${outcome.violation.message.split('\n').slice(0, 3).join(' ').slice(0, 260)}`;
    console.log(seed, line);
  }
}
console.log({ bad, count, perSecond: (count / (performance.now() - started)) * 1000 });
