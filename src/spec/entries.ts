import equal from 'fast-deep-equal';
import type { Desired, DesiredResource, EntryFields } from '../core/desired.ts';
import type { Diagnostic } from '../core/errors.ts';
import { isPassedOn } from '../core/hidden-texts.ts';
import { mapTexts, member } from '../core/json.ts';
import { childKey, parseKey, type ResourceKey, topLevelKey } from '../core/keys.ts';
import type { ResourceKind } from '../core/kind.ts';
import type { ChildEntry, EntryIssue } from '../core/kind-entry.ts';
import { didYouMean } from '../core/suggest.ts';
import {
  checkSchema,
  expandedIn,
  find,
  isUnread,
  type Located,
  nearest,
  type Path,
  type Report,
  redact,
  refuseSecret,
  without,
} from './located.ts';
import { commonFields, isOwnField, type Section } from './schemas.ts';

/** One resource with its position. Resources inside a server come after the server. */
export interface Entry {
  readonly resource: DesiredResource;
  /** The resource's own part of the spec; a child's is inside its server's. */
  readonly located: Located;
  readonly kind: ResourceKind;
}

/**
 * Reads one entry of a map and the resources inside it, and reports all errors of the entry
 * alone. Returns the usable parts even after an error, so that the same run can also check the references
 * to this entry.
 */
export function readEntry(
  section: Section,
  name: string,
  written: Located,
  shared: SharedParts,
  report: Report,
): readonly Entry[] {
  const key = topLevelKey(section.collection, name);
  const named = checkName(section, name, written, report);
  if (name === '') return [];
  const entry = parse(section, key, written, report);
  if (entry === undefined) return [];
  const { located, fields, dropped } = entry;
  const moved = movedFrom(section, fields);
  const value = ownValue(section, fields, moved?.name ?? name);
  const managed = fields.managed !== false;
  const id = fields.id === undefined ? undefined : String(fields.id);
  const resource: DesiredResource = {
    key,
    kind: section.kind.name,
    value: shared.written.of(value, located, report, foreignFields(section)),
    managed,
    ...(id === undefined ? {} : { id }),
    ...('name' in value && fields.name === undefined ? { named: false as const } : {}),
    ...(moved === undefined ? {} : { moved: moved.key }),
    protect: fields.protect === true,
    ...(typeof fields.expires === 'string' ? { expires: fields.expires } : {}),
    position: located.keyPosition ?? located.position,
    ...placesOf(located),
  };
  const creatable = managed && id === undefined && !dropped.has('id') && !dropped.has('managed');
  for (const issue of section.kind.entry.check?.(value) ?? []) {
    const [first] = issue.path;
    // An error without a path means a missing field: it only counts if the other fields are valid and the entry is created.
    if (first === undefined && (!creatable || dropped.size > 0)) continue;
    if (first === 'name' && !named) continue;
    reportCheck(issue, located, report);
  }
  if (creatable && !isUnread(located)) reportMissing(section, fields, dropped, located, report);
  const parent = { kind: section.kind, resource, located };
  return [parent, ...readChildren(section, fields, parent, shared, report)];
}

function checkName({ collection, names }: Section, name: string, located: Located, report: Report): boolean {
  const { pattern, text } = names;
  const good = pattern.test(name);
  if (!good) {
    report(
      located.keyPosition ?? located.position,
      name.includes('${env:')
        ? `${JSON.stringify(name)} cannot be a name: a name cannot come from the environment`
        : `${JSON.stringify(name)} cannot be a name under \`${collection}\`: ${text}`,
    );
  }
  return good;
}

/** The valid parts of the entry, and the names of the fields that are invalid or contain an invalid part. */
function parse(section: Section, key: ResourceKey, located: Located, report: Report) {
  // `web:` with nothing after it is an entry without fields.
  const whole = located.value === null && !located.broken ? { ...located, value: {} } : located;
  const checked = checkSchema(section.schema, whole, `\`${key}\``, report);
  if (checked.ok) return { located, fields: checked.value, dropped: new Set<string>() };
  const { fields: dropped, paths } = checked;
  if (whole.fields === undefined) return undefined;
  for (const parts of [paths.map(itemAround), [...dropped].map((field) => [field])]) {
    const usable = without(whole, parts);
    const again = section.schema.safeParse(usable.value);
    if (again.success) return { located: usable, fields: again.data, dropped };
  }
  return undefined;
}

