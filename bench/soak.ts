import { parseArgs } from 'node:util';
import { median, type Soaked, soak } from './soaking.ts';

// `npm run soak`: the real daemon against the emulator for some thousand passes, faster than
// life, with faults and with changes behind its back. It ends with an error where memory,
// handles or open files grow, where anything was bought twice, or where it has not converged.

const { values } = parseArgs({
  options: {
    reconciliations: { type: 'string', default: '2016' },
    speed: { type: 'string', default: '3000' },
    servers: { type: 'string', default: '10' },
  },
});
const startedAt = performance.now();
process.exitCode = judge(
  await soak({
    reconciliations: Number(values.reconciliations),
    speed: Number(values.speed),
    servers: Number(values.servers),
    say: (line) => process.stdout.write(`${line}\n`),
  }),
);
process.stdout.write(`${Math.round((performance.now() - startedAt) / 1000)} s\n`);

/** The second half against the first, but for its start: what leaks grows all the time. */
function judge({ samples, converged, exitCode, warnings }: Soaked): number {
  const half = Math.floor(samples.length / 2);
  const [before, after] = [samples.slice(Math.floor(half / 4), half), samples.slice(half)];
  const problems = [
    ...(['rssMb', 'heapMb', 'handles', 'files'] as const).flatMap((name) => {
      const [first, second] = [median(before, name), median(after, name)];
      process.stdout.write(`${name}: first half ${first.toFixed(1)}, second half ${second.toFixed(1)}\n`);
      return second > first * 1.15 + 3 ? [`${name} grows`] : [];
    }),
    ...(converged ? [] : ['it has not converged with exactly what the file names']),
    ...(exitCode === 0 ? [] : [`it ended with ${String(exitCode)}`]),
    ...(warnings === '' ? [] : [warnings]),
  ];
  process.stdout.write(problems.length === 0 ? 'steady\n' : `${problems.join('\n')}\n`);
  return problems.length === 0 ? 0 : 1;
}
