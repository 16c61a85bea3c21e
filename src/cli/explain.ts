import { questionClasses } from '../core/codes/explained.ts';
import { explanationOf } from '../core/codes.ts';
import type { Position } from '../core/desired.ts';
import { endOf, partsOf } from '../core/intent.ts';
import type { KeyStatus } from '../core/key-status.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Operation, Warning } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';
import { knownIn, type ProjectFacts, time } from '../view/facts.ts';
import type { ProjectView } from '../view/project-view.ts';

/** The public JSON of `vdcsync explain CODE`. */
export interface CodeExplanation {
  readonly format_version: 1;
  readonly code: string;
  readonly meaning: string;
  /** The reason why vdcsync cannot decide, and the class of the question to the operator; null if nothing is blocked. */
  readonly cause: string | null;
  readonly class: string | null;
  readonly next_step: string;
  readonly example: { readonly situation: string; readonly ways: readonly string[] };
}

/** `undefined`: no code of vdcsync. */
export function codeExplanation(code: string): CodeExplanation | undefined {
  const explained = explanationOf(code);
  if (explained === undefined) return undefined;
  const { meaning, next, asks, why = null, example, ways = [] } = explained;
  return {
    format_version: 1,
    code,
    meaning,
    cause: asks === 'none' ? null : why,
    class: asks === undefined ? null : questionClasses[asks].title,
    next_step: next,
    example: { situation: example, ways },
  };
}

/** The public JSON of `vdcsync explain KEY`: the story of one key. Null: there is none. */
export interface KeyStory {
  readonly format_version: 1;
  readonly key: ResourceKey;
  readonly declared: {
    readonly position: Position;
    readonly managed: boolean;
    readonly protect: boolean;
    readonly entry: unknown;
  } | null;
  /** Whether a spec was read. Without a spec, no key is declared. */
  readonly file_read: boolean;
  readonly bound: {
    readonly id: string;
    readonly since: string;
    readonly standing: KeyStatus;
    readonly addresses: readonly string[];
  } | null;
  /** When the API was read, or the reason why it was not. */
  readonly observed_at: string | null;
  readonly offline: string | null;
  /** The operations of the next plan. */
  readonly planned: readonly Pick<Operation, 'verb' | 'changes' | 'reason'>[];
  readonly open_writes: readonly Write[];
  readonly blocked: ProjectView['blocked'];
  readonly warnings: readonly Warning[];
  /** The last writes that have ended, newest first. */
  readonly past_writes: readonly (Write & { readonly outcome: string; readonly closed_at: string })[];
}

interface Write {
  readonly verb: string;
  readonly phase: string;
  readonly since: string;
  readonly detail: string | null;
  readonly task_id: string | null;
  readonly request_id: string | null;
}

const mostPastWrites = 3;

/** All that spec, state and API say about one key. Pure. */
export function storyOf(key: ResourceKey, facts: ProjectFacts, view: ProjectView): KeyStory {
  const isOf = (each: { readonly key: ResourceKey | null }) => each.key === key;
  const desired = facts.offer?.desired;
  const entry = desired?.resources.find(isOf);
  const { intents, history = [] } = knownIn(facts);
  const bound = view.resources.find(isOf);
  const open = intents.filter(isOf);
  const past = history.filter((each) => isOf(each) && each.phase === 'closed');
  return {
    format_version: 1,
    key,
    declared:
      entry === undefined
        ? null
        : {
            position: entry.position,
            managed: entry.managed,
            protect: entry.protect,
            entry: entry.value,
          },
    file_read: desired !== undefined,
    bound:
      bound === undefined
        ? null
        : {
            id: bound.id ?? '',
            since: bound.bound_at ?? '',
            standing: bound.standing,
            addresses: bound.addresses,
          },
    observed_at: view.observed_at,
    offline: view.offline,
    planned: view.operations
      .filter(isOf)
      .map(({ verb, changes, reason }) => ({ verb, changes, ...(reason === undefined ? {} : { reason }) })),
    open_writes: open.filter(({ phase }) => phase !== 'blocked').map(writeOf),
    blocked: view.blocked.filter(isOf),
    warnings: view.warnings.filter(isOf),
    past_writes: past.slice(0, mostPastWrites).map((intent) => ({
      ...writeOf(intent),
      outcome: endOf(intent) ?? 'unknown',
      closed_at: time(partsOf(intent).closedAt ?? intent.createdAt),
    })),
  };
}

function writeOf(intent: Intent): Write {
  const { verb, phase, createdAt, detail, requestId } = intent;
  return {
    verb,
    phase,
    since: time(createdAt),
    detail: detail === '' ? null : detail,
    task_id: partsOf(intent).answer?.taskId ?? null,
    request_id: requestId ?? null,
  };
}
