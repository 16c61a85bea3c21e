import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Emulator } from '../../src/emulator/emulator.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import type { Project } from '../../src/emulator/world.ts';
import { served } from './run.ts';
import { jsonLines, Workspace } from './workspace.ts';

/** A faster clock would make the windows of the client shorter than the pauses of a busy machine. */
const speed = 500;
/** Runs of `apply` in which an operator who follows the remedies converges. */
const mostRuns = 6;

/** A spec file without its first lines. */
export type Sections = Readonly<Record<string, unknown>>;

/** The key of each entry, and the id of its resource in the emulator. */
export type Truth = Readonly<Record<string, string | number>>;

interface BlockedLine {
  readonly key: string;
  readonly code: string;
  readonly resolve: string;
}

interface Applied {
  readonly code: number | null;
  readonly blocked: readonly BlockedLine[];
}

/** The smallest server, and the same with an address of its own. */
export const bare = {
  ...{ server_type: 'sliders-1', image: 'ubuntu-24.04', cores: 1, memory_mb: 1024, disk_gb: 20 },
};
export const withNew = { ...bare, public_ipv4: { new: true } };
/** Entries that leave the spec are deleted. */
export const prune = { settings: { prune: true, max_deletions: 9 } };
/** The entry under another key. */
export const from = (key: string, entry: object) => ({ ...entry, moved: { from: key } });

/** A project behind a served emulator. Each operator has a folder with a file and a state. */
export class Scene {
  readonly emulator: Emulator;
  readonly #env: Readonly<Record<string, string>>;

  private constructor(emulator: Emulator, env: Readonly<Record<string, string>>) {
    this.emulator = emulator;
    this.#env = env;
  }

  /** @param token of the operators */
  static async start(readings: Partial<Readings> = {}, token: 'env' | 'readEnv' = 'env') {
    const { emulator, [token]: env } = await served({ speed, readings });
    const scene = new Scene(emulator, env);
    return { scene, operator: scene.operator() };
  }

  /** With an operator who has applied the spec. `bought`: the resources that exist then. */
  static async applied(sections: Sections, readings: Partial<Readings> = {}) {
    const { scene, operator } = await Scene.start(readings);
    await operator.applied(sections);
    return { scene, operator, bought: scene.live };
  }

  operator(): Operator {
    return new Operator(this.#env);
  }

  /** The API answers each of these writes so while the work is done, and does nothing else. */
  async answering<Result>(
    path: string,
    answer: { readonly status: number; readonly code: string; readonly effect?: 'done' },
    work: () => Promise<Result>,
  ): Promise<Result> {
    this.emulator.setFaults([faultRule({ path }, { do: 'answer', effect: 'none', ...answer })]);
    const result = await work();
    this.emulator.setFaults([]);
    return result;
  }

  /** An operator who follows the remedies converges with these resources. */
  async keeps(live: Scene['live'], operator: Operator, truth: Truth): Promise<void> {
    await operator.converge(truth);
    expect(this.live).toEqual(live);
  }

  get project(): Project {
    return this.emulator.world.projects[0] as Project;
  }

  /** Ids of all servers, addresses, networks except for the default one, and ISOs. */
  get live(): Readonly<Record<'servers' | 'ips' | 'networks' | 'isos', readonly (string | number)[]>> {
    const { servers, ips, networks, isos } = this.project;
    const ids = <Id>(list: readonly { readonly id: Id }[]) => list.map(({ id }) => id);
    return {
      servers: ids(servers),
      ips: ids(ips),
      networks: ids(networks.filter(({ isDefault }) => !isDefault)),
      isos: ids(isos),
    };
  }
}

/** A folder with `vdcsync.yaml` and a state of its own. */
export class Operator extends Workspace {
  constructor(env: Readonly<Record<string, string>>) {
    super({ 'profile.yaml': `time_scale: ${speed}\n` }, env);
  }

  declare(sections: Sections): void {
    const model = { version: 1, project: { id: 4711 }, ...sections };
    this.write('vdcsync.yaml', JSON.stringify(model));
  }

  loseState(): void {
    rmSync(join(this.cwd, '.vdcsync'), { recursive: true });
  }

  /** @returns a function that puts the state of now back */
  copyState(): () => void {
    const [state, copy] = [join(this.cwd, '.vdcsync'), join(this.cwd, 'copy')];
    cpSync(state, copy, { recursive: true });
    return () => {
      this.loseState();
      cpSync(copy, state, { recursive: true });
    };
  }

  /** @returns the exit code and the blocked operations of `apply`; it never fails otherwise */
  async apply(...flags: readonly string[]): Promise<Applied> {
    const { code, stdout, stderr } = await this.run('apply --yes --format json', ...flags);
    expect({ code, stderr: [0, 3].includes(code ?? -1) ? '' : stderr }).toEqual({
      code: expect.toSatisfy((each) => each === 0 || each === 3),
      stderr: '',
    });
    const { blocked } = jsonLines(stdout).at(-1);
    return { code, blocked };
  }

  /** Applies another spec. */
  edit(sections: Sections): Promise<Applied> {
    this.declare(sections);
    return this.apply();
  }

  /** The same with a spec that converges. */
  async applied(sections: Sections): Promise<void> {
    expect(await this.edit(sections)).toEqual({ code: 0, blocked: [] });
  }

  /** Applies, and runs one command of each remedy that is true in the client area, until the project converges. */
  async converge(truth: Truth): Promise<void> {
    for (let runs = 0; runs < mostRuns; runs++) {
      const { code, blocked } = await this.apply();
      if (code === 0) return;
      const commands = blocked.flatMap((each) => trueCommand(each, truth) ?? []);
      expect(commands, JSON.stringify(blocked, null, 1)).not.toEqual([]);
      for (const command of new Set(commands)) await this.out(command);
    }
    throw new Error(`not converged after ${mostRuns} runs`);
  }
}

/** The command that binds the key to its resource, or that states the truth about a resource that does not exist. */
function trueCommand({ key, resolve }: BlockedLine, truth: Truth): string | undefined {
  const id = truth[key];
  const commands = [...resolve.matchAll(/vdcsync ((?:adopt|resolve|ignore) [^|;(`]+)/g)].map(
    ([, words = '']) => words.trim(),
  );
  const fitting = commands.flatMap((command) => {
    const [verb, ...words] = command.split(' ');
    if (verb === 'ignore') return [];
    if (words.includes('--absent')) return id === undefined ? [command] : [];
    if (id === undefined) return [];
    const named = words.at(-1);
    return named === 'ID' || named === String(id) ? [command.replace(/\S+$/, String(id))] : [];
  });
  return fitting[0];
}
