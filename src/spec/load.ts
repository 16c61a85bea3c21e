import { resolve, sep } from 'node:path';
import equal from 'fast-deep-equal';
import type { Desired, Position, TokenPlace } from '../core/desired.ts';
import { type Diagnostic, formatDiagnostic, SpecError } from '../core/errors.ts';
import { digestOf } from '../core/json.ts';
import { type ResourceKey, topLevelKey } from '../core/keys.ts';
import { escapeUnseen } from '../core/text.ts';
import { checkReferences, checkUniqueness } from './cross-checks.ts';
import { type Entry, readEntry, SharedParts, WrittenTexts } from './entries.ts';
import { type Environment, isReservedVariable, operatorsSpec, type SpecTrust } from './environment.ts';
import { overlaid, withDefaults } from './layers.ts';
import {
  Counterparts,
  checkSchema,
  expandedIn,
  formatPosition,
  isUnread,
  type Located,
  type Report,
  refuseSecret,
} from './located.ts';
import { fileSchema, sections, settingsSchema } from './schemas.ts';
import { readYaml } from './yaml-tree.ts';

/** One file's text, and the name it goes by in messages. */
export interface Source {
  readonly file: string;
  readonly text: string;
  /** A merge patch over the files that are none, applied in the order of the overlays. */
  readonly overlay?: boolean;
}

/** The limit of a spec file; a larger file is not even read. */
export const mostBytes = 1024 * 1024;

/** A broken file can have many errors: the loader keeps at most `kept` of them, and shows at most `shown`. */
const maxErrors = { kept: 2_000, shown: 50 } as const;

/**
 * Reads the spec, from one file or several that add up to one.
 *
 * @param environment where `${env:NAME}` is looked up; its values appear in no message
 * @param trust the values that the spec may read from this machine
 * @throws SpecError with the first errors in the order of files and positions, and how many more there are
 */
export function loadSpec(
  sources: readonly Source[],
  environment: Environment,
  trust: SpecTrust = operatorsSpec,
): Desired {
  const diagnostics: Diagnostic[] = [];
  let dropped = 0;
  const counterparts = new Counterparts();
  const reported = new Set<string>();
  const report: Report = (position, wrong, excerpt) => {
    const message = printable(`${wrong}${counterparts.textFor(position)}`);
    // An error of a default occurs again in each server that has the default.
    const text = formatDiagnostic({ position, message });
    if (reported.has(text)) return;
    if (diagnostics.length < maxErrors.kept)
      diagnostics.push({ position, message, ...(excerpt === undefined ? {} : { excerpt }) });
    else dropped += 1;
    reported.add(text);
  };
  const roots = readRoots(sources, { environment, trust }, counterparts, report);
  const project = agreed(roots, 'project', report);
  const projectId = project.get('id');
  const problem = (cautions: readonly Diagnostic[] = []) => {
    const shown = firstOf(inOrder(diagnostics, sources), dropped);
    const id = typeof projectId?.value === 'number' ? projectId.value : undefined;
    return new SpecError(shown, id, { count: diagnostics.length + dropped, cautions });
  };
  if (!checkExpansion(roots, report)) throw problem();
  for (const root of roots) checkSchema(fileSchema, root, 'the spec', report);
  const token = tokenPlace(project, trust, report);
  const settings = agreed(roots, 'settings', report);
  for (const [name, each] of [...project, ...settings]) if (name !== 'id') refuseSecrets(each, report);
  const [first] = roots;
  if (first?.fields !== undefined && !roots.some((root) => isUnread(root) || root.fields?.has('project'))) {
    report(first.position, '`project` is missing: write `project: {id: …}` with the id of the project');
  }
  const written = new WrittenTexts();
  const { entries, declared } = readEntries(roots, written, report);
  const unread = sections.filter(({ collection }) => roots.some((root) => isUnreadIn(root, collection)));
  if (entries.length > maxResources) {
    report(entries[0]?.resource.position ?? { file: '-', line: 1, column: 1 }, tooMany(entries.length));
    throw problem();
  }
  const expires = project.get('expires')?.value;
  const unreadMaps = new Set(unread.map(({ collection }) => collection));
  checkReferences(entries, { declared, unread: unreadMaps, expires }, report);
  checkUniqueness(entries, report);
  if (roots.length === 0 && diagnostics.length === 0) {
    report({ file: '-', line: 1, column: 1 }, 'no file was given');
  }
  if (diagnostics.length > 0) throw problem(entries.flatMap(({ resource }) => resource.cautions ?? []));

  const given = Object.fromEntries([...settings].map(([name, { value }]) => [name, value]));
  const scope = project.get('scope')?.value;
  const wanted = {
    projectId: projectId?.value as number,
    ...(typeof scope === 'string' ? { scope } : {}),
    ...(typeof expires === 'string' ? { expires } : {}),
    settings: settingsSchema.parse(given),
    resources: entries.map(({ resource }) => resource),
  };
  const shown = { ...wanted, ...written.environment() };
  return { ...shown, digest: specDigest(shown), ...(token === undefined ? {} : { token }) };
}

