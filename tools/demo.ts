import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';

// `npm run demo`: the product's own commands against its own emulator over HTTP, in a temporary folder.
// The demo ends automatically, removes the folder, and changes no file outside it.

/** A minute of the API in a second. */
const speed = 60;

const spec = `version: 1
project: { id: 4711 }
settings: { max_deletions: 5 }
networks:
  backend: { cidr: 10.20.0.0/24 }
ips:
  web: {}
servers:
  web-1:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 4
    memory_mb: 8192
    disk_gb: 80
    ssh_keys: [101]
    public_ipv4: { ip: web }
    network_interfaces: [backend]
    firewall:
      enabled: true
      policy_in: drop
      rules:
        - { direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "80,443" }
`;

const cli = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'vdcsync-demo-'));
let emulator: ChildProcess | undefined;

try {
  process.exitCode = await demo();
} finally {
  emulator?.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
}

async function demo(): Promise<number> {
  const started = performance.now();
  writeFileSync(join(folder, 'vdcsync.yaml'), spec);
  writeFileSync(join(folder, 'api-profile.yaml'), `time_scale: ${speed}\n`);
  say('A project as a file: vdcsync.yaml');
  print(spec);

  say('An emulated API on this machine. Its clock runs 60 times faster.');
  command(`vdcsync emulator --speed ${speed}`);
  const api = await startEmulator();
  const env = {
    VDC_BASE_URL: api.base_url,
    VDC_TOKEN: api.tokens.read_write,
    VDCSYNC_API_PROFILE: 'api-profile.yaml',
  };
  print(`serving project ${api.project.id} at ${api.base_url}\n`);
  command('export VDC_BASE_URL=… VDC_TOKEN=… VDCSYNC_API_PROFILE=api-profile.yaml');

  say('Check the file. This needs no API.');
  await vdcsync(env, 'validate');
  say('Show the operations. A plan changes nothing.');
  await vdcsync(env, 'plan');
  say('Apply them: in the right order, in parallel where possible, within the request limits.');
  await vdcsync(env, 'apply', '--yes');
  say('Plan again: nothing to do.');
  await vdcsync(env, 'plan');

  say('Another user opens the firewall.');
  await openFirewall(api);
  say('The next plan shows the drift …');
  await vdcsync(env, 'plan');
  say('… and apply corrects it.');
  await vdcsync(env, 'apply', '--yes');

  say('Show managed and billed resources.');
  await vdcsync(env, 'status');
  say('Show every write.');
  await vdcsync(env, 'history', '--limit', '3');

  say('Delete everything, so that nothing stays billed.');
  await vdcsync(env, 'destroy', '--yes');
  await vdcsync(env, 'status');
  const seconds = Math.round((performance.now() - started) / 1000);
  say(`The demo took ${seconds} seconds. Now write your own vdcsync.yaml, and run`);
  command('npm run -s vdcsync -- apply --emulator -f vdcsync.yaml');
  return 0;
}

interface Api {
  readonly base_url: string;
  readonly project: { readonly id: number };
  readonly tokens: { readonly read_write: string };
}

async function startEmulator(): Promise<Api> {
  const child = spawn(process.execPath, [cli, 'emulator', '--speed', String(speed), '--format', 'json'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  emulator = child;
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line) as Api;
  throw new Error('the emulator did not start');
}

/** Runs the real command, as an operator would; a failure ends the demo with its exit code. */
async function vdcsync(env: Record<string, string>, ...args: string[]): Promise<void> {
  command(`vdcsync ${args.join(' ')}`);
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (exit) => resolve(exit ?? 1));
  });
  if (code !== 0) throw new Error(`vdcsync ${args[0]} ended with ${code}`);
}

/** The emulator takes changes from outside at a path of its own. */
async function openFirewall({ base_url: url }: Api): Promise<void> {
  const root = url.replace(/\/v1$/, '/_emulator');
  const world = (await (await fetch(`${root}/world`)).json()) as {
    data: { projects: { servers: { id: number }[] }[] };
  };
  const server = world.data.projects[0]?.servers[0];
  const body = JSON.stringify({ do: 'set_firewall', server_id: server?.id, policy_in: 'accept', rules: [] });
  command(`curl -d '${body}' ${root}/mutations`);
  const answer = await fetch(`${root}/mutations`, { method: 'POST', body });
  if (!answer.ok) throw new Error(`the emulator refused the change: ${await answer.text()}`);
}

function say(text: string): void {
  print(`\n${styleText('bold', `── ${text}`, { stream: process.stdout })}\n`);
}

function command(text: string): void {
  print(`${styleText('cyan', `$ ${text}`, { stream: process.stdout })}\n`);
}

function print(text: string): void {
  process.stdout.write(text);
}
