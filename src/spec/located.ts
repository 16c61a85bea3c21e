import type { Position } from '../core/desired.ts';

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