function tooMany(resources: number): string {
  return `the spec declares ${resources} resources, and at most ${maxResources} are possible: split the project into several files, each with a \`project.scope\` of its own`;
}

/** The files as plain values, overlays and defaults included; of a spec that `loadSpec` takes. */
export function plainFiles(sources: readonly Source[], environment: Environment): readonly unknown[] {
  const reading = { environment, trust: operatorsSpec };
  return readRoots(sources, reading, new Counterparts(), () => undefined).map(({ value }) => value);
}

function readRoots(
  sources: readonly Source[],
  reading: { readonly environment: Environment; readonly trust: SpecTrust },
  counterparts: Counterparts,
  report: Report,
): readonly Located[] {
  const read = (which: boolean) =>
    sources
      .filter(({ overlay = false }) => overlay === which)
      .flatMap(({ file, text }) => readYaml(file, text, reading, report) ?? []);
  const files = read(false);
  const patched = read(true).reduce<readonly Located[]>(
    (roots, patch) => overlaid(roots, patch, counterparts, report),
    files,
  );
  const hasDefaults = patched.some(({ fields }) => fields?.has('defaults'));
  return hasDefaults ? withDefaults(patched, report) : patched;
}

/**
 * Values of all files together, after overlays and defaults: a map, a list and each of their entries is one, and a long
 * text counts as several. Defaults multiply: without this limit, a small file could hold millions of values.
 */
const maxValues = 200_000;
/** Resources of a project, those inside servers included. Every page, plan and refresh handles each of them. */
const maxResources = 10_000;
/** So many characters of a text or a name count as one value. */
const charactersEach = 100;

/** Refuses files that are too large after overlays and defaults. Returns whether they are small enough. */
function checkExpansion(roots: readonly Located[], report: Report): boolean {
  const counter = new ValueCounter();
  const values = roots.reduce((sum, root) => sum + counter.count(root), 0);
  const [first] = roots;
  if (values <= maxValues || first === undefined) return true;
  const defaults = roots.flatMap((root) => root.fields?.get('defaults') ?? [])[0];
  const { keyPosition, position } = defaults ?? first;
  report(
    keyPosition ?? position,
    `the spec has ${values} values${defaults === undefined ? '' : ' after `defaults` are added to each server'}, and at most ${maxValues} are possible: split the project into several, or shorten its lists`,
  );
  return false;
}

/** Counts each shared value once, and adds it for each of its uses: a default is the same value in every server. */
class ValueCounter {
  readonly #known = new WeakMap<Located, number>();

  count(here: Located): number {
    const known = this.#known.get(here);
    if (known !== undefined) return known;
    let values = 1;
    if (typeof here.value === 'string') values += Math.floor(here.value.length / charactersEach);
    for (const [name, field] of here.fields ?? [])
      values += this.count(field) + Math.floor(name.length / charactersEach);
    for (const item of here.items ?? []) values += this.count(item);
    this.#known.set(here, values);
    return values;
  }
}

/** The place of the token in the spec. Two places are an error, because neither takes precedence. */
function tokenPlace(
  project: ReadonlyMap<string, Located>,
  trust: SpecTrust,
  report: Report,
): TokenPlace | undefined {
  const [env, file] = [project.get('token_env'), project.get('token_file')];
  if (env !== undefined && file !== undefined) {
    report(file.position, '`project.token_env` and `project.token_file` are both given: leave one out');
  }
  if (typeof env?.value === 'string') return tokenVariable(env.value, env.position, trust, report);
  return typeof file?.value === 'string' ? tokenFile(file.value, file.position, trust, report) : undefined;
}

function tokenVariable(env: string, position: Position, { tokens }: SpecTrust, report: Report) {
  if (tokens === 'any') return { env, position };
  const { prefix } = tokens;
  if (prefix !== undefined && env.startsWith(prefix) && !isReservedVariable(env)) return { env, position };
  const problem =
    prefix === undefined
      ? '`token_env` is not allowed in this spec: allow a prefix of names with --token-env-prefix'
      : `\`token_env\` may only name a variable that begins with ${prefix}: rename it, or change --token-env-prefix`;
  return void report(position, problem);
}