/** The list item that contains the part, so that the rest of the list can be checked; else the whole field. */
function itemAround(path: Path): Path {
  const at = path.findLastIndex((step) => typeof step === 'number');
  return path.slice(0, Math.max(at, 0) + 1);
}

/** The previous key, if it belongs to the same map. The check of references reports all other values. */
function movedFrom({ collection, kind }: Section, { moved }: EntryFields) {
  const from = member(moved, 'from');
  if (typeof from !== 'string') return undefined;
  const parsed = parseKey(from.includes('.') ? from : topLevelKey(collection, from));
  return parsed?.kind === kind.name && parsed.parent === undefined ? parsed : undefined;
}

/** The fields that are entries of other resources. */
function foreignFields({ children }: Section): readonly string[] {
  return [...children].flatMap(([field, kind]) => (isOwnField(kind) ? [] : [field]));
}

function ownValue(section: Section, fields: EntryFields, name: string): EntryFields {
  const foreign = new Set<string>([...commonFields, ...foreignFields(section)]);
  const own = Object.fromEntries(Object.entries(fields).filter(([field]) => !foreign.has(field)));
  return 'name' in section.schema.shape ? { name, ...own } : own;
}

function reportMissing(
  section: Section,
  fields: EntryFields,
  dropped: ReadonlySet<string>,
  located: Located,
  report: Report,
) {
  for (const field of section.kind.entry.neededToCreate ?? []) {
    if (fields[field] !== undefined || dropped.has(field)) continue;
    const typo = [...dropped].find((each) => didYouMean(each, [field]) !== '');
    if (typo !== undefined) continue;
    report(
      located.position,
      `\`${field}\` is missing: a new ${noun(section.kind)} needs it. To bind an existing ${noun(section.kind)}, write \`id:\``,
    );
  }
}

function readChildren(
  section: Section,
  fields: EntryFields,
  parent: Entry,
  shared: SharedParts,
  report: Report,
): Entry[] {
  const { resource: server, located } = parent;
  const entries: Entry[] = [];
  const add = (kind: ResourceKind, suffix: string, value: EntryFields, path: Path) => {
    const inside = nearest(located, path);
    const { key, managed, protect } = server;
    const checked = shared.of(kind, inside, value, report);
    const resource = {
      key: childKey(key, suffix),
      kind: kind.name,
      parent: key,
      managed,
      protect,
      ...checked,
    };
    entries.push({ kind, located: inside, resource });
  };
  for (const [field, kind] of section.children) {
    if (fields[field] === undefined) continue;
    refuseUnmanaged(field, parent, report);
    for (const { suffix, value, path } of childrenOf(kind, field, fields[field])) {
      add(kind, suffix, value, [field, ...path]);
    }
  }
  return entries;
}

/** The parts of a resource inside a server that depend on its part of the spec alone. */
type CheckedPart = Pick<DesiredResource, 'value' | 'position' | 'fields' | 'cautions'>;

/**
 * Checks a part of the spec once for all servers that have it from `defaults`. They then share its value in memory:
 * a hundred rules in `defaults` would otherwise be checked and stored for each of a thousand servers.
 */
export class SharedParts {
  readonly written: WrittenTexts;
  readonly #known = new WeakMap<
    Located,
    ReadonlyMap<string, { readonly read: EntryFields; readonly checked: CheckedPart }>
  >();

  constructor(written: WrittenTexts) {
    this.written = written;
  }

  of(kind: ResourceKind, inside: Located, value: EntryFields, report: Report): CheckedPart {
    const known = this.#known.get(inside);
    const before = known?.get(kind.name);
    if (before !== undefined && equal(before.read, value)) return before.checked;
    for (const issue of kind.entry.check?.(value) ?? []) reportCheck(issue, inside, report);
    const shown = this.written.of(value, inside, report);
    const cautions = (kind.entry.cautions?.(shown) ?? []).map((issue) => diagnosticOf(issue, inside));
    const checked = {
      ...{ value: shown, position: inside.position },
      ...placesOf(inside),
      ...(cautions.length === 0 ? {} : { cautions }),
    };
    this.#known.set(inside, new Map([...(known ?? []), [kind.name, { read: value, checked }]]));
    return checked;
  }
}

