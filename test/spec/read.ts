import { readFileSync } from 'node:fs';
import type { Desired } from '../../src/core/desired.ts';
import { SpecError } from '../../src/core/errors.ts';
import type { Environment } from '../../src/spec/environment.ts';
import { loadSpec } from '../../src/spec/load.ts';

/** A spec that holds what every spec needs, and these lines. */
export function spec(...lines: readonly string[]): string {
  return ['version: 1', 'project: {id: 4711}', ...lines, ''].join('\n');
}

export function read(text: string, environment: Environment = {}): Desired {
  return loadSpec([{ file: 'a.yaml', text }], environment);
}

/** Everything that is wrong with a spec, one message a line; empty where nothing is. */
export function errorsIn(text: string, environment: Environment = {}): string[] {
  return errorsOf(() => read(text, environment));
}

export function errorsOf(load: () => unknown): string[] {
  try {
    load();
    return [];
  } catch (error) {
    if (error instanceof SpecError) return error.message.split('\n');
    throw error;
  }
}

/** The cases of a file in `refused`: each is a title, a text, and behind `=>` the errors of that text. */
export function casesIn(name: string): readonly (readonly [string, string, readonly string[]])[] {
  const path = new URL(`refused/${name}.txt`, import.meta.url);
  const cases = readFileSync(path, 'utf8').split(/^## /m).slice(1);
  return cases.map((each) => {
    const [title = '', ...lines] = each.trimEnd().split('\n');
    const isError = (line: string) => line.startsWith('=> ');
    const text = lines.filter((line) => !isError(line)).map((line) => `${line}\n`);
    return [title, text.join(''), lines.filter(isError).map((line) => line.slice(3))];
  });
}