function tokenFile(file: string, position: Position, { tokens }: SpecTrust, report: Report) {
  if (tokens === 'any') return { file, position };
  const { folder, base } = tokens;
  const path = resolve(base, file);
  const below = folder !== undefined && path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
  if (below && !file.includes('\0')) return { file: path, below: folder, position };
  const problem =
    folder === undefined
      ? '`token_file` is not allowed in this spec: allow a folder with --token-folder'
      : '`token_file` may only name a file in the folder of --token-folder: move the file there, or change the folder';
  return void report(position, problem);
}

function firstOf(diagnostics: readonly Diagnostic[], dropped: number): Diagnostic[] {
  const shown = diagnostics.slice(0, maxErrors.shown);
  const more = diagnostics.length - shown.length + dropped;
  const last = shown.at(-1);
  if (more === 0 || last === undefined) return shown;
  return [...shown, { position: last.position, message: `and ${more} more errors` }];
}

/** The fields of `project` or `settings`. Each may be in one file, or have the same value in several files. */
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

function refuseSecrets(root: Located, report: Report): void {
  for (const [, here] of expandedIn(root)) if (here.secret) refuseSecret(here, report);
}

/** The entries of all maps of all files, and the names that are declared, even where the entry is unusable. */
function readEntries(roots: readonly Located[], written: WrittenTexts, report: Report) {
  const places = new Map<ResourceKey, Position>();
  const entries: Entry[] = [];
  const shared = new SharedParts(written);
  for (const section of sections) {
    for (const root of roots) {
      for (const [name, located] of root.fields?.get(section.collection)?.fields ?? []) {
        const key = topLevelKey(section.collection, name);
        const position = located.keyPosition ?? located.position;
        const earlier = places.get(key);
        if (earlier !== undefined) {
          report(position, `${key} appears twice in the spec: first at ${formatPosition(earlier)}`);
          continue;
        }
        places.set(key, position);
        entries.push(...readEntry(section, name, located, shared, report));
      }
    }
  }
  return { entries, declared: new Set(places.keys()) };
}

function isUnreadIn(root: Located, collection: string): boolean {
  const map = root.fields?.get(collection);
  return isUnread(root) || (map !== undefined && isUnread(map));
}

/** A message in one line, without control characters: it can contain any name from the spec. */
function printable(message: string): string {
  const short = message.length > 1000 ? `${message.slice(0, 1000).toWellFormed()}...` : message;
  return escapeUnseen(short);
}

function inOrder(diagnostics: readonly Diagnostic[], sources: readonly Source[]): Diagnostic[] {
  const order = new Map(sources.map(({ file }, at) => [file, at]));
  const rank = ({ position }: Diagnostic) => order.get(position.file) ?? 0;
  return [...diagnostics].sort(
    (a, b) => rank(a) - rank(b) || a.position.line - b.position.line || a.position.column - b.position.column,
  );
}

/**
 * `sha256:…` of everything the spec wants, the values of the environment included, and nothing of how it is written: not the
 * order of fields or entries, not the files it is spread over, not positions and doubts.
 */
function specDigest({ resources, environment, ...head }: Omit<Desired, 'digest' | 'token'>): string {
  const byKey = [...resources].sort((a, b) => (a.key < b.key ? -1 : 1));
  const wanted = byKey.map(({ position: _, cautions: __, fields: ___, ...resource }) => resource);
  const texts = environment === undefined ? {} : { environment: [...environment.texts].sort() };
  return digestOf({ version: 1, ...head, resources: wanted, ...texts });
}

/** The names of the spec files in a folder, sorted. */
export function specNames(names: readonly string[]): string[] {
  return names.filter((each) => /\.ya?ml$/.test(each) && !each.startsWith('.')).sort();
}

/** Bytes as the text of a spec. */
export function decodeSpec(bytes: Uint8Array, name: string): Source | readonly Diagnostic[] {
  if (bytes.length > mostBytes) return unreadable(name, 'it is longer than 1 MiB');
  try {
    return { file: name, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return unreadable(name, 'it is not UTF-8');
  }
}

/** The diagnostic of a spec that cannot be read. Its position is the first character of the file. */
export function unreadable(file: string, why: string): readonly Diagnostic[] {
  return [{ position: { file, line: 1, column: 1 }, message: `the file cannot be read: ${why}` }];
}
