import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Document, isMap, visit } from 'yaml';
import { ConfigError, SpecError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import { isUnsetVariable } from '../../spec/environment.ts';
import { loadSpec, type Source } from '../../spec/load.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import type { Io } from '../terminal.ts';
import { writeOut } from './output.ts';

export interface RenderFlags {
  readonly out?: string;
}

/** Runs a program that defines a project, and prints the project as a spec. No other command runs a program. */
export async function render(file: string, flags: RenderFlags, io: Io): Promise<ExitCode> {
  const path = resolve(io.cwd, file);
  if (!existsSync(path)) throw new ConfigError(`${file} cannot be read: the file does not exist`);
  const text = specText(plain(await projectOf(path, file), 'the project'), file);
  if (flags.out === undefined) io.stdout.write(text);
  check({ file: `${file} (rendered)`, text }, io);
  if (flags.out !== undefined) writeOut(flags.out, text, io);
  return exitCodes.done;
}

/**
 * Reports the errors of the rendered spec. The machine that renders may lack the variables that the spec names.
 *
 * @throws SpecError with the lines of the output
 */
function check(source: Source, io: Io): void {
  try {
    loadSpec([source], io.env);
  } catch (error) {
    if (!(error instanceof SpecError)) throw error;
    const errors = error.diagnostics.filter(({ message }) => !isUnsetVariable(message));
    if (errors.length > 0) throw new SpecError(errors, error.projectId);
  }
}

/** The default export of the program, or the result of the export if it is a function. */
async function projectOf(path: string, file: string): Promise<unknown> {
  provideOwnPackage();
  let made: unknown;
  try {
    const loaded = (await import(pathToFileURL(path).href)) as { readonly default?: unknown };
    made = typeof loaded.default === 'function' ? await loaded.default() : await loaded.default;
  } catch (error) {
    const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    const shown = `${file} does not run: ${why.split('\n').map(printable).join('\n')}`;
    throw new ConfigError(shown);
  }
  if (typeof made === 'object' && made !== null && !Array.isArray(made)) return made;
  throw new ConfigError(`${file} defines no project. Write: export default defineProject({ … });`);
}

/** The program gets the package that this command is part of, also without a `node_modules` folder. */
function provideOwnPackage(): void {
  const own = new URL(
    import.meta.filename.endsWith('.ts') ? '../../index.ts' : '../index.js',
    import.meta.url,
  );
  registerHooks({
    resolve: (specifier, context, next) => next(specifier === 'vdcsync' ? own.href : specifier, context),
  });
}

/** The levels that a spec may have. */
const mostLevels = 32;

/** As data that YAML can hold. Fields that are `undefined` are left out. */
function plain(value: unknown, place: string, level = 0): unknown {
  if (level > mostLevels) throw new ConfigError(`${place} has more than ${mostLevels} levels`);
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (Array.isArray(value)) return value.map((each, at) => plain(each, `${place}[${at}]`, level + 1));
  if (typeof value === 'object' && [Object.prototype, null].includes(Object.getPrototypeOf(value))) {
    const fields = Object.entries(value).filter(([, each]) => each !== undefined);
    return Object.fromEntries(
      fields.map(([name, each]) => [name, plain(each, level === 0 ? name : `${place}.${name}`, level + 1)]),
    );
  }
  const found = typeof value === 'object' ? (value.constructor?.name ?? 'object') : typeof value;
  throw new ConfigError(
    `${place} is a ${found}, which a spec cannot hold. Use text, numbers, lists and maps.`,
  );
}

/** Longer entries have a line for each field. */
const longestLine = 100;

function specText(project: unknown, file: string): string {
  const document = new Document(project, { aliasDuplicateObjects: false });
  document.commentBefore = ` Rendered from ${printable(basename(file))} by vdcsync render. Change that file, and render it again.`;
  visit(document, {
    Map(_, node, path) {
      const isEntry = path.filter(isMap).length >= 2;
      if (isEntry && JSON.stringify(node.toJSON()).length <= longestLine) node.flow = true;
    },
  });
  return document.toString({ lineWidth: 0 });
}
