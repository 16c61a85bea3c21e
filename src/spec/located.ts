import { z } from 'zod';
import type { Position } from '../core/desired.ts';
import { didYouMean } from '../core/suggest.ts';

/** A value of the spec with everything that a message about it needs. */
export interface Located {
  /** Plain data: maps are objects, `${env:…}` is replaced. */
  readonly value: unknown;
  readonly position: Position;
  /** The position of the field's own name; absent at the root and in lists. */
  readonly keyPosition?: Position;
  /** The value as a message may show it: never a value from the environment. */
  readonly shown: string;
  /** Holds something that came from the environment. */
  readonly secret: boolean;
  /** For a text with variables, or with characters that would start one: the text of the spec. */
  readonly written?: string;
  /** The values of the variables in a text. */
  readonly variables?: ReadonlyMap<string, string>;
  /** Already reported as unusable; further messages about it would only confuse. */
  readonly broken: boolean;
  /** A map with unreadable fields, which are reported. A field that seems to be missing may be one of them. */
  readonly partial?: true;
  readonly fields?: ReadonlyMap<string, Located>;
  readonly items?: readonly Located[];
}

export type Path = readonly (string | number)[];

/** Takes one error. Reading continues, so that one run reports all errors. `excerpt`: lines that show the place. */
export type Report = (position: Position, message: string, excerpt?: string) => void;

/** Finds the other part of a value that an overlay changes. */
export class Counterparts {
  readonly #texts = new Map<string, string>();

  /** @param relation `overlay of` or `changed at` */
  add(place: Position | undefined, relation: string, other: Position): void {
    if (place !== undefined)
      this.#texts.set(formatPosition(place), ` (${relation} ${formatPosition(other)})`);
  }

  /** The end of a message about this place. */
  textFor(place: Position): string {
    return this.#texts.get(formatPosition(place)) ?? '';
  }
}

/** The value at a path, or `undefined`. */
export function find(root: Located, path: Path): Located | undefined {
  let here: Located | undefined = root;
  for (const step of path) here = child(here, step);
  return here;
}

/** The value at a path, else the innermost existing value around it. */
export function nearest(root: Located, path: Path): Located {
  let here = root;
  for (const step of path) {
    const next = child(here, step);
    if (next === undefined) return here;
    here = next;
  }
  return here;
}

/** The value without the parts at the paths. */
export function without(here: Located, paths: readonly Path[]): Located {
  const inside = Map.groupBy(paths, ([first]) => first);
  const leftOf = (step: string | number, part: Located): readonly Located[] => {
    const rest = inside.get(step)?.map(([, ...steps]) => steps) ?? [];
    if (rest.some(({ length }) => length === 0)) return [];
    return [rest.length === 0 ? part : without(part, rest)];
  };
  if (here.items !== undefined) {
    const items = here.items.flatMap((part, at) => leftOf(at, part));
    return { ...here, items, value: items.map(({ value }) => value) };
  }
  if (here.fields === undefined) return here;
  const fields = new Map(
    [...here.fields].flatMap(([name, part]) => leftOf(name, part).map((left) => [name, left] as const)),
  );
  return withFields(here, fields);
}

/** The map with these fields instead of its own. */
export function withFields(map: Located, fields: ReadonlyMap<string, Located>): Located {
  return { ...map, fields, value: Object.fromEntries([...fields].map(([name, { value }]) => [name, value])) };
}

/** `file:line:col`, as in messages that name a second place. */
export function formatPosition({ file, line, column }: Position): string {
  return `${file}:${line}:${column}`;
}

/** A message without the values that came from the environment. */
export function redact(message: string, root: Located): string {
  let text = message;
  for (const [, { value, shown, secret }] of expandedIn(root)) {
    if (secret && typeof value === 'string' && value !== '') text = text.replaceAll(value, shown);
  }
  return text;
}

/** Reports a part that came from the environment. */
export function refuseSecret({ position, shown }: Located, report: Report): void {
  report(
    position,
    `${shown}: only the URL of an ISO, and the description and undocumented fields of a firewall rule, can come from the environment, because output shows everything else. Write the value`,
  );
}

/** A missing field proves nothing, because some of the fields could not be read. */
export function isUnread({ broken, partial }: Located): boolean {
  return broken || partial === true;
}

/** The texts inside a value that differ from the text of the spec, with their paths. */
export function expandedIn(root: Located, path: Path = []): readonly (readonly [Path, Located])[] {
  if (root.written !== undefined) return [[path, root]];
  const parts = [...(root.fields ?? []), ...(root.items ?? []).entries()];
  return parts.flatMap(([step, part]) => expandedIn(part, [...path, step]));
}

function child(here: Located | undefined, step: string | number): Located | undefined {
  return typeof step === 'number' ? here?.items?.[step] : here?.fields?.get(step);
}

