import * as z from 'zod';
import type { Fields } from './call.ts';
import { type InvalidParam, invalid } from './problem.ts';

/*
 * Strict reading of request bodies: unknown fields are refused, nothing is
 * coerced, strings are trimmed before their form is tried. `@source API §4`
 */

/** The reason for a value of another type, or for none. */
const ofType = (reason: string) => ({
  error: ({ input }: { readonly input?: unknown }) => (input === undefined ? 'is required' : reason),
});

/** Accepts only `true` and `false`. `@source API §4.3` */
export const flag = z.boolean(ofType('must be true or false'));

/** Both ends are included. A text of digits is refused. `@source API §4.3` */
export function integer(least: number, most = Number.MAX_SAFE_INTEGER) {
  return z
    .int({ ...ofType('must be an integer'), abort: true })
    .min(least, `must be at least ${least}`)
    .max(most, `must be at most ${most}`);
}

/** A text; its length is counted in characters. */
export function text(least = 0, most = Number.POSITIVE_INFINITY) {
  return z
    .string(ofType('must be a string'))
    .trim()
    .refine((value) => [...value].length >= least, {
      error: `must have at least ${least} characters`,
      abort: true,
    })
    .refine((value) => [...value].length <= most, {
      error: `must have at most ${most} characters`,
      abort: true,
    });
}

/** The values are compared after trimming. */
export function oneOf(...values: readonly string[]) {
  return text().refine((value) => values.includes(value), `must be one of ${values.join(', ')}`);
}

/** Accepts no single value in place of a list. */
export function list<Each extends z.ZodType>(each: Each) {
  return z.array(each, ofType('must be an array'));
}

/** An object without further fields. */
export function object<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, ofType('must be an object'));
}

/** The fields of the body, trimmed unless the service keeps them. Throws one `422 invalid_request` that names every wrong field. */
export function readBody(body: unknown, schema: z.ZodType<Fields>, normalise = true): Fields {
  const given = body === undefined ? {} : body;
  const result = schema.safeParse(given);
  if (!result.success) throw invalid(...result.error.issues.flatMap(faultsIn));
  return normalise ? result.data : (given as Fields);
}

function faultsIn(issue: z.core.$ZodIssue): InvalidParam[] {
  const nameOf = (path: readonly PropertyKey[]) =>
    path
      .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
      .join('')
      .slice(1);
  if (issue.code !== 'unrecognized_keys')
    return [{ name: nameOf(issue.path) || 'body', reason: issue.message }];
  return issue.keys.map((key) => ({ name: nameOf([...issue.path, key]), reason: 'is not a known field' }));
}

/** A path or query value that must be a whole number from 1. */
export function readId(text: string, name = 'id'): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw invalid({ name, reason: 'must be an integer' });
  return Number(text);
}

/** Refuses every query parameter that the operation does not know. */
export function readQuery(query: URLSearchParams, known: readonly string[]): void {
  const unknown = [...new Set(query.keys())].filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw invalid(...unknown.map((name) => ({ name, reason: 'is not a known parameter' })));
}
