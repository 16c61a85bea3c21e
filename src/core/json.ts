import { hash } from 'node:crypto';

/** Any value that JSON can carry. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A member of an object of unknown shape. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** The names in a constant table. */
export function namesIn<Table extends object>(table: Table): readonly (keyof Table & string)[] {
  return Object.keys(table) as (keyof Table & string)[];
}

/** JSON with sorted object keys and without `undefined`: equal values give equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return inner;
    const entries = Object.entries(inner).filter(([, each]) => each !== undefined);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** `sha256:` over the canonical text: equal values give equal digests. */
export function digestOf(value: unknown): string {
  return `sha256:${hash('sha256', canonicalJson(value))}`;
}

/**
 * The value with other texts, and the same value where none is another one.
 *
 * @param change called with each text inside plain objects and lists, and its path, which is valid during the call
 */
export function mapTexts<Value>(
  value: Value,
  change: (text: string, path: readonly string[]) => string,
): Value {
  const path: string[] = [];
  const mapped = (here: unknown): unknown => {
    if (typeof here === 'string') return change(here, path);
    if (here === null || typeof here !== 'object') return here;
    const isList = Array.isArray(here);
    if (!isList && !isPlain(here)) return here;
    let copy: Record<string, unknown> | unknown[] | undefined;
    for (const [name, each] of Object.entries(here)) {
      path.push(name);
      const now = mapped(each);
      path.pop();
      if (now === each) continue;
      copy ??= isList ? [...here] : { ...here };
      Reflect.set(copy, name, now);
    }
    return copy ?? here;
  };
  return mapped(value) as Value;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The fields that have a value. A field that is `undefined` is left out, as in JSON. */
export function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };
export function given(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