type Issue = z.core.$ZodIssue;

/** The result of a check against a schema. All errors are already reported. */
type Checked<Value> =
  | { readonly ok: true; readonly value: Value }
  /** `fields`: the outermost fields that something was wrong with. `paths`: the parts themselves. */
  | { readonly ok: false; readonly fields: ReadonlySet<string>; readonly paths: readonly Path[] };

/**
 * Checks a located value against a schema and reports every error in plain words.
 * Messages written in a schema are kept; all others are worded here. `label` names the
 * value itself.
 */
export function checkSchema<Schema extends z.ZodType>(
  schema: Schema,
  root: Located,
  label: string,
  report: Report,
): Checked<z.output<Schema>> {
  // An empty message marks the errors for which the schema has no message of its own.
  const parsed = schema.safeParse(root.value, { error: () => '' });
  if (parsed.success) return { ok: true, value: parsed.data };
  for (const issue of parsed.error.issues) reportIssue(issue, [], { schema, root, label, report });
  const paths = parsed.error.issues.flatMap(pathsOfIssue);
  return { ok: false, fields: new Set(paths.flatMap(([first]) => first ?? []).map(String)), paths };
}

interface Context {
  readonly schema: z.ZodType;
  readonly root: Located;
  readonly label: string;
  readonly report: Report;
}

function pathsOfIssue(issue: Issue): readonly Path[] {
  const path = pathOf(issue);
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path];
}

/** Data of YAML has no symbols as keys. */
function pathOf({ path }: Issue): Path {
  return path as Path;
}

function reportIssue(issue: Issue, base: Path, context: Context): void {
  const path = [...base, ...pathOf(issue)];
  const here = nearest(context.root, path);
  if (issue.code === 'unrecognized_keys') reportUnknown(issue.keys, path, context);
  else if (issue.code === 'invalid_union') reportUnion(issue, path, context);
  else if (!(find(context.root, path) === undefined ? isUnread(here) : here.broken))
    context.report(here.position, wording(issue, path, context));
}

function reportUnknown(keys: readonly string[], path: Path, { schema, root, report }: Context): void {
  const known = fieldsAt(schema, path);
  const map = nearest(root, path);
  for (const key of keys) {
    const field = map.fields?.get(key);
    const hint = didYouMean(key, known);
    const list =
      hint === '' && known.length > 0 && known.length <= 9
        ? `: the fields here are ${known.map(tick).join(', ')}`
        : hint;
    report(field?.keyPosition ?? map.position, `unknown field ${tick(key)}${list}`);
  }
}

/** Reports the errors of the form that the user meant, if it can be recognised; else lists the forms. */
function reportUnion(issue: z.core.$ZodIssueInvalidUnion, path: Path, context: Context): void {
  const meant = issue.errors.filter(
    (branch) => !branch.some((each) => each.path.length === 0 && each.code !== 'too_small'),
  );
  const [only, another] = meant;
  if (only !== undefined && another === undefined) {
    for (const each of only) reportIssue(each, path, context);
    return;
  }
  const here = nearest(context.root, path);
  if (isUnread(here)) return;
  const union = schemaAt(context.schema, path);
  const forms = union instanceof z.ZodUnion ? listing(union.options.flatMap(formsOf)) : 'something else';
  const name = naming(path, context.label);
  const maps = union instanceof z.ZodUnion && union.options.every((option) => option instanceof z.ZodObject);
  if (maps && here.fields !== undefined) {
    const fields = [...here.fields.keys()];
    const known = fieldsAt(union, []);
    const has = fields.length === 0 ? 'no field' : fields.map(tick).join(' and ');
    const hint = fields.map((field) => (known.includes(field) ? '' : didYouMean(field, known))).join('');
    context.report(here.position, `${name} has ${has}, and must be one of ${forms}${hint}`);
    return;
  }
  context.report(
    here.position,
    issue.message === '' ? mustBe(name, forms, here) : cannotBe(name, issue.message, here),
  );
}

function formsOf(option: z.core.$ZodType): string[] {
  if (option instanceof z.ZodObject) {
    const fields = Object.keys(option.shape);
    return [fields.length === 1 ? `{${fields[0]}: …}` : `a map with ${listing(fields.map(tick))}`];
  }
  if (option instanceof z.ZodArray) return [noun('array')];
  if (isWhole(option)) return [noun('int')];
  if (option instanceof z.ZodEnum) return option.options.map((each) => tick(String(each)));
  return [noun(option._zod.def.type)];
}

