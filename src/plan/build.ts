import { digestOf } from '../core/json.ts';
import type { KindName, ResourceKey } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { Blocked, Cost, Effort, Operation, OperationId, Plan, Summary, Warning } from '../core/plan.ts';
import { operationId } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';
import type { Draft } from './draft.ts';
import { draftAll, operationsOf } from './draft.ts';
import type { GuardInput } from './guards.ts';
import { guard, knownDelta } from './guards.ts';
import { order, prerequisites } from './order.ts';

export interface PlanInput extends GuardInput {
  readonly kinds: ReadonlyMap<KindName, ResourceKind>;
  readonly openIntents: readonly Intent[];
  /** Of the spec. */
  readonly desiredDigest: string;
}

/** A binding that ends without a write. `gone`: once its absence is confirmed. */
export interface Release {
  readonly key: ResourceKey;
  readonly gone: boolean;
  readonly reason: string;
}

export interface Planned {
  readonly plan: Plan;
  readonly releases: readonly Release[];
}

/**
 * The difference between file and project as a value: what would be done, in which
 * order, what is held back and why. Pure: the same input gives the same plan.
 */
export function buildPlan(input: PlanInput): Planned {
  const { world, kinds } = input;
  const drafts = reportDrift(draftAll(kinds, world), world);
  const inFlight = new Map(
    input.openIntents.filter((intent) => !isOvertaken(intent, world)).map((intent) => [intent.key, intent]),
  );
  const objections = guard(drafts, input);
  const stuck = [...inFlight.values()].flatMap((intent) => blockedIntent(intent, world));
  const allowed = drafts.filter(
    (draft) => !objections.has(draft) && inFlight.get(draft.subject.key)?.phase !== 'blocked',
  );
  const candidates = order(allowed.flatMap(operationsOf), kinds, world);
  const { operations, held } = holdDependents(candidates, input);
  const blocked = [...stuck, ...objections.values(), ...held].sort((a, b) => (a.key < b.key ? -1 : 1));
  const releases = allowed.flatMap(releaseOf);
  const warnings = [
    ...drafts.flatMap(({ diff }) => diff.warnings ?? []),
    ...releases.map(({ key, reason }) => ({ code: 'released', key, message: reason })),
    ...[...inFlight.values()].flatMap(inFlightWarning),
    ...notActive(world),
  ];
  return { plan: assemble(input, { drafts, allowed, operations, blocked, warnings }), releases };
}

interface Parts {
  readonly drafts: readonly Draft[];
  readonly allowed: readonly Draft[];
  readonly operations: readonly Operation[];
  readonly blocked: readonly Blocked[];
  readonly warnings: readonly Warning[];
}

function assemble(input: PlanInput, { drafts, allowed, operations, blocked, warnings }: Parts): Plan {
  const { project } = input.world;
  const done = new Set(operations.map(({ key }) => key));
  return {
    format_version: 1,
    project: { id: project.id, name: project.name, status: project.status },
    observed_at: new Date(input.now).toISOString(),
    digest: digestOfPlan(input, operations, blocked),
    summary: summarise(operations, blocked, drafts),
    operations,
    blocked,
    warnings,
    cost: costOf(
      allowed.filter(({ subject, diff }) => done.has(subject.key) || diff.verdict.verdict === 'release'),
    ),
    effort: effortOf(operations, input),
  };
}

/** `drift: report`: what moved behind the file's back is told and left as it is. */
function reportDrift(drafts: readonly Draft[], world: World): Draft[] {
  if (world.settings.drift === 'correct') return [...drafts];
  return drafts.map((draft) => {
    const { verdict } = draft.diff;
    const lost = verdict.verdict === 'create' && verdict.lost !== undefined;
    if (!lost && verdict.verdict !== 'update') return draft;
    const told = lost ? verdict.lost : verdict.changes.map(({ path }) => path).join(', ');
    const warning = { code: 'drift', key: draft.subject.key, message: `differs from the file: ${told}` };
    const warnings = [...(draft.diff.warnings ?? []), warning];
    return { ...draft, diff: { verdict: { verdict: 'unchanged' }, warnings } };
  });
}

/** An operation whose prerequisites neither exist nor are about to cannot be done either. */
function holdDependents(candidates: readonly Operation[], { kinds, world }: PlanInput) {
  const operations = new Map<OperationId, Operation>();
  const held: Blocked[] = [];
  for (const operation of candidates) {
    const missing = prerequisites(operation, kinds, world).find(
      (key) =>
        !operations.has(operationId('create', key)) &&
        !operations.has(operationId('adopt', key)) &&
        world.idOf(key) === undefined,
    );
    const waits = missing ?? operation.needs.find((id) => !operations.has(id));
    if (waits === undefined) operations.set(operation.id, operation);
    else held.push(dependencyBlocked(operation, waits.replace(/^\w+:/, '')));
  }
  return { operations: [...operations.values()], held };
}

