import { readOnce } from '../src/daemon/sources/spec-thread.ts';
import { systemClock } from '../src/platform/system.ts';
import { operatorsSpec } from '../src/spec/environment.ts';

const head = 'version: 1\nproject: { id: 4711 }\n';
const rule = '{ direction: in, action: accept, protocol: tcp, destination_port: "22" }';
const many = (count: number, one: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => one(at)).join('');
const servers = (count: number) => `servers: {${many(count, (at) => `s${at.toString(36)}: {}, `)}}\n`;
const defaults = (rules: number) =>
  `defaults: { servers: { server_type: 1, image: a, cores: 1, memory_mb: 1, disk_gb: 1, firewall: { enabled: true, rules: [${`${rule}, `.repeat(rules)}] } } }\n`;

/** Specs that are as expensive as their size allows, as far as the limits of a file permit. */
const specs: Readonly<Record<string, string>> = {
  '120 default rules for 700 servers': head + defaults(120) + servers(700),
  '40 default rules for 900 servers': head + defaults(40) + servers(900),
  '9,999 addresses': `${head}ips: {${many(9_999, (at) => `a${at.toString(36)}: {}, `)}}\n`,
  '9,000 unknown fields': head + many(9_000, (at) => `field${at}: 1\n`),
  '1 MB of rules': `${head}servers:\n  a:\n    server_type: 1\n    image: a\n    firewall:\n      rules:\n${many(12_500, () => `        - ${rule}\n`)}`,
  '1 MiB of one text': `${head}networks: { a: { cidr: ${'1'.repeat(1_040_000)} } }\n`,
  '1 MiB of brackets': '['.repeat(1_040_000),
};

/** The time of the caller in which its event loop is blocked, and the time and memory of the thread. */
process.stdout.write('spec                                   KB  time ms  blocked ms  memory MB  result\n');
for (const [name, text] of Object.entries(specs)) {
  const before = process.threadCpuUsage();
  const began = performance.now();
  const base = process.memoryUsage().rss;
  let most = base;
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 20);
  const sources = [{ file: 'vdcsync.yaml', text }];
  const answer = await readOnce({ sources, environment: {}, trust: operatorsSpec }, systemClock);
  const ms = performance.now() - began;
  clearInterval(watch);
  const { user, system } = process.threadCpuUsage(before);
  const result = 'desired' in answer ? 'read' : 'problem' in answer ? 'refused' : answer.failure;
  process.stdout.write(
    `${name.padEnd(36)} ${(text.length / 1024).toFixed(0).padStart(4)} ${ms.toFixed(0).padStart(8)} ${((user + system) / 1_000).toFixed(0).padStart(11)} ${((most - base) / 1e6).toFixed(0).padStart(10)}  ${result}\n`,
  );
}
