import { roll } from './dice.ts';
import type { KeyStatus, World } from './world.ts';

/**
 * A fault: a condition on requests, and the action on a request that meets it. Only the first rule
 * that fits a request acts on it.
 */
export interface FaultRule {
  readonly when: FaultCondition;
  readonly then: FaultAction;
}

/** A rule, for code: linters mistake a literal with a `then` for a promise. */
export function faultRule(when: FaultCondition, action: FaultAction): FaultRule {
  // biome-ignore lint/suspicious/noThenProperty: not a function, so nothing waits for it
  return { when, then: action };
}

/** Every member given must hold; an empty condition meets every request. */
interface FaultCondition {
  readonly method?: string;
  /** A path after `/v1` (`*` one segment, `**` any number), or an operation's name such as `create_server`. */
  readonly path?: string;
  /** Only the nth request that fits (from 1), and those after it up to `times`. */
  readonly nth?: number;
  /** How often the rule acts at most; without it once when `nth` is given, else always. */
  readonly times?: number;
  /** In [0, 1]; drawn from the world's dice. */
  readonly probability?: number;
}

/** Whether the request has its effect before the fault. */
type FaultEffect = 'none' | 'done';

/** How the answer stored under the idempotency key is treated when the effect is done: by default as §8 says. */
type Storing = { readonly stored?: boolean };

export type FaultAction =
  | ({
      readonly do: 'answer';
      readonly status: number;
      readonly code?: string;
      readonly detail?: string;
      readonly retryAfter?: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly effect?: FaultEffect;
    } & Storing)
  /** The connection breaks: the client cannot know whether there was an effect. */
  | ({ readonly do: 'reset'; readonly effect?: FaultEffect } & Storing)
  /** No connection at all. Over HTTP the nearest thing: closed before a byte is read. */
  | { readonly do: 'refuse' }
  /** The connection breaks inside the body, after `keep` bytes (default: half). */
  | ({ readonly do: 'truncate'; readonly keep?: number } & Storing)
  /** A whole answer whose body is not JSON. */
  | ({ readonly do: 'malformed' } & Storing)
  /** A proxy's page: no `X-Request-Id`, no JSON. */
  | ({ readonly do: 'html'; readonly status?: number; readonly effect?: FaultEffect } & Storing)
  | ({
      readonly do: 'redirect';
      readonly status?: number;
      readonly location?: string;
      readonly effect?: FaultEffect;
    } & Storing)
  /** The effect at once, the answer `ms` emulator milliseconds later. */
  | { readonly do: 'slow'; readonly ms: number }
  /**
   * The connection breaks at once, the effect comes `ms` emulator milliseconds later. Meanwhile the service works
   * on it under its key; with `holdsKey: false` it is still on its way, and its key is free.
   */
  | { readonly do: 'late'; readonly ms: number; readonly holdsKey?: boolean }
  /**
   * The outcome of the task that the request starts, and its duration (`ms`). `partial` leaves the address but not
   * the server; `later` shows nothing when the task is reported as failed, and everything `laterMs` after that.
   */
  | {
      readonly do: 'task';
      readonly outcome?: 'fail' | 'stuck' | 'forgotten';
      readonly leaves?: 'nothing' | 'everything' | 'partial' | 'later';
      readonly ms?: number;
      readonly laterMs?: number;
    }
  /** The `task` member is missing from the answer. */
  | { readonly do: 'omit_task' }
  | { readonly do: 'no_gpu_capacity' }
  /** Adds members to `data` (each object of a list) and may replace its `status` and the task's. */
  | {
      readonly do: 'decorate';
      readonly fields?: Readonly<Record<string, unknown>>;
      readonly status?: string;
      readonly taskStatus?: string;
    }
  /** The read shows the world of `ms` emulator milliseconds ago. */
  | { readonly do: 'stale'; readonly ms: number }
  /** The list ends after `keep` entries. */
  | { readonly do: 'truncate_list'; readonly keep: number }
  /** A 429 that is kept under the idempotency key and replayed from then on. */
  | { readonly do: 'stored_429'; readonly retryAfter?: number }
  /** The project's standing changes just before the request. */
  | { readonly do: 'standing'; readonly standing: KeyStatus };

/** The action of the first rule that meets this request, and counts it. */
export function meetFault(
  rules: readonly FaultRule[],
  world: World,
  call: { method: string; path: string; operation: string | null },
): FaultAction | null {
  for (const [index, rule] of rules.entries()) {
    if (!fits(rule.when, call)) continue;
    world.faultHits[index] ??= { fitted: 0, acted: 0 };
    const hits = world.faultHits[index] as { fitted: number; acted: number };
    hits.fitted += 1;
    const { nth, probability } = rule.when;
    const times = rule.when.times ?? (nth === undefined ? Number.POSITIVE_INFINITY : 1);
    if (hits.fitted < (nth ?? 1) || hits.acted >= times) continue;
    if (probability !== undefined && roll(world) >= probability) continue;
    hits.acted += 1;
    return rule.then;
  }
  return null;
}

function fits(
  when: FaultCondition,
  call: { method: string; path: string; operation: string | null },
): boolean {
  if (when.method !== undefined && when.method.toUpperCase() !== call.method) return false;
  if (when.path === undefined) return true;
  return when.path.startsWith('/') ? globPattern(when.path).test(call.path) : when.path === call.operation;
}

function globPattern(glob: string): RegExp {
  const source = glob
    .split(/(\*\*|\*|\{\w+\})/)
    .map((part) => {
      if (part === '**') return '.*';
      if (part === '*' || /^\{\w+\}$/.test(part)) return '[^/]+';
      return part.replace(/[.+?^${}()|[\]\\]/g, '\\$&');
    })
    .join('');
  return new RegExp(`^${source}$`);
}