function dependencyBlocked({ key, verb }: Operation, waitsFor: string): Blocked {
  return {
    key,
    verb,
    code: 'dependency_blocked',
    reason: `waits for ${waitsFor}, which is blocked or missing`,
    resolve: `settle ${waitsFor}`,
  };
}

/** A refusal of what the file said then, and the file says something else now. */
export function isOvertaken(intent: Intent, world: World): boolean {
  if (intent.phase !== 'blocked' || intent.blocked?.until !== 'file') return false;
  return digestOf(world.subjects.get(intent.key)?.desired?.value ?? null) !== intent.basis;
}

function blockedIntent(intent: Intent, world: World): Blocked[] {
  if (intent.phase !== 'blocked' || intent.blocked === undefined) return [];
  const { code, reason, candidates, until } = intent.blocked;
  const position = world.subjects.get(intent.key)?.desired?.position;
  const where = position === undefined ? 'the file' : `${position.file}:${position.line}:${position.column}`;
  const adoptable = intent.verb === 'create' ? (candidates.length > 0 ? candidates : ['ID']) : [];
  const commands = [
    ...(until === 'file' ? [`correct the entry at ${where}`] : []),
    ...(until === 'file' ? [] : adoptable.map((id) => `vdcsync resolve ${intent.key} --adopt ${id}`)),
    `vdcsync resolve ${intent.key} --absent`,
  ];
  return [{ key: intent.key, verb: intent.verb, code, reason, resolve: commands.join(' | ') }];
}

function inFlightWarning(intent: Intent): Warning[] {
  if (intent.phase === 'blocked') return [];
  const message = `${intent.verb} was sent before and is not settled yet (${intent.phase}); apply settles it first`;
  return [{ code: 'in_flight', key: intent.key, message }];
}

/** @source API §1.6 */
function notActive({ project }: World): Warning[] {
  if (project.status === 'Active') return [];
  const message = `the project is ${project.status}: what adds spending is refused until it is Active`;
  return [{ code: 'project_not_active', key: null, message }];
}

function releaseOf({ subject, diff }: Draft): Release[] {
  const { verdict } = diff;
  return verdict.verdict === 'release'
    ? [{ key: subject.key, gone: verdict.gone, reason: verdict.reason }]
    : [];
}

/** Over what would be done and why, not over when it was looked at. */
function digestOfPlan(
  { world, desiredDigest }: PlanInput,
  operations: readonly Operation[],
  blocked: readonly Blocked[],
): string {
  return digestOf({
    project: world.project.id,
    desired: desiredDigest,
    operations: operations.map(({ id, changes, needs, target }) => ({ id, changes, needs, target })),
    blocked: blocked.map(({ key, verb, code }) => ({ key, verb, code })),
  });
}

function summarise(
  operations: readonly Operation[],
  blocked: readonly Blocked[],
  drafts: readonly Draft[],
): Summary {
  const plain = (verb: string) =>
    operations.filter((each) => each.verb === verb && each.replacement === undefined).length;
  const touched = new Set([...operations.map(({ key }) => key), ...blocked.map(({ key }) => key)]);
  return {
    create: plain('create'),
    update: plain('update'),
    replace: operations.filter(({ verb, replacement }) => verb === 'create' && replacement !== undefined)
      .length,
    delete: plain('delete'),
    adopt: plain('adopt'),
    blocked: blocked.length,
    unchanged: drafts.filter(({ subject }) => subject.desired !== undefined && !touched.has(subject.key))
      .length,
  };
}

function costOf(drafts: readonly Draft[]): Cost {
  const changing = drafts.filter(({ diff }) =>
    ['create', 'delete', 'replace'].includes(diff.verdict.verdict),
  );
  return {
    known_monthly_delta: knownDelta(changing),
    unknown: changing.flatMap(({ subject, diff }) =>
      diff.price !== undefined && 'unknown' in diff.price ? [`${subject.key}: ${diff.price.unknown}`] : [],
    ),
    left_billed: drafts.flatMap(({ diff }) => diff.leftBilled ?? []),
  };
}

/** Reads that one operation takes beside the pass's own: its look before, its polls, its check after. */
const readsPerOperation = 4;

function effortOf(operations: readonly Operation[], { world }: PlanInput): Effort {
  const { limits } = world.profile;
  const writes = operations.filter(({ verb }) => verb !== 'adopt').length;
  const reads = writes * readsPerOperation;
  const windows = Math.max(Math.ceil(writes / limits.writes) - 1, Math.ceil(reads / limits.reads) - 1, 0);
  return { writes, reads, seconds_at_least: (windows * limits.windowMs) / 1000 };
}
