import type * as z from 'zod';
import { questionClass } from './codes.ts';
import type { Position } from './desired.ts';
import { countsAsDeletion, type ResourceKey, takeApart } from './keys.ts';
import { factsOf } from './kind-facts.ts';
import type * as schema from './plan-schema.ts';
import type { Fixed } from './plan-schema.ts';
import type { ApiProfile } from './profile.ts';
import { resolveText } from './remedy.ts';

/** A part of the public JSON form. */
type Part<Name extends string> = Fixed<z.infer<(typeof schema)[`${Name}Schema` & keyof typeof schema]>>;

/** One step of a plan: plain data. An operation permits a write; the write is made from it later. */
export type Operation = Part<'operation'>;

/** `adopt` binds an existing resource without a write. A replacement is a `create` and a `delete`. */
export type Verb = Operation['verb'];

/** A field with its value before and after; `null`: the field or the resource does not exist at that time. */
export type Change = Part<'change'>;

/** A 402 pauses operations that `adds`, and never those that `reduces`. @source API §1.6 */
export type Spend = Operation['spend'];

/**
 * How far an operation can be undone. `another_address`, `data_lost`: the resource comes back with another address, or
 * without its data. `stays`: nothing can remove the created resource.
 */
export type UndoGrade = NonNullable<Operation['undo']>;

/** Stable across plans: the same step of the same resource has the same id. */
export type OperationId = Operation['id'];

/** The same verb and key give the same id in every plan, so that two plans can be compared. */
export function operationId(verb: Verb, key: ResourceKey): OperationId {
  return `${verb}:${key}` as OperationId;
}

/** The incoming traffic that a firewall opens, closes, and then leaves open: ports as text, such as `tcp 443`. */
export type Traffic = Part<'traffic'>;

/** The firewall of a new server, which is exposed until this operation is done. A disabled firewall filters nothing. */
export function endsExposure({ kind, verb, changes }: Pick<Operation, 'kind' | 'verb' | 'changes'>): boolean {
  return (
    factsOf(kind).endsExposure === true &&
    verb === 'create' &&
    changes.some(({ path, to }) => path === 'enabled' && to === true)
  );
}

/**
 * A resource that needs a decision of the operator. The JSON forms of a plan add the remedies as one text, `resolve`.
 */
export type Blocked = Omit<Part<'blocked'>, 'decision' | 'resolve'>;

/**
 * Whether the operation continues without a decision of the operator: after another operation, an answer of the API or a
 * later run. The command `resolve` with the key of the operation ends its open write earlier.
 */
export function isWaiting({ key, code, remedies }: Pick<Blocked, 'key' | 'code' | 'remedies'>): boolean {
  return (
    questionClass(code) === 'none' &&
    remedies.every(
      (way) =>
        way.type === 'outside' ||
        (way.type === 'run' &&
          (continuing.has(way.command) || (way.command === 'resolve' && way.args[0] === key))),
    )
  );
}

/** The commands that decide nothing. */
const continuing: ReadonlySet<string> = new Set(['apply', 'explain', 'status']);

/**
 * The number of keys that need a decision, and of those whose operations only wait.
 *
 * @param left operations that wait for the blocked ones
 */
export function decisions(
  blocked: readonly Pick<Blocked, 'key' | 'code' | 'remedies'>[],
  left: readonly Pick<Blocked, 'key'>[] = [],
): { readonly blocked: number; readonly waiting: number } {
  const keys = new Set(blocked.filter((each) => !isWaiting(each)).map(({ key }) => key));
  const waiting = new Set([...blocked, ...left].map(({ key }) => key).filter((key) => !keys.has(key)));
  return { blocked: keys.size, waiting: waiting.size };
}

/** The identity of a blocked operation: with another code, the block has another reason. */
export function blockedName({ code, verb, key }: Pick<Blocked, 'code' | 'verb' | 'key'>): string {
  return `${code} ${verb} ${key}`;
}

/** Sorts by the place in the spec. Parts without a place come last, in the given order. */
export function inFileOrder<Part extends { readonly position?: Position }>(
  parts: readonly Part[],
): readonly Part[] {
  return [...parts].sort(({ position: one }, { position: other }) => {
    if (one === undefined || other === undefined)
      return Number(one === undefined) - Number(other === undefined);
    if (one.file !== other.file) return one.file < other.file ? -1 : 1;
    return one.line - other.line || one.column - other.column;
  });
}

/** A danger, a difference or a limit that blocks no operation. `key`: `null` if it concerns the whole project. */
export type Warning = Part<'warning'>;

/** The public JSON form, with the remedies as one more text, and whether they are needed. @param flags of the call, for the commands in that text */
export function blockedJson({ remedies, ...blocked }: Blocked, flags = '') {
  const decision = !isWaiting({ ...blocked, remedies });
  return { ...blocked, decision, resolve: resolveText(remedies, flags), remedies };
}

/** Whether the resource differs from the spec, although the plan has no operation for the difference. */
export function reportsDifference({ code }: Warning): boolean {
  return code === 'in_flight' || code === 'released' || isLeft({ code });
}

