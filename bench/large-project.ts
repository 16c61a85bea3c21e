import { Metrics } from '../src/daemon/http/metrics.ts';
import { renderPage } from '../src/daemon/http/page.ts';
import { statusOf } from '../src/daemon/http/status.ts';
import { viewOf } from '../src/view/build.ts';
import { largeProject, largeProjects } from '../test/support/large-project.ts';

/** The largest project that a spec may declare. */
const resources = Number(process.argv[2] ?? 10_000);
const rounds = 5;

/**
 * CPU time and size of the answers of the daemon about the largest project. The time is that of the thread, so that
 * other work of the machine does not count; each is the median of some rounds.
 */
process.stdout.write('project                    answer      CPU ms      KB\n');
for (const name of largeProjects) {
  const { input, facts, daemon } = await largeProject(resources, name);
  const metrics = new Metrics('0.0.0', { ofProcess: false });
  const answers = {
    '/': async () => String(await renderPage({ ...input, view: viewOf(facts) }, 'nonce')),
    '/status': async () => JSON.stringify(await statusOf(daemon, '0.0.0', 0)),
    '/metrics': () => metrics.render(daemon),
  };
  for (const [path, answer] of Object.entries(answers)) {
    const { cpuMs, kilobytes } = await measure(answer);
    const project = `${resources.toLocaleString('en')} ${name}`;
    process.stdout.write(
      `${project.padEnd(26)} ${path.padEnd(9)} ${cpuMs.toFixed(0).padStart(8)} ${kilobytes.toFixed(0).padStart(7)}\n`,
    );
  }
}

async function measure(answer: () => Promise<string>) {
  const times: number[] = [];
  let kilobytes = 0;
  for (let round = 0; round < rounds; round += 1) {
    const before = process.threadCpuUsage();
    kilobytes = (await answer()).length / 1024;
    const { user, system } = process.threadCpuUsage(before);
    times.push((user + system) / 1_000);
  }
  return { cpuMs: times.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0, kilobytes };
}