function wording(issue: Issue, path: Path, { schema, root, label }: Context): string {
  const name = naming(path, label);
  const here = nearest(root, path);
  const complete = path.every(
    (_, at) => nearest(root, path.slice(0, at + 1)) !== nearest(root, path.slice(0, at)),
  );
  if (!complete) return `${name} is missing`;
  if (issue.message !== '') return cannotBe(name, issue.message, here);
  switch (issue.code) {
    case 'invalid_type':
      return mustBe(name, isWhole(schemaAt(schema, path)) ? noun('int') : noun(issue.expected), here);
    case 'invalid_value': {
      const values = issue.values.map((value) => tick(String(value)));
      const texts = issue.values.filter((value) => typeof value === 'string');
      const meant = typeof here.value === 'string' && !here.secret ? didYouMean(here.value, texts) : '';
      return `${name} must be ${listing(values)}, not ${here.shown}${meant}`;
    }
    case 'too_small':
      return issue.origin === 'string' || issue.origin === 'array'
        ? issue.minimum === 1
          ? `${name} must not be empty`
          : `${name} must have at least ${issue.minimum} ${unit(issue.origin)}`
        : `${name} must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}, not ${here.shown}`;
    case 'too_big':
      return issue.origin === 'string' || issue.origin === 'array'
        ? `${name} must have at most ${issue.maximum} ${unit(issue.origin)}`
        : `${name} must be at most ${issue.maximum}, not ${here.shown}`;
    default:
      return `${here.shown} cannot be ${name}`;
  }
}

function mustBe(name: string, wanted: string, { value, shown, secret }: Located): string {
  if (value === null) return `${name} has no value: it must be ${wanted}`;
  if (secret && /number|true/.test(wanted)) {
    return `${name} must be ${wanted}, and ${shown} gives text: write the value itself`;
  }
  const unquoted = wanted.includes('number')
    ? /^-?\d+$/
    : wanted.includes('`true`')
      ? /^(true|false)$/
      : undefined;
  const quoted = typeof value === 'string' && !secret && unquoted?.test(value) === true;
  const bare = wanted.startsWith('text') && (typeof value === 'number' || typeof value === 'boolean');
  const hint = quoted ? ': remove the quotes' : bare ? ': put it in quotes' : '';
  return `${name} must be ${wanted}, not ${shown}${hint}`;
}

function cannotBe(name: string, rule: string, { value, shown }: Located): string {
  return value === null ? `${name} has no value: ${rule}` : `${shown} cannot be ${name}: ${rule}`;
}

function naming(path: Path, label: string): string {
  const last = path.at(-1);
  if (last === undefined) return label;
  if (typeof last === 'string') return tick(last);
  return `entry ${last + 1} of ${naming(path.slice(0, -1), label)}`;
}

function noun(expected: string): string {
  const nouns: Readonly<Record<string, string>> = {
    string: 'text',
    int: 'a whole number',
    number: 'a number',
    boolean: '`true` or `false`',
    array: 'a list',
    object: 'a map',
    record: 'a map',
  };
  return nouns[expected] ?? expected;
}

function unit(origin: string): string {
  return origin === 'string' ? 'characters' : 'entries';
}

function listing(parts: readonly string[]): string {
  const unique = [...new Set(parts)];
  return unique.length < 2 ? unique.join('') : `${unique.slice(0, -1).join(', ')} or ${unique.at(-1)}`;
}

function tick(text: string): string {
  return `\`${text}\``;
}

/** The fields that a schema knows at a path. */
function fieldsAt(schema: z.core.$ZodType, path: Path): string[] {
  const here = schemaAt(schema, path);
  if (here instanceof z.ZodObject) return Object.keys(here.shape);
  if (here instanceof z.ZodRecord) return namesOf(here.keyType);
  if (here instanceof z.ZodUnion) return [...new Set(here.options.flatMap((option) => fieldsAt(option, [])))];
  return [];
}

function namesOf(keys: z.core.$ZodType): string[] {
  return keys instanceof z.ZodEnum ? keys.options.map(String) : [];
}

/** The schema of the value at a path, if there is only one. */
function schemaAt(schema: z.core.$ZodType | undefined, path: Path): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return schemaAt(schema.unwrap() as z.core.$ZodType, path);
  }
  if (schema instanceof z.ZodPipe) return schemaAt(schema.in as z.core.$ZodType, path);
  const [step, ...rest] = path;
  if (step === undefined) return schema;
  if (schema instanceof z.ZodRecord) return schemaAt(schema.valueType as z.core.$ZodType, rest);
  if (schema instanceof z.ZodArray) return schemaAt(schema.element as z.core.$ZodType, rest);
  if (!(schema instanceof z.ZodObject)) return undefined;
  return schemaAt((schema.shape as Record<string, z.core.$ZodType>)[String(step)], rest);
}

function isWhole(schema: z.core.$ZodType | undefined): boolean {
  return schema instanceof z.ZodNumberFormat;
}
