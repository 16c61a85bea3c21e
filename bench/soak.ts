import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { faultRule } from '../src/emulator/faults.ts';
import { startEmulator } from '../src/emulator/http-server.ts';

// `npm run soak`: the real daemon against the emulator for some thousand passes, faster than
// life, with faults and with changes behind its back. It ends with an error where memory,
// handles or open files grow, where anything was bought twice, or where it has not converged.

const { values } = parseArgs({
  options: {
    passes: { type: 'string', default: '2016' },
    speed: { type: 'string', default: '3000' },
    servers: { type: 'string', default: '10' },
  },
});
const passes = Number(values.passes);
const speed = Number(values.speed);
const servers = Number(values.servers);

const spec = (policy: string) => `version: 1
project: { id: 4711 }
settings: { exclusive: true, prune: true, max_deletions: 20 }
networks:
  backend: { cidr: 10.20.0.0/24 }
servers:
${Array.from(
  { length: servers },
  (_, index) => `  web-${index}:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: { new: true }
    network_interfaces: [backend]
    firewall: { enabled: true, policy_in: ${policy}, rules: [] }
`,
).join('')}`;

interface Sample {
  readonly passes: number;
  readonly rssMb: number;
  readonly heapMb: number;
  readonly handles: number;
  readonly files: number;
}

const folder = mkdtempSync(join(tmpdir(), 'vdcsync-soak-'));
const file = join(folder, 'vdcsync.yaml');
const cli = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const api = await startEmulator({
  speed,
  faults: [
    faultRule({ method: 'GET', probability: 0.01 }, { do: 'answer', status: 503 }),
    faultRule({ method: 'PUT', probability: 0.05 }, { do: 'reset', effect: 'done' }),
    faultRule({ method: 'GET', probability: 0.002 }, { do: 'reset' }),
  ],
});
let daemon: ChildProcess | undefined;
try {
  process.exitCode = await soak();
} finally {
  daemon?.kill('SIGKILL');
  await api.close();
  rmSync(folder, { recursive: true, force: true });
}

async function soak(): Promise<number> {
  writeFileSync(file, spec('drop'));
  writeFileSync(join(folder, 'profile.yaml'), `time_scale: ${speed}\n`);
  const child = spawn(process.execPath, [cli, 'run', '--listen', '127.0.0.1:0'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      VDC_BASE_URL: api.baseUrl,
      VDC_TOKEN: api.projects[0]?.tokens.readWrite ?? '',
      VDCSYNC_API_PROFILE: 'profile.yaml',
      VDCSYNC_ALLOW_EPHEMERAL_STATE: '1',
      LOG_FORMAT: 'json',
    },
  });
  daemon = child;
  let errors = '';
  let port = 0;
  child.stderr.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().split('\n')) {
      if (line.includes('vdcsync runs')) port = Number((JSON.parse(line) as { port: number }).port);
      if (line.includes('Warning') || line.includes('"fatal"')) errors += `${line}\n`;
    }
  });
  while (port === 0) await pause(50);
  const samples: Sample[] = [];
  let change = 0;
  for (let done = 0; done < passes; ) {
    await pause(1_000);
    const sample = await sampleOf(child.pid ?? 0, port);
    done = sample.passes;
    samples.push(sample);
    disturb(change++);
    if (samples.length % 20 === 0) print(sample);
  }
  api.emulator.setFaults([]);
  const converged = await settle(port);
  const last = await sampleOf(child.pid ?? 0, port);
  print(last);
  child.kill('SIGTERM');
  const code = await new Promise((resolve) => child.once('exit', resolve));
  return judge(samples, { converged, code, errors });
}

/** In turn: somebody opens a firewall, deletes an address's server, edits the file. */
function disturb(count: number): void {
  const project = api.emulator.world.projects[0];
  const server = project?.servers[count % Math.max(1, project.servers.length)];
  if (server === undefined || server.status !== 'active') return;
  if (count % 5 === 4) writeFileSync(file, spec(count % 10 === 9 ? 'drop' : 'accept'));
  else if (count % 40 === 21) api.emulator.mutate({ do: 'delete_server', id: server.id });
  else api.emulator.mutate({ do: 'set_firewall', server_id: server.id, enabled: false });
}

async function sampleOf(pid: number, port: number): Promise<Sample> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const sum = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? ([0-9.e+]+)$`, 'gm'))].reduce(
      (total, [, value]) => total + Number(value),
      0,
    );
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return {
    passes: sum('vdcsync_passes_total'),
    rssMb: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024,
    heapMb: sum('vdcsync_nodejs_heap_size_used_bytes') / 1024 / 1024,
    handles: sum('vdcsync_nodejs_active_handles_total'),
    files: readdirSync(`/proc/${pid}/fd`).length,
  };
}

async function settle(port: number): Promise<boolean> {
  for (let tries = 0; tries < 300; tries += 1) {
    const status = (await (await fetch(`http://127.0.0.1:${port}/status`)).json()) as {
      projects: { converged: boolean }[];
    };
    const project = api.emulator.world.projects[0];
    const whole = project?.servers.length === servers && project.ips.length === servers;
    if (whole && status.projects.every(({ converged }) => converged)) return true;
    await pause(200);
  }
  return false;
}

/** The second half against the first, but for its start: what leaks grows all the time. */
function judge(
  samples: readonly Sample[],
  end: { converged: boolean; code: unknown; errors: string },
): number {
  const half = Math.floor(samples.length / 2);
  const [before, after] = [samples.slice(Math.floor(half / 4), half), samples.slice(half)];
  const middle = (each: readonly Sample[], name: keyof Sample) =>
    each.map((sample) => sample[name]).sort((a, b) => a - b)[Math.floor(each.length / 2)] ?? 0;
  const problems = [
    ...(['rssMb', 'heapMb', 'handles', 'files'] as const).flatMap((name) => {
      const [first, second] = [middle(before, name), middle(after, name)];
      process.stdout.write(`${name}: first half ${first.toFixed(1)}, second half ${second.toFixed(1)}\n`);
      return second > first * 1.15 + 3 ? [`${name} grows`] : [];
    }),
    ...(end.converged ? [] : ['it has not converged with exactly what the file names']),
    ...(end.code === 0 ? [] : [`it ended with ${String(end.code)}`]),
    ...(end.errors === '' ? [] : [end.errors]),
  ];
  process.stdout.write(problems.length === 0 ? 'steady\n' : `${problems.join('\n')}\n`);
  return problems.length === 0 ? 0 : 1;
}

function print({ passes: done, rssMb, heapMb, handles, files }: Sample): void {
  process.stdout.write(
    `${done} passes: ${rssMb.toFixed(0)} MB resident, ${heapMb.toFixed(0)} MB heap, ${handles} handles, ${files} open files\n`,
  );
}
