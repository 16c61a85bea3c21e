import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { faultRule } from '../src/emulator/faults.ts';
import { type RunningEmulator, startEmulator } from '../src/emulator/http-server.ts';

export interface SoakOptions {
  readonly reconciliations: number;
  /** How many times faster than life. */
  readonly speed: number;
  readonly servers: number;
  readonly say?: (line: string) => void;
}

/** The daemon at one moment, as the system and its own metrics see it. */
export interface Sample {
  readonly reconciliations: number;
  readonly rssMb: number;
  readonly heapMb: number;
  readonly handles: number;
  readonly files: number;
}

export interface Soaked {
  readonly samples: readonly Sample[];
  /** With exactly what the file names, once the faults have stopped. */
  readonly converged: boolean;
  readonly exitCode: unknown;
  /** Crashes and warnings of Node, such as of listeners that pile up. */
  readonly warnings: string;
}

/** The real daemon against the emulator, with faults, with edits, and with somebody else's hand in the project. */
export async function soak({
  reconciliations,
  speed,
  servers,
  say = () => {},
}: SoakOptions): Promise<Soaked> {
  const folder = mkdtempSync(join(tmpdir(), 'vdcsync-soak-'));
  const file = join(folder, 'vdcsync.yaml');
  const faults = [
    faultRule({ method: 'GET', probability: 0.01 }, { do: 'answer', status: 503 }),
    faultRule({ method: 'PUT', probability: 0.05 }, { do: 'reset', effect: 'done' }),
    faultRule({ method: 'GET', probability: 0.002 }, { do: 'reset' }),
  ];
  const api = await startEmulator({ speed, faults });
  let daemon: Daemon | undefined;
  try {
    writeFileSync(file, specOf(servers, 'drop'));
    daemon = await startDaemon(api, folder, speed);
    const samples: Sample[] = [];
    for (let done = 0; done < reconciliations; ) {
      await pause(1_000);
      const sample = await sampleOf(daemon);
      done = sample.reconciliations;
      samples.push(sample);
      disturb(api, file, servers, samples.length);
      if (samples.length % 20 === 0) say(lineOf(sample));
    }
    api.emulator.setFaults([]);
    const converged = await settle(api, daemon, servers);
    say(lineOf(await sampleOf(daemon)));
    daemon.child.kill('SIGTERM');
    return { samples, converged, exitCode: await daemon.exited, warnings: daemon.warnings() };
  } finally {
    daemon?.child.kill('SIGKILL');
    await api.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The middle one of what was measured. */
export function median(samples: readonly Sample[], name: keyof Sample): number {
  const sorted = samples.map((sample) => sample[name]).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

interface Daemon {
  readonly child: ChildProcess;
  readonly url: string;
  readonly exited: Promise<unknown>;
  readonly warnings: () => string;
}

async function startDaemon(api: RunningEmulator, folder: string, speed: number): Promise<Daemon> {
  writeFileSync(join(folder, 'profile.yaml'), `time_scale: ${speed}\n`);
  const cli = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
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
  let warnings = '';
  let port = 0;
  child.stderr.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().split('\n')) {
      if (line.includes('vdcsync runs')) port = Number((JSON.parse(line) as { port: number }).port);
      if (line.includes('Warning') || line.includes('"fatal"')) warnings += `${line}\n`;
    }
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  while (port === 0 && child.exitCode === null) await pause(50);
  return { child, url: `http://127.0.0.1:${port}`, exited, warnings: () => warnings };
}

/** In turn: somebody opens a firewall, deletes an address's server, edits the file. */
function disturb({ emulator }: RunningEmulator, file: string, servers: number, count: number): void {
  const project = emulator.world.projects[0];
  const server = project?.servers[count % Math.max(1, project.servers.length)];
  if (server === undefined || server.status !== 'active') return;
  if (count % 5 === 4) writeFileSync(file, specOf(servers, count % 10 === 9 ? 'drop' : 'accept'));
  else if (count % 40 === 21) emulator.mutate({ do: 'delete_server', id: server.id });
  else emulator.mutate({ do: 'set_firewall', server_id: server.id, enabled: false });
}

async function sampleOf({ child, url }: Daemon): Promise<Sample> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const sum = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? ([0-9.e+]+)$`, 'gm'))].reduce(
      (total, [, value]) => total + Number(value),
      0,
    );
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return {
    reconciliations: sum('vdcsync_reconciliations_total'),
    rssMb: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024,
    heapMb: sum('vdcsync_nodejs_heap_size_used_bytes') / 1024 / 1024,
    handles: sum('vdcsync_nodejs_active_resources'),
    files: readdirSync(`/proc/${child.pid}/fd`).length,
  };
}

async function settle(api: RunningEmulator, { url }: Daemon, servers: number): Promise<boolean> {
  for (let tries = 0; tries < 1_200; tries += 1) {
    const status = (await (await fetch(`${url}/status`)).json()) as { projects: { converged: boolean }[] };
    const project = api.emulator.world.projects[0];
    const whole = project?.servers.length === servers && project.ips.length === servers;
    if (whole && status.projects.every(({ converged }) => converged)) return true;
    await pause(200);
  }
  return false;
}

function lineOf({ reconciliations: done, rssMb, heapMb, handles, files }: Sample): string {
  return `${done} passes: ${rssMb.toFixed(0)} MB resident, ${heapMb.toFixed(0)} MB heap, ${handles} handles, ${files} open files`;
}

const specOf = (servers: number, policy: string) => `version: 1
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