/** Whether the difference from the spec remains: the spec asks for that, or no operation can remove the difference. */
export function isLeft({ code }: Pick<Warning, 'code'>): boolean {
  return code === 'drift' || code === 'server_image_not_taken' || code.endsWith('_differs');
}

/**
 * Whether a reader must see the warning before the operations: it names a danger, or a limit of the spec that the plan
 * cannot check.
 */
export function comesFirst({ code }: Pick<Warning, 'code'>): boolean {
  return code === 'exposed' || code === 'cap_unchecked';
}

/** Whether the entry of a resource has another key than before. */
export function isRename({ code }: Pick<Warning, 'code'>): boolean {
  return code === 'moved';
}

/** Whether an apply only records the change in the state and sends nothing to the API. */
export function isRecorded({ code }: Pick<Warning, 'code'>): boolean {
  return code === 'moved' || code === 'released' || code === 'flags_change';
}

/** Amounts are decimal text. */
export type Cost = Part<'cost'>;

/** The cost of the current month by the journal of the state. */
export type MonthCost = NonNullable<Cost['month']>;

/** The least number of requests for an apply, and their least duration in s by the request limits. @source API §8 */
export type Effort = Part<'effort'>;

/** The number of operations by verb. A replacement counts once, and a write that an earlier run has sent not at all. */
export type Summary = Part<'summary'>;

/** The part of a plan that the operator selected. A server includes all resources inside it. */
export type Selection = Part<'selection'>;

/**
 * A plan is a value, and its JSON form is public. `new_state`: an earlier state may have created a resource of the plan.
 * An apply then finds the resource by its idempotency key. A plan asks no key, because that is a write.
 */
export interface Plan extends Omit<Part<'plan'>, 'blocked' | 'more_warnings'> {
  readonly blocked: readonly Blocked[];
}

/**
 * The answers of the API to the creations of a plan, each sent with an unknown field, so that it creates nothing.
 * `accepted`: the API refuses only the unknown field. `refused`: the creation is blocked. `not_sent`: the request
 * depends on another creation, has no body, or follows a refusal of all of these writes.
 */
export type Proofs = Part<'proofs'>;

/** The deletions and replacements of a plan, counted as for `settings.max_deletions`. */
export function deletionsOf({ operations }: Pick<Plan, 'operations'>): number {
  return operations.filter(
    ({ verb, key, replacement }) => verb === 'delete' && countsAsDeletion(key, replacement !== undefined),
  ).length;
}

/** The largest number of warnings in an output of a plan. A large project can have one for each resource. */
const mostWarnings = 500;

/** Without remedies of a warning that a blocked operation with the same code has too. */
export function withoutRepeats(
  warnings: readonly Warning[],
  blocked: readonly { readonly code: string }[],
): readonly Warning[] {
  const codes = new Set(blocked.map(({ code }) => code));
  return warnings.map((each) => (codes.has(each.code) ? { ...each, remedies: [] } : each));
}

/** The warnings that an output shows, and how many more there are. */
export function firstWarnings(warnings: readonly Warning[]) {
  return {
    shown: warnings.slice(0, mostWarnings),
    more: Math.max(0, warnings.length - mostWarnings),
  };
}

/** The warnings of a public JSON form. */
export function warningsJson(all: readonly Warning[]) {
  const { shown: warnings, more } = firstWarnings(all);
  return { warnings, ...(more === 0 ? {} : { more_warnings: more }) };
}

/** The public JSON form of a plan. */
export function planJson(plan: Plan) {
  const blocked = plan.blocked.map((each) => blockedJson(each));
  return { ...plan, blocked, ...warningsJson(plan.warnings) };
}

/** An operation of a plan, or a write of the journal. */
export type Undoable = Pick<Operation, 'key' | 'kind' | 'verb' | 'changes' | 'loses'>;

/** How far each operation can be undone. @param together all operations of the plan or the run */
export function gradeIn(
  together: readonly Undoable[],
  { operations }: Pick<ApiProfile, 'operations'>,
): (operation: Undoable) => UndoGrade {
  const created = new Set(together.flatMap(({ verb, key }) => (verb === 'create' ? [key] : [])));
  return ({ key, kind, verb, changes, loses }) => {
    const { undo = {}, staysBilled } = factsOf(kind);
    switch (verb) {
      case 'adopt':
        return 'wholly';
      case 'create': {
        const { parent } = takeApart(key);
        const goesWithServer = staysBilled !== true && parent !== undefined && created.has(parent);
        const canGo = undo.removedBy !== undefined && operations[undo.removedBy] !== undefined;
        return undo.created === undefined || goesWithServer || canGo ? 'wholly' : undo.created;
      }
      case 'update':
        return loses !== undefined || changes.some(({ path }) => undo.grown?.includes(path))
          ? 'data_lost'
          : 'wholly';
      case 'delete':
        return undo.deleted ?? 'wholly';
    }
  };
}
