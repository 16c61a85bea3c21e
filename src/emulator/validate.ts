import { type InvalidParam, invalid } from './problem.ts';

/**
 * Strict reading of request bodies: unknown fields are refused, nothing is
 * coerced, strings are trimmed before their pattern is tried. `@source API §4`
 */
type FieldRule =
  | {
      readonly type: 'string';
      readonly required?: boolean;
      readonly least?: number;
      readonly most?: number;
      readonly pattern?: RegExp;
      readonly oneOf?: readonly string[];
      readonly reason?: string;
    }
  | { readonly type: 'integer'; readonly required?: boolean; readonly least?: number; readonly most?: number }
  | { readonly type: 'boolean'; readonly required?: boolean }
  | {
      readonly type: 'object';
      readonly required?: boolean;
      readonly fields: FieldRules;
      readonly open?: boolean;
    }
  | { readonly type: 'list'; readonly required?: boolean; readonly each: FieldRule };

export type FieldRules = Readonly<Record<string, FieldRule>>;

/** The trimmed fields of the body. Throws one `422 invalid_request` that names every wrong field. */
export function readBody(body: unknown, fields: FieldRules, normalise = true): Record<string, unknown> {
  const faults: InvalidParam[] = [];
  const result = readObject(body === undefined ? {} : body, fields, '', faults, { open: false, normalise });
  if (faults.length > 0) throw invalid(...faults);
  return result;
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

interface Mode {
  open: boolean;
  normalise: boolean;
}

function readObject(
  value: unknown,
  fields: FieldRules,
  path: string,
  faults: InvalidParam[],
  mode: Mode,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    faults.push({ name: path || 'body', reason: 'must be an object' });
    return result;
  }
  for (const [name, member] of Object.entries(value)) {
    const rule = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const at = path === '' ? name : `${path}.${name}`;
    if (rule !== undefined) result[name] = readValue(member, rule, at, faults, mode);
    else if (mode.open) result[name] = member;
    else faults.push({ name: at, reason: 'is not a known field' });
  }
  for (const [name, rule] of Object.entries(fields)) {
    if (rule.required === true && !Object.hasOwn(value, name)) {
      faults.push({ name: path === '' ? name : `${path}.${name}`, reason: 'is required' });
    }
  }
  return result;
}

function readValue(value: unknown, rule: FieldRule, at: string, faults: InvalidParam[], mode: Mode): unknown {
  const refuse = (reason: string): undefined => {
    faults.push({ name: at, reason });
  };
  switch (rule.type) {
    case 'boolean':
      return typeof value === 'boolean' ? value : refuse('must be true or false');
    case 'integer':
      if (typeof value !== 'number' || !Number.isSafeInteger(value)) return refuse('must be an integer');
      if (rule.least !== undefined && value < rule.least) return refuse(`must be at least ${rule.least}`);
      if (rule.most !== undefined && value > rule.most) return refuse(`must be at most ${rule.most}`);
      return value;
    case 'string': {
      if (typeof value !== 'string') return refuse('must be a string');
      const text = value.trim();
      const length = [...text].length;
      if (length < (rule.least ?? 0)) return refuse(`must have at least ${rule.least} characters`);
      if (length > (rule.most ?? Number.POSITIVE_INFINITY))
        return refuse(`must have at most ${rule.most} characters`);
      if (rule.pattern !== undefined && !rule.pattern.test(text))
        return refuse(rule.reason ?? 'has a wrong form');
      if (rule.oneOf !== undefined && !rule.oneOf.includes(text))
        return refuse(`must be one of ${rule.oneOf.join(', ')}`);
      return mode.normalise ? text : value;
    }
    case 'object':
      return readObject(value, rule.fields, at, faults, { ...mode, open: rule.open ?? false });
    case 'list':
      if (!Array.isArray(value)) return refuse('must be an array');
      return value.map((member, index) => readValue(member, rule.each, `${at}[${index}]`, faults, mode));
  }
}