/** Puts the text of the spec back in the place of each text from the environment, and remembers the real texts. */
export class WrittenTexts {
  readonly #texts = new Map<string, string>();
  readonly #variables = new Map<string, string>();

  /**
   * The valid entry with the texts of the spec. Reports variables in a part that output has to show.
   *
   * @param foreign fields that are no part of the entry
   */
  of(value: EntryFields, located: Located, report: Report, foreign: readonly string[] = []): EntryFields {
    const written = new Map<string, string>();
    for (const [path, here] of expandedIn(located)) {
      if (foreign.includes(String(path[0]))) continue;
      if (isPassedOn(path)) written.set(path.join('\0'), here.written ?? '');
      else if (here.secret) refuseSecret(here, report);
      for (const [name, each] of here.variables ?? []) this.#variables.set(name, each);
    }
    if (written.size === 0) return value;
    return mapTexts(value, (text, path) => {
      const shown = written.get(path.join('\0'));
      if (shown !== undefined) this.#texts.set(shown, text);
      return shown ?? text;
    });
  }

  environment(): Pick<Desired, 'environment'> {
    return this.#texts.size === 0 ? {} : { environment: { texts: this.#texts, variables: this.#variables } };
  }
}

function childrenOf({ entry }: ResourceKind, field: string, value: unknown): readonly ChildEntry[] {
  return entry.children?.(value) ?? [{ suffix: field, value: value as EntryFields, path: [] }];
}

/** The positions of the entry's own fields, and of all that they contain. */
function placesOf(entry: Located): Pick<DesiredResource, 'fields'> {
  const places = partsOf(entry).map(([name, { keyPosition, position }]) => {
    const { file, line, column } = keyPosition ?? position;
    const place = file === entry.position.file ? ([line, column] as const) : ([line, column, file] as const);
    return [name, place] as const;
  });
  return places.length === 0 ? {} : { fields: Object.fromEntries(places) };
}

/** Everything inside a value, by name: `rules`, `rules[1]`, `rules[1].source`. */
function partsOf({ fields = new Map(), items = [] }: Located, inside = ''): (readonly [string, Located])[] {
  const named = [
    ...[...fields].map(([name, part]) => [inside === '' ? name : `${inside}.${name}`, part] as const),
    ...items.map((part, at) => [`${inside}[${at}]`, part] as const),
  ];
  return named.flatMap(([name, part]) => [[name, part] as const, ...partsOf(part, name)]);
}

/** Resources inside an unmanaged server are unmanaged too: a declaration would promise changes that never happen. */
function refuseUnmanaged(field: string, { resource, located }: Entry, report: Report): void {
  if (resource.managed) return;
  const here = find(located, [field]);
  report(
    here?.keyPosition ?? located.position,
    `\`${field}\` cannot be declared in a server with \`managed: false\`, because vdcsync manages nothing inside that server: remove this field, or bind the server with \`id:\` instead`,
  );
}

function reportCheck(issue: EntryIssue, located: Located, report: Report): void {
  if (isUnread(nearest(located, issue.path))) return;
  // Refused already.
  if (find(located, issue.path)?.secret === true && !isPassedOn(issue.path)) return;
  const { position, message } = diagnosticOf(issue, located);
  report(position, message);
}

/** The position and message of an issue. The message shows no value from the environment. */
function diagnosticOf({ path, message, named }: EntryIssue, located: Located): Diagnostic {
  const exact = find(located, path);
  if (named && exact?.keyPosition !== undefined) return { position: exact.keyPosition, message };
  const unnamed = path.length === 1 && path[0] === 'name' && exact === undefined;
  const here = exact ?? nearest(located, path);
  return {
    position: unnamed ? (located.keyPosition ?? located.position) : here.position,
    // A rule's message may show the value or something made of it.
    message: here.secret ? `the value of ${here.shown} is not valid here` : redact(message, located),
  };
}

/** A kind in words. */
export function noun({ name }: Pick<ResourceKind, 'name'>): string {
  return name.replaceAll('_', ' ');
}
