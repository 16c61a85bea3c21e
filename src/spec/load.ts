import equal from 'fast-deep-equal';
import type { Desired, Position, Settings, TokenPlace } from '../core/desired.ts';
import { type Diagnostic, SpecError } from '../core/errors.ts';
import { type ResourceKey, topLevelKey } from '../core/keys.ts';
import { digestOf } from './digest.ts';
import { type Entry, readEntry } from './entries.ts';
import type { Environment } from './environment.ts';
import { formatPosition, isUnread, type Located, type Report } from './located.ts';
import { checkSchema } from './messages.ts';
import { checkReferences } from './references.ts';
import { fileSchema, sections, settingsSchema } from './schemas.ts';
import { checkUniqueness } from './uniqueness.ts';
import { readYaml } from './yaml-tree.ts';

/** One file's text, and the name it goes by in messages. */
export interface Source {
  readonly file: string;
  readonly text: string;
}

/**
 * Reads the spec, from one file or several that add up to one.
 *
 * @param environment where `${env:NAME}` is looked up; its values appear in no message
 * @throws SpecError with everything that is wrong, in the order of files and positions
 */
export function loadSpec(sources: readonly Source[], environment: Environment): Desired {
  const diagnostics: Diagnostic[] = [];
  const report: Report = (position, message) => diagnostics.push({ position, message: printable(message) });
  const roots = sources.flatMap(({ file, text }) => readYaml(file, text, environment, report) ?? []);
  for (const root of roots) checkSchema(fileSchema, root, 'the file', report);

  const project = agreed(roots, 'project', report);
  const projectId = project.get('id');
  const token = tokenPlace(project, report);
  const settings = agreed(roots, 'settings', report);
  const [first] = roots;
  if (first?.fields !== undefined && !roots.some((root) => isUnread(root) || root.fields?.has('project'))) {
    report(first.position, '`project` is missing: write `project: {id: …}` with the id of the project');
  }
  const { entries, declared } = readEntries(roots, report);
  const unread = sections.filter(({ collection }) => roots.some((root) => isUnreadIn(root, collection)));
  checkReferences(entries, { declared, unread: new Set(unread.map(({ collection }) => collection)) }, report);
  checkUniqueness(entries, report);
  if (roots.length === 0 && diagnostics.length === 0) {
    report({ file: '-', line: 1, column: 1 }, 'no file was given');
  }
  if (diagnostics.length > 0) {
    const id = projectId?.value;
    throw new SpecError(inOrder(diagnostics, sources), typeof id === 'number' ? id : undefined);
  }

  const given = Object.fromEntries([...settings].map(([name, { value }]) => [name, value]));
  const wanted = {
    projectId: projectId?.value as number,
    settings: settingsSchema.parse(given) as Settings,
    resources: entries.map(({ resource }) => resource),
  };
  return { ...wanted, digest: digestOf(wanted), ...(token === undefined ? {} : { token }) };
}

/** Where the file says that its token is; one place, or there would be a question which one counts. */
function tokenPlace(project: ReadonlyMap<string, Located>, report: Report): TokenPlace | undefined {
  const [env, file] = [project.get('token_env'), project.get('token_file')];
  if (env !== undefined && file !== undefined) {
    report(file.position, '`project.token_env` and `project.token_file` are both given: leave one out');
  }
  if (typeof env?.value === 'string') return { env: env.value };
  return typeof file?.value === 'string' ? { file: file.value } : undefined;
}

/** The fields of `project` or `settings`: each may stand in one file, or say the same in several. */
function agreed(roots: readonly Located[], section: string, report: Report): ReadonlyMap<string, Located> {
  const known = new Map<string, Located>();
  for (const root of roots) {
    for (const [name, here] of root.fields?.get(section)?.fields ?? []) {
      const earlier = known.get(name);
      if (earlier === undefined) known.set(name, here);
      else if (!equal(earlier.value, here.value)) {
        const at = formatPosition(earlier.position);
        report(
          here.position,
          `\`${section}.${name}\` is ${here.shown} here and ${earlier.shown} at ${at}: the files have to agree`,
        );
      }
    }
  }
  return known;
}

/** The entries of all maps of all files, and the names that are declared, even where the entry is unusable. */
function readEntries(roots: readonly Located[], report: Report) {
  const places = new Map<ResourceKey, Position>();
  const entries: Entry[] = [];
  for (const section of sections) {
    for (const root of roots) {
      for (const [name, located] of root.fields?.get(section.collection)?.fields ?? []) {
        const key = topLevelKey(section.collection, name);
        const position = located.keyPosition ?? located.position;
        const earlier = places.get(key);
        if (earlier !== undefined) {
          report(position, `${key} stands in the spec twice: first at ${formatPosition(earlier)}`);
          continue;
        }
        places.set(key, position);
        entries.push(...readEntry(section, name, located, report));
      }
    }
  }
  return { entries, declared: new Set(places.keys()) };
}

function isUnreadIn(root: Located, collection: string): boolean {
  const map = root.fields?.get(collection);
  return isUnread(root) || (map !== undefined && isUnread(map));
}

/** One line each, and nothing in it that a terminal would obey: names come from the file as they are. */
function printable(message: string): string {
  const short = message.length > 1000 ? `${message.slice(0, 1000).toWellFormed()}...` : message;
  return short.replace(
    /[\p{Cc}\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function inOrder(diagnostics: readonly Diagnostic[], sources: readonly Source[]): Diagnostic[] {
  const order = new Map(sources.map(({ file }, at) => [file, at]));
  const rank = ({ position }: Diagnostic) => order.get(position.file) ?? 0;
  return [...diagnostics].sort(
    (a, b) => rank(a) - rank(b) || a.position.line - b.position.line || a.position.column - b.position.column,
  );
}
