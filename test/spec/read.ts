import { readFileSync } from 'node:fs';
import type { Desired } from '../../src/core/desired.ts';
import { formatDiagnostic, SpecError } from '../../src/core/errors.ts';
import type { Environment } from '../../src/spec/environment.ts';
import { loadSpec, type Source } from '../../src/spec/load.ts';

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

/** The variables that a case in `refused` may name. */
const variables: Environment = {
  ...{
    NUMBER: '4711',
    WORD: 'web',
    TIME: '24h',
    EMPTY: '',
    SECRET: 'hunter2-hunter2',
    CIDR: '10.77.88.99/24',
  },
};

/** All that `validate` reports: the errors, or the warnings of a spec without an error. */
export function reportedOf(sources: readonly Source[]): string[] {
  let desired: Desired | undefined;
  const errors = errorsOf(() => {
    desired = loadSpec(sources, variables);
  });
  const cautions = desired?.resources.flatMap((each) => each.cautions ?? []) ?? [];
  return [
    ...errors,
    ...cautions.map(({ position, message }) =>
      formatDiagnostic({ position, message: `warning: ${message}` }),
    ),
  ];
}

/**
 * The cases of a file in `refused`: each is a title, the text of `a.yaml`, and behind `=>` all that is reported. Further
 * files follow a line `--- NAME`, and overlays a line `+++ NAME`.
 */
export function casesIn(name: string) {
  const path = new URL(`refused/${name}.txt`, import.meta.url);
  const cases = readFileSync(path, 'utf8').split(/^## /m).slice(1);
  return cases.map((each) => {
    const [title = '', ...lines] = each.trimEnd().split('\n');
    const isReported = (line: string) => line.startsWith('=> ');
    const texts = lines.filter((line) => !isReported(line)).map((line) => `${line}\n`);
    const [first = '', ...further] = texts.join('').split(/^(---|\+\+\+) (\S+\.yaml)\n/m);
    const sources: Source[] = [{ file: 'a.yaml', text: first }];
    for (let at = 0; at < further.length; at += 3) {
      const [sign, file = '', text = ''] = further.slice(at);
      sources.push({ file, text, overlay: sign === '+++' });
    }
    return [title, sources, lines.filter(isReported).map((line) => line.slice(3))] as const;
  });
}
