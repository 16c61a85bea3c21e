import { cpSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { main } from '../../src/cli/program.ts';
import type { Io } from '../../src/cli/terminal.ts';
import { type Chance, chance } from '../../src/simulation/chance.ts';
import { newFolder } from '../support/folders.ts';
import { type VirtualClock, virtualClock } from '../support/virtual-clock.ts';
import { masked, serve, type Until } from './process.ts';
import { screens } from './screens.ts';

/** Also those of earlier test files of this worker, which are removed by now. */
const folders: string[] = [];

interface Input {
  readonly env?: Readonly<Record<string, string>>;
  /** Typed at a terminal. */
  readonly typed?: string;
  /** Comes from a pipe. */
  readonly piped?: string;
  /** Shows only so many lines of the output, where a generator outside these tests writes the rest. */
  readonly head?: number;
  /** Standard error is a terminal of 80 by 24. */
  readonly live?: boolean;
  /** With the clock of the machine, for an emulator that is served over HTTP. The times are masked. */
  readonly realTime?: boolean;
}

/**
 * A folder with a spec, its state and its emulated project, and the transcript of the commands that run there. Clock
 * and chance are virtual, so the same commands give the same texts.
 */
export class Scene {
  readonly cwd: string;
  readonly #clock: VirtualClock;
  readonly #chance: Chance;
  #transcript: string[] = [];

  private constructor(cwd: string, start: number, seed: number) {
    this.cwd = cwd;
    this.#chance = chance(seed);
    this.#clock = virtualClock(start);
  }

  /** @param files by name; `vdcsync.yaml` is the spec that commands read */
  static with(files: Readonly<Record<string, string>> = {}): Scene {
    const scene = new Scene(sceneFolder(), Date.UTC(2026, 0, 5, 9), 1);
    for (const [name, content] of Object.entries(files)) scene.write(name, content);
    return scene;
  }

  /** The same folder and time, as a scene of its own with an empty transcript. */
  copy(): Scene {
    // A moment later, so that the requests of the first scene do not count in the second.
    const scene = new Scene(sceneFolder(), this.#clock.now() + 60_000, 2);
    cpSync(this.cwd, scene.cwd, { recursive: true });
    return scene;
  }

  write(name: string, content: string): void {
    mkdirSync(dirname(join(this.cwd, name)), { recursive: true });
    writeFileSync(join(this.cwd, name), content);
  }

  read(name: string): string {
    return readFileSync(join(this.cwd, name), 'utf8');
  }

  remove(name: string): void {
    rmSync(join(this.cwd, name));
  }

  /** Puts a file into the transcript. */
  show(name: string): void {
    this.#transcript.push(`# ${name}\n${this.read(name)}`);
  }

  /** Takes over the transcript of another scene. */
  add(other: Scene): void {
    this.#transcript.push(...other.#transcript);
    other.#transcript = [];
  }

  /** Changes the spec, and says so in the transcript. */
  edit(what: string, change: (spec: string) => string): void {
    const spec = this.read('vdcsync.yaml');
    const edited = change(spec);
    if (edited === spec) throw new Error(`the edit changes nothing: ${what}`);
    this.write('vdcsync.yaml', edited);
    this.#transcript.push(`# ${what}\n`);
  }

  /** A change of the emulated project by another user. */
  outside(what: string, change: (world: EmulatedWorld) => void): void {
    const path = '.vdcsync/emulator.json';
    const world = JSON.parse(this.read(path)) as EmulatedWorld;
    change(world);
    this.write(path, JSON.stringify(world));
    this.#transcript.push(`# ${what}\n`);
  }

  /** Lets real time pass. */
  async wait(ms: number): Promise<void> {
    await this.#clock.advance(ms);
  }

  /** Without a line in the transcript. */
  async silently(args: readonly string[], input: Input = {}): Promise<string> {
    return (await this.#call(args, input)).stdout;
  }

  /**
   * Runs a command. Its call, its output and its exit code go to the transcript. Standard error is marked by `|`.
   */
  async run(args: readonly string[], input: Input = {}): Promise<string> {
    const { code, stdout, both } = await this.#call(args, input);
    const typed = input.typed === undefined ? '' : ` < ${JSON.stringify(input.typed.trimEnd())}`;
    const output = cut(input.realTime === true ? masked(both) : both, input.head);
    this.#record(`${args.map(word).join(' ')}${typed}`, output, code);
    return stdout;
  }

  /** Runs several commands, each as the words of its line. */
  async calls(...lines: readonly string[]): Promise<void> {
    for (const each of lines) await this.run(each.split(' '));
  }

  /**
   * Runs a command as a process of its own. Its output goes to the transcript, before that of the steps, with the
   * values masked that differ from run to run.
   *
   * @param steps awaits lines of the output; SIGTERM follows. Without them, the command ends by itself.
   */
  async serve(
    args: readonly string[],
    steps?: (until: Until) => Promise<void>,
    { head, env }: Pick<Input, 'head' | 'env'> = {},
  ): Promise<void> {
    const before = this.#transcript.splice(0);
    const { code, text } = await serve(args, this.cwd, steps, env);
    const during = this.#transcript.splice(0);
    this.#transcript.push(...before);
    this.#record(args.map(word).join(' '), cut(masked(text), head), code);
    this.#transcript.push(...during);
  }

  /** All since the last call. */
  transcript(): string {
    const all = this.#transcript.map((each) => (each.endsWith('\n') ? each : `${each}\n`)).join('\n');
    this.#transcript = [];
    return folders.reduce(
      (text, folder) => text.replaceAll(folder, '/srv/shop').replaceAll(folder, '/srv/shop'),
      all,
    );
  }

  #record(call: string, output: string, code: number | null): void {
    const end = code === 0 ? '' : `[exit code ${code}]\n`;
    this.#transcript.push(`$ vdcsync ${call}\n${output}${end}`);
  }

  async #call(args: readonly string[], { env = {}, typed, piped = '', live = false, realTime }: Input) {
    const stdin = Readable.from([typed ?? piped]);
    const written: (readonly [mark: string, text: string])[] = [];
    const stream = (mark: string) =>
      new Writable({
        write: (chunk, _encoding, done) => {
          written.push([mark, String(chunk)]);
          done();
        },
      });
    const [stdout, stderr] = [stream(''), stream('| ')];
    Object.assign(stdin, { isTTY: typed !== undefined });
    if (live) Object.assign(stderr, { isTTY: true, columns: 80, rows: 24 });
    const own = { random: this.#chance, cwd: this.cwd, env };
    const io = { stdin, stdout, stderr, ...own } as unknown as Io;
    const code = await (realTime === true
      ? main(args, io)
      : settled(this.#clock, main(args, { ...io, clock: this.#clock })));
    const out = written.filter(([mark]) => mark === '').map(([, text]) => text);
    return { code, stdout: out.join(''), both: live ? screens(written) : marked(written) };
  }
}

/** The parts of the saved emulator that scenes change. */
interface EmulatedWorld {
  readonly projects: readonly {
    standing: string;
    failNextTasks: number;
    readonly networks: { id: number; name: string; cidr: string; isDefault: boolean; deleting: boolean }[];
    readonly servers: { id: number }[];
    readonly ips: { id: number; server_id?: number | null }[];
  }[];
}

/** Advances the clock until the work is done. A module that is still loading sleeps on no clock: it is waited for. */
async function settled<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await clock.run(work);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('nothing sleeps')) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}

function sceneFolder(): string {
  const folder = newFolder('vdcsync-golden-');
  folders.push(realpathSync(folder));
  return folder;
}

/** In the order in which it was written, each line with the mark of its stream. */
function marked(written: readonly (readonly [mark: string, text: string])[]): string {
  let all = '';
  for (const [mark, text] of written) {
    const start = all === '' || all.endsWith('\n') ? mark : '';
    all += `${start}${text.replace(/\n(?=.)/gs, `\n${mark}`)}`;
  }
  return all === '' || all.endsWith('\n') ? all : `${all}\n`;
}

function cut(text: string, head: number | undefined): string {
  const lines = text.split('\n').slice(0, -1);
  return head === undefined || lines.length <= head
    ? text
    : `${lines.slice(0, head).join('\n')}\n[more lines]\n`;
}

function word(arg: string): string {
  return /^[\w./:=@,-]+$/.test(arg) ? arg : JSON.stringify(arg);
}
