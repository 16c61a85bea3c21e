import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Ended, folderWith, inProcess } from './run.ts';

type Files = Readonly<Record<string, string>>;

/** A folder with files, and the command in it. A call has the words of a command line, and further arguments as they are. */
export class Workspace {
  readonly cwd: string;
  readonly #env: Files;
  readonly #flags: readonly string[];

  constructor(files: Files, env: Files, flags: readonly string[] = []) {
    this.cwd = folderWith(files);
    this.#env = env;
    this.#flags = flags;
  }

  run(words: string, ...more: readonly string[]): Promise<Ended> {
    const args = [...words.split(' '), ...more, ...this.#flags];
    return inProcess(args, { cwd: this.cwd, env: this.#env });
  }

  /** What a call prints, which has to end well. */
  async out(words: string, ...more: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(words, ...more);
    expect({ words, code, stderr: code === 0 ? '' : stderr }).toEqual({ words, code: 0, stderr: '' });
    return stdout;
  }

  async json(words: string, ...more: readonly string[]) {
    return JSON.parse(await this.out(words, '--format', 'json', ...more));
  }

  /** The lines of `apply --format json`, whatever its end. */
  async events(words: string): Promise<ReturnType<typeof jsonLines>> {
    return jsonLines((await this.run(words, '--format', 'json')).stdout);
  }

  async code(words: string, ...more: readonly string[]): Promise<number | null> {
    return (await this.run(words, ...more)).code;
  }

  /** What a call says on standard error, which has to end with this code. */
  async refused(code: number, words: string, ...more: readonly string[]): Promise<string> {
    const { stderr, ...ended } = await this.run(words, ...more);
    expect({ words, code: ended.code }, stderr).toEqual({ words, code });
    return stderr;
  }

  async managed(): Promise<readonly string[]> {
    const { resources } = await this.json('status --offline');
    return (resources as readonly { readonly key: string }[]).map(({ key }) => key);
  }

  read(name: string): string {
    return readFileSync(join(this.cwd, name), 'utf8');
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.cwd, name), text);
  }

  remove(name: string): void {
    rmSync(join(this.cwd, name));
  }
}

/** With the embedded emulator. */
export function emulated(spec?: string, more: Files = {}, env: Files = {}): Workspace {
  return new Workspace({ ...(spec !== undefined && { 'vdcsync.yaml': spec }), ...more }, env, ['--emulator']);
}

export function jsonLines(text: string): readonly ReturnType<typeof JSON.parse>[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}
