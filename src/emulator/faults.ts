import * as z from 'zod';
import { roll } from './dice.ts';
import type { World } from './world.ts';

const count = z.int().min(1);
const ms = z.number().min(0);
/** Whether the request has its effect before the fault. */
const effect = z.enum(['none', 'done']).exactOptional();
/** How the answer stored under the idempotency key is treated when the effect is done: by default as §8 says. */
const stored = z.boolean().exactOptional();
const status = z.int().min(200).max(599);

/** Every member given must hold; an empty condition meets every request. */
const conditionSchema = z.strictObject({
  method: z.string().min(1).exactOptional(),
  /** A path after `/v1` (`*` one segment, `**` any number), or an operation's name such as `create_server`. */
  path: z.string().min(1).exactOptional(),
  /** Only the nth request that fits (from 1), and those after it up to `times`. */
  nth: count.exactOptional(),
  /** How often the rule acts at most; without it once when `nth` is given, else always. */
  times: count.exactOptional(),
  /** Drawn from the world's dice. */
  probability: z.number().min(0).max(1).exactOptional(),
});

const actionSchema = z.discriminatedUnion('do', [
  z.strictObject({
    do: z.literal('answer'),
    status,
    code: z.string().min(1).exactOptional(),
    detail: z.string().exactOptional(),
    retryAfter: z.int().min(0).exactOptional(),
    headers: z.record(z.string(), z.string()).exactOptional(),
    effect,
    stored,
  }),
  /** The connection breaks: the client cannot know whether there was an effect. */
  z.strictObject({ do: z.literal('reset'), effect, stored }),
  /** No connection at all. Over HTTP the nearest thing: closed before a byte is read. */
  z.strictObject({ do: z.literal('refuse') }),
  /** The connection breaks inside the body, after `keep` bytes (default: half). */
  z.strictObject({ do: z.literal('truncate'), keep: z.int().min(0).exactOptional(), stored }),
  /** A whole answer whose body is not JSON. */
  z.strictObject({ do: z.literal('malformed'), stored }),
  /** A proxy's page: no `X-Request-Id`, no JSON. */
  z.strictObject({ do: z.literal('html'), status: status.exactOptional(), effect, stored }),
  z.strictObject({
    do: z.literal('redirect'),
    status: z.int().min(300).max(399).exactOptional(),
    location: z.string().exactOptional(),
    effect,
    stored,
  }),
  /** The effect at once, the answer `ms` emulator milliseconds later. */
  z.strictObject({ do: z.literal('slow'), ms }),
  /**
   * The connection breaks at once, the effect comes `ms` emulator milliseconds later. Meanwhile the service works
   * on it under its key; with `holdsKey: false` it is still on its way, and its key is free.
   */
  z.strictObject({ do: z.literal('late'), ms, holdsKey: z.boolean().exactOptional() }),
  /**
   * The outcome of the task that the request starts, and its duration (`ms`). `partial` leaves the address but not
   * the server; `later` shows nothing when the task is reported as failed, and everything `laterMs` after that.
   */
  z.strictObject({
    do: z.literal('task'),
    outcome: z.enum(['fail', 'stuck', 'forgotten']).exactOptional(),
    leaves: z.enum(['nothing', 'everything', 'partial', 'later']).exactOptional(),
    ms: ms.exactOptional(),
    laterMs: ms.exactOptional(),
  }),
  /** The `task` member is missing from the answer. */
  z.strictObject({ do: z.literal('omit_task') }),
  z.strictObject({ do: z.literal('no_gpu_capacity') }),
  /** Adds members to `data` (each object of a list) and may replace its `status` and the task's. */
  z.strictObject({
    do: z.literal('decorate'),
    fields: z.record(z.string(), z.unknown()).exactOptional(),
    status: z.string().exactOptional(),
    taskStatus: z.string().exactOptional(),
  }),
  /** The read shows the world of `ms` emulator milliseconds ago. */
  z.strictObject({ do: z.literal('stale'), ms }),
  /** The list ends after `keep` entries. */
  z.strictObject({ do: z.literal('truncate_list'), keep: z.int().min(0) }),
  /** A 429 that is kept under the idempotency key and replayed from then on. */
  z.strictObject({ do: z.literal('stored_429'), retryAfter: z.int().min(0).exactOptional() }),
  /** The project's standing changes just before the request. */
  z.strictObject({ do: z.literal('standing'), standing: z.enum(['active', 'suspended', 'unpaid']) }),
]);

/** One rule of a faults file, as {@link FaultRule} describes. */
export const faultSchema = z.strictObject({
  when: conditionSchema,
  // biome-ignore lint/suspicious/noThenProperty: the file format says when … then, and it is not a function
  then: actionSchema,
});

type FaultCondition = Readonly<z.infer<typeof conditionSchema>>;
/** The action of a rule on one request: `do` names the fault. */
export type FaultAction = Readonly<z.infer<typeof actionSchema>>;
type FaultedCall = { method: string; path: string; operation: string | null };

/**
 * A fault: a condition on requests, and the action on a request that meets it. Only the first rule
 * that fits a request acts on it.
 */
export type FaultRule = Readonly<z.infer<typeof faultSchema>>;

/** A rule, for code: linters mistake a literal with a `then` for a promise. */
export function faultRule(when: FaultCondition, action: FaultAction): FaultRule {
  // biome-ignore lint/suspicious/noThenProperty: not a function, so nothing waits for it
  return { when, then: action };
}

/** The action of the first rule that meets this request, and counts it. */
export function meetFault(rules: readonly FaultRule[], world: World, call: FaultedCall): FaultAction | null {
  for (const [index, rule] of rules.entries()) {
    if (!fits(rule.when, call)) continue;
    const hits = world.faultHits[index] ?? { fitted: 0, acted: 0 };
    world.faultHits[index] = hits;
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

function fits(when: FaultCondition, call: FaultedCall): boolean {
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
