import { hash } from 'node:crypto';

/** Any value that JSON can carry. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A member of an object of unknown shape. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
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
