import { seedServerTypes } from './catalogue.ts';
import { seedTokens } from './tokens.ts';
import { FIRST_IDS, newNetwork, type Project, WORLD_FORMAT, type World } from './world.ts';

/** A project that a new world begins with. Only its default network exists. */
export interface ProjectSeed {
  readonly id: number;
  readonly name: string;
}

/** The projects that the emulator serves by default. */
export const DEFAULT_PROJECTS: readonly ProjectSeed[] = [{ id: 4711, name: 'shop' }];

/** A new world: empty projects, a catalogue, two SSH keys of the account. */
export function createWorld(seed: string, projects: readonly ProjectSeed[], nowMs: number): World {
  return {
    format: WORLD_FORMAT,
    version: 1,
    seed,
    dice: hash(seed),
    clock: { callerMs: nowMs, emulatorMs: nowMs },
    account: {
      sshKeys: [
        { id: 101, name: 'laptop' },
        { id: 102, name: 'deploy' },
      ],
    },
    serverTypes: seedServerTypes(),
    projects: projects.map(seedProject),
    tokens: projects.flatMap((project) => seedTokens(seed, project.id)),
    buckets: {},
    nextId: { ...FIRST_IDS, network: FIRST_IDS.network + projects.length },
    poolCursors: {},
    executions: [],
    late: [],
    faultHits: {},
  };
}

function seedProject({ id, name }: ProjectSeed, index: number): Project {
  return {
    id,
    name,
    standing: 'active',
    pool: 'main',
    servers: [],
    ips: [],
    networks: [newNetwork({ id: FIRST_IDS.network + index, name: 'default', cidr: '10.0.0.0/24' }, true)],
    isos: [],
    backups: [],
    images: [],
    tasks: [],
    answers: [],
    goneServers: [],
    libraryBusyUntilMs: 0,
    failNextTasks: 0,
  };
}

/** FNV-1a: spreads a seed's text over 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const character of text) value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return value;
}
