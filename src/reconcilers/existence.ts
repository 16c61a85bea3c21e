import type { Diff, Subject } from '../core/kind.ts';
import type { Change, Verb } from '../core/plan.ts';

/** What the live side has for one top-level subject. */
export interface Existence {
  /** The live resource's id: by binding, by `id:`, or by name where it is not managed. */
  readonly id: string | undefined;
  /** How the live resource tells itself apart. */
  readonly identity: Readonly<Record<string, string>>;
}

/**
 * The verdicts that all top-level kinds share: entries with `id:` or `managed: false`,
 * resources that are gone, and live resources that are not what was bound.
 * `undefined`: nothing of the sort, go on comparing.
 */
export function diffExistence(subject: Subject, noun: string, live: Existence | undefined): Diff | undefined {
  const { key, desired, binding } = subject;
  if (binding !== undefined) {
    if (desired?.id !== undefined && desired.id !== binding.id) {
      return blocked(
        'update',
        'id_conflict',
        `${key} is bound to ${noun} ${binding.id}, but the file says id ${desired.id}`,
        `vdcsync adopt ${key} ${desired.id}`,
      );
    }
    if (binding.tainted !== undefined && live !== undefined && desired !== undefined) {
      return blocked(
        'create',
        'tainted',
        `${noun} ${binding.id} was left behind by a write that failed: ${binding.tainted}`,
        `vdcsync adopt ${key} ${binding.id} (if it is of use), or delete it in the client area`,
      );
    }
    if (live === undefined) return desired === undefined ? gone(noun, binding.id) : undefined;
    const differs = Object.entries(binding.identity).find(([field, value]) => live.identity[field] !== value);
    if (differs !== undefined) {
      const [field, value] = differs;
      return blocked(
        desired === undefined ? 'delete' : 'update',
        'identity_changed',
        `${noun} ${binding.id} had ${field} ${value} when it was bound and now has ${live.identity[field] ?? 'none'}: it may be another resource`,
        `vdcsync adopt ${key} ${binding.id}`,
      );
    }
    return undefined;
  }
  if (desired === undefined) return { verdict: { verdict: 'unchanged' } };
  if (!desired.managed) {
    if (live !== undefined) return { verdict: { verdict: 'unchanged' } };
    const wanted = desired.id === undefined ? `no ${noun} of that name` : `no ${noun} ${desired.id}`;
    return blocked(
      'adopt',
      'not_found',
      `${key} is not managed and must exist, but the project has ${wanted}`,
      `create it, correct the entry, or remove \`managed: false\``,
    );
  }
  if (desired.id !== undefined) {
    if (live?.id !== undefined) {
      return { verdict: { verdict: 'adopt', target: live.id, reason: `the file binds it to id ${live.id}` } };
    }
    return blocked(
      'adopt',
      'not_found',
      `the file binds ${key} to ${noun} ${desired.id}, which the project does not have`,
      `correct or remove \`id: ${desired.id}\``,
    );
  }
  return undefined;
}

export function blocked(verb: Verb, code: string, reason: string, resolve: string): Diff {
  return { verdict: { verdict: 'blocked', verb, code, reason, resolve } };
}

function gone(noun: string, id: string): Diff {
  return { verdict: { verdict: 'release', gone: true, reason: `${noun} ${id} does not exist any more` } };
}

/** The changes of a creation: every declared field from nothing. */
export function fromNothing(fields: Readonly<Record<string, unknown>>): Change[] {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([path, to]) => ({ path, from: null, to }));
}

/** The changes of a deletion: what is known of the resource, to nothing. */
export function toNothing(fields: Readonly<Record<string, unknown>>): Change[] {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([path, from]) => ({ path, from, to: null }));
}

/** A member of an object of unknown shape. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** An `id` of an answer's `data`, as text. */
export function idIn(data: unknown): string | undefined {
  const id = member(data, 'id');
  return typeof id === 'number' || (typeof id === 'string' && id !== '') ? String(id) : undefined;
}

/** Ids of a recorded list. */
export function recordedIds(preimage: unknown, name: string): ReadonlySet<string> {
  const list = member(preimage, name);
  return new Set(Array.isArray(list) ? list.map(String) : []);
}
