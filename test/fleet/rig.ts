import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { FaultRule } from '../../src/emulator/faults.ts';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { folderWith } from '../cli/run.ts';
import { type DaemonOptions, emulate, type RunningDaemon, startDaemon, until } from '../daemon/support.ts';
import { type PostgresServer, sql } from '../support/postgres.ts';

export { sql };

export const ids = [4711, 4712, 4713, 4714];

export const specOf = (id: number, more = '') => `version: 1
project: { id: ${id}, token_env: TOKEN_${id} }
settings: { exclusive: true, max_deletions: 9 }
networks:
  backend: { cidr: 10.20.0.0/24 }
${more}`;

export const withServer = `servers:
  web-1:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: { new: true }
    network_interfaces: [backend]
    firewall: { enabled: true, policy_in: drop, rules: [] }
`;

/** A database of the test's own. */
export async function database(server: PostgresServer, name: string): Promise<string> {
  await sql(server.url(), `CREATE DATABASE ${name}`);
  return server.url(name);
}

export function cloud(faults: readonly FaultRule[] = [], speed = 60): Promise<RunningEmulator> {
  return emulate({ faults, speed, projects: ids.map((id) => ({ id, name: `project ${id}` })) });
}

export function specs(folder: string, more = ''): void {
  mkdirSync(join(folder, 'specs'), { recursive: true });
  for (const id of ids) writeFileSync(join(folder, 'specs', `${id}.yaml`), specOf(id, more));
}

export function folderOfSpecs(more = ''): string {
  const folder = folderWith();
  specs(folder, more);
  return folder;
}

type ReplicaOptions = Pick<DaemonOptions, 'args' | 'env' | 'speed' | 'program'>;

export function replica(
  api: RunningEmulator,
  state: string,
  folder: string,
  { args = ['-f', 'specs'], env = {}, ...others }: ReplicaOptions = {},
): Promise<RunningDaemon> {
  const tokens = ids.map((id) => [`TOKEN_${id}`, api.emulator.tokens(id).readWrite] as const);
  const all = { ...Object.fromEntries(tokens), ...env };
  return startDaemon(api, { ...others, folder, args: ['--state', state, ...args], env: all });
}

export interface Shared {
  readonly fleet: {
    readonly replica: string;
    readonly leads: boolean;
    readonly rollout: Readonly<Record<string, unknown>> | null;
    readonly rollouts: readonly { readonly phase: string }[];
    readonly projects: readonly {
      readonly id: number;
      readonly worker: string | null;
      readonly condition: string | null;
      readonly last_reconciliation: { readonly replica: string; readonly ended_at: string } | null;
    }[];
  };
}

export const fleetOf = async ({ status }: RunningDaemon) => ((await status()) as unknown as Shared).fleet;

export function allConverged(api: RunningEmulator, daemon: RunningDaemon): Promise<Shared['fleet']> {
  return until(
    () => fleetOf(daemon),
    ({ projects }) =>
      projects.length === ids.length &&
      projects.every(({ condition }) => condition === 'converged') &&
      api.emulator.world.projects.every(({ networks }) => networks.some(({ name }) => name === 'backend')),
  );
}

/** A replica whose projects have converged, alone with its database. */
export async function restingFleet(
  server: PostgresServer,
  name: string,
  { folder = folderOfSpecs(), ...options }: ReplicaOptions & { readonly folder?: string } = {},
) {
  const [api, state] = [await cloud(), await database(server, name)];
  const first = await replica(api, state, folder, options);
  await allConverged(api, first);
  return { api, state, folder, first };
}

/** The same for every project. */
export const eachOf = <Value>(value: Value): Value[] => ids.map(() => value);

export const workersOf = async (daemon: RunningDaemon) =>
  (await fleetOf(daemon)).projects.map(({ worker }) => worker);

export const conditionsOf = async (daemon: RunningDaemon) =>
  (await fleetOf(daemon)).projects.map(({ condition }) => condition);

/** The replica that made the last reconciliation of each project. */
export const lastReplicasOf = async (daemon: RunningDaemon) =>
  (await fleetOf(daemon)).projects.map((each) => each.last_reconciliation?.replica);

/** The projects that have a network of this name. */
export const projectsWith = ({ emulator }: RunningEmulator, network = 'extra') =>
  emulator.world.projects.flatMap(({ id, networks }) =>
    networks.some(({ name }) => name === network) ? [id] : [],
  );

/** What an operator pays for, project by project. */
export const billed = ({ emulator }: RunningEmulator) =>
  emulator.world.projects.map(({ servers, ips }) => [servers.length, ips.length]);

/** Under how many keys each project was sold its server: a second one is a second server. */
export const creations = ({ emulator }: RunningEmulator, of = ids) =>
  of.map((id) => {
    // A process that is killed before its first byte leaves a key that is asked by a probe, and then fenced.
    const sent = emulator.requests.filter(({ project, method, url, status }) => {
      return project === id && method === 'POST' && url.endsWith('/servers') && status === 202;
    });
    return new Set(sent.map(({ key }) => key)).size;
  });

/** Each project has one server with one address, and was sold no other one. */
export function expectBoughtOnce(api: RunningEmulator): void {
  expect(billed(api)).toEqual(eachOf([1, 1]));
  expect(creations(api)).toEqual(eachOf(1));
}

/** The replica that works on a project whose server exists already, and that has not ended. */
async function workingReplica(daemon: RunningDaemon, api: RunningEmulator): Promise<string> {
  const bought = (project: number) => (billed(api)[ids.indexOf(project)]?.[0] ?? 0) > 0;
  const ask = async () => {
    const { projects } = await fleetOf(daemon);
    return projects.flatMap(({ id, worker }) => (worker !== null && bought(id) ? [worker] : []))[0] ?? '';
  };
  return until(ask, (worker) => worker !== '');
}

/** Two replicas that work on the same projects, each with a server, and the place of the one that reconciles now. */
export async function twoReplicas(api: RunningEmulator, state: string) {
  const folders = [folderOfSpecs(withServer), folderOfSpecs(withServer)];
  const replicas = await Promise.all(folders.map((folder) => replica(api, state, folder)));
  const names = await Promise.all(replicas.map(async (each) => (await fleetOf(each)).replica));
  const working = names.indexOf(await workingReplica(replicas[0] as RunningDaemon, api));
  return { replicas, names, working };
}
