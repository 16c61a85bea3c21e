import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Property, Settings } from './configurations.ts';

const run = promisify(execFile);
const model = fileURLToPath(new URL('key-protocol.pml', import.meta.url));

/** The programs that the verification needs and this machine lacks. */
export function missingPrograms(): readonly string[] {
  return ['spin', 'gcc'].filter(
    (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).error !== undefined,
  );
}

export type Verdict = Awaited<ReturnType<Verifier['verify']>>;

/** Compiles the model once. Settings are arguments of each run, so a run takes as long as its states do. */
export class Verifier {
  readonly #folder: string;
  #runs = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async compile(): Promise<Verifier> {
    const folder = mkdtempSync(join(tmpdir(), 'vdcsync-model-'));
    const cwd = folder;
    await run('spin', ['-a', model], { cwd });
    const common = ['-DMEMLIM=4096', 'pan.c'];
    await Promise.all([
      run('gcc', ['-Og', '-w', '-DSAFETY', '-o', 'safety', ...common], { cwd }),
      run('gcc', ['-O0', '-w', '-DNP', '-o', 'cycles', ...common], { cwd }),
    ]);
    return new Verifier(folder);
  }

  /** Explores every state of the configuration, or stops at the first error. */
  async verify(settings: Settings, property: Property) {
    const cwd = join(this.#folder, String(this.#runs++));
    const { stdout } = await run(
      'sh',
      ['-c', 'mkdir "$1" && cd "$1" && shift && exec "$@"', 'sh', cwd, ...command(property)],
      {
        cwd: this.#folder,
        env: Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)])),
        maxBuffer: 2 ** 26,
      },
    );
    const error = /^pan:1: (.*) \(at depth \d+\)/m.exec(stdout)?.[1];
    const errors = Number(/errors: (\d+)/.exec(stdout)?.[1]);
    const isWhole = !/Search not completed|max search depth too small|out of memory|reached -DMEMLIM/.test(
      stdout,
    );
    if (error === undefined && (errors !== 0 || !isWhole))
      throw new Error(`The search did not end:\n${stdout}`);
    return {
      /** The broken assertion, deadlock or cycle; undefined where the whole graph was explored and has none. */
      error,
      /** Whether spin wrote the steps that lead to the error. */
      trail: existsSync(join(cwd, 'key-protocol.pml.trail')),
      states: Number(/^\s*([\d.e+]+) states, stored/m.exec(stdout)?.[1]),
      seconds: Number(/elapsed time ([\d.e+-]+)/.exec(stdout)?.[1]),
    };
  }

  dispose(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function command(property: Property): readonly string[] {
  const common = ['-m20000', '-w20'];
  return property === 'safety' ? ['../safety', ...common] : ['../cycles', '-l', ...common];
}
