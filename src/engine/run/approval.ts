import equal from 'fast-deep-equal';
import { type Claim, type Holder, objectName } from '../../core/claims.ts';
import { negated, sumDecimals } from '../../core/decimal.ts';
import type { Desired } from '../../core/desired.ts';
import { ConfigError, PlanStaleError } from '../../core/errors.ts';
import { partsOf } from '../../core/intent.ts';
import { canonicalJson, digestOf } from '../../core/json.ts';
import { type ResourceKey, retiredFrom, takeApart } from '../../core/keys.ts';
import { type Change, type Operation, operationId, type Plan } from '../../core/plan.ts';
import type { ApplyReport } from '../../core/progress.ts';
import { type CommandResult, command, result } from '../../core/remedy.ts';
import type { Intent, StateStore } from '../../core/state.ts';
import type { Prices } from '../../plan/totals.ts';
import type { Run } from '../run.ts';

/** The object whose holder is the plan that waits, or the approved plan. */
const approvalObject = { kind: 'project', id: 'approval' } as const;
/** The shortest prefix of a digest that identifies a plan, in characters. */
const shortest = 12;

type Store = Pick<StateStore, 'claims' | 'change' | 'intents'>;

/**
 * Blocks a plan until the operator has approved exactly this plan.
 *
 * ```
 * plan that asks ──▶ waiting {digest} ──approve DIGEST──▶ granted {operations}
 *                      ▲                                     │ each operation is done once, over all reconciliations
 *                      └──── any other operation: void ──────┘
 * ```
 * A reconciliation that ends early continues later under the same grant, because the rest of a plan is a part of
 * the plan. The grant does not cover an operation twice: if drift asks for a done operation again, the plan waits.
 *
 * The grant covers the wanted values, not the difference from the project: once a server exists, its firewall differs in
 * fewer values than the approved plan showed. An operation with a part of the approved values needs no other approval. A
 * deletion and a replacement must have exactly the approved content.
 *
 * The two halves of a replacement have one approval. Once the old resource is deleted, a plan shows the creation as the
 * creation of a resource that did not exist before. The grant covers this creation if it has all approved values.
 */
export class Approval {
  readonly #store: Store;
  /** The operations that the grant permits, by the parts of their content. Absent if no operation has to wait. */
  #granted: Map<string, Operation> | undefined;
  /** The digest of the plan that waits. */
  waiting: string | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Called when a reconciliation begins. */
  begin(): void {
    this.#granted = undefined;
    this.waiting = undefined;
  }

  /** Whether the plan may be carried out now. Records that it waits, if it may not. */
  async permits(plan: Plan, desired: Pick<Desired, 'settings' | 'digest'>, now: number): Promise<boolean> {
    this.begin();
    const isToBegin = plan.operations.some(({ open }) => open !== true);
    if (!isToBegin || !asksForApproval(plan, desired.settings)) return true;
    const before = await readClaim(this.#store);
    this.#granted = await this.#covered(plan, desired.digest, before, now);
    if (!plan.operations.some((each) => this.isPaused(each))) return true;
    this.waiting = plan.digest;
    const { is, digest } = before?.holder ?? {};
    if (is !== 'awaiting_approval' || digest !== plan.digest)
      await claim(this.#store, { is: 'awaiting_approval', digest: plan.digest }, now);
    return false;
  }

  /** Whether an operation of a plan of this run has to wait. */
  isPaused(operation: Operation): boolean {
    return this.#granted !== undefined && operation.open !== true && !isIn(this.#granted, operation);
  }

  /** An operation that is done is not covered a second time. */
  consume({ key, verb }: Pick<Operation, 'key' | 'verb'>): void {
    for (const [part, operation] of this.#granted ?? [])
      if (operation.key === key && operation.verb === verb) this.#granted?.delete(part);
  }

  /**
   * Called when a reconciliation has carried out its plan, and some of it may be blocked. Then no plan waits. An approved
   * plan that has begun continues later under the same spec, until the project has converged.
   */
  async end(
    { outcome }: Pick<ApplyReport, 'outcome'>,
    { digest }: Pick<Desired, 'digest'>,
    now: number,
  ): Promise<void> {
    if (this.waiting !== undefined || (outcome !== 'converged' && outcome !== 'blocked')) return;
    const before = await readClaim(this.#store);
    if (before === undefined) return;
    const { holder } = before;
    const hasBegun = holder.is === 'approved' && holder.operations !== undefined && holder.desired === digest;
    if (hasBegun && outcome === 'blocked') return;
    const reason = 'another plan was carried out';
    await this.#store.change([{ type: 'unclaim', object: before, reason }], now);
  }

  async #covered(
    plan: Plan,
    desired: string,
    before: ApprovalClaim | undefined,
    now: number,
  ): Promise<Map<string, Operation>> {
    const partsIn = (operations: readonly Operation[]) =>
      new Map(operations.flatMap((each) => partsOfContent(each).map((part) => [part, each] as const)));
    const all = partsIn(plan.operations);
    if (before?.holder.is !== 'approved') return new Map();
    const { at, holder } = before;
    if (holder.operations === undefined) {
      if (holder.digest !== plan.digest) return new Map();
      const grant = { ...holder, desired, operations: [...all.keys()], before: await this.#newest(plan) };
      await claim(this.#store, grant, at, now);
      return all;
    }
    if (holder.desired !== desired) return new Map();
    const [approved, written] = [new Set(holder.operations), new Set(holder.before)];
    const covered: Operation[] = [];
    for (const operation of plan.operations) {
      const done = await this.#doneSince(written, operation);
      const isCovered = isIn(approved, operation) || endsApproved(operation, done, approved);
      if (isCovered && !done.some(({ verb }) => verb === operation.verb)) covered.push(operation);
    }
    return partsIn(covered);
  }

  async #newest({ operations }: Plan): Promise<readonly string[]> {
    const newest = await Promise.all(operations.map(({ key }) => this.#store.intents({ key, limit: 1 })));
    return newest.flat().map(({ id }) => id);
  }

  /** The later writes of the key that are done. Their times say nothing: a clock may jump. */
  async #doneSince(before: ReadonlySet<string>, { key }: Operation): Promise<readonly Intent[]> {
    const past = await this.#store.intents({ key, limit: 50 });
    const first = past.findIndex(({ id }) => before.has(id));
    return past.slice(0, first < 0 ? past.length : first).filter((each) => partsOf(each).outcome === 'done');
  }
}

/** Whether the operation creates the new resource of an approved replacement whose old resource is deleted. */
function endsApproved(operation: Operation, done: readonly Intent[], approved: ReadonlySet<string>): boolean {
  const { id, key, verb } = operation;
  const replacement = operationId('delete', key);
  // Both halves of a replacement show the same changes, and the record of the deletion contains them.
  return done.some(
    ({ verb: half, changes }) =>
      half === 'delete' &&
      isIn(approved, { id, key, verb, changes, replacement }) &&
      endsReplacement(operation, changes),
  );
}

/** Whether a plain creation has all values that the changes of a replacement show. */
function endsReplacement({ verb, replacement, changes }: Operation, shown: readonly Change[]): boolean {
  if (verb !== 'create' || replacement !== undefined) return false;
  return shown.every(({ path, to, to_id }) => {
    const own = changes.find((each) => each.path === path);
    return equal(own?.to ?? null, to) && own?.to_id === to_id;
  });
}

/** Releases the plan that waits. Returns a sentence about the plan. */
export async function approvePlan(store: Store, digest: string, now: number): Promise<CommandResult> {
  const wait = (await readClaim(store))?.holder;
  if (wait?.is !== 'awaiting_approval') throw new ConfigError('No plan of this state waits for approval.');
  const full = digest.startsWith('sha256:') ? digest : `sha256:${digest}`;
  if (full.length < 'sha256:'.length + shortest || !wait.digest.startsWith(full))
    throw new ConfigError(
      `No plan ${digest} waits for approval: the spec or the project may have changed since that plan.`,
      false,
      [
        command('approve', [shortDigest(wait.digest)], {
          when: 'after you have reviewed the plan that waits now',
        }),
      ],
    );
  await claim(store, { is: 'approved', digest: wait.digest }, now);
  return result(
    `The plan ${shortDigest(wait.digest)} is approved. The daemon applies it now, or after its next start.`,
  );
}

type ApprovalHolder = Extract<Holder, { readonly is: 'awaiting_approval' | 'approved' }>;
type ApprovalClaim = Claim & { readonly holder: ApprovalHolder };

async function readClaim(store: Pick<Store, 'claims'>): Promise<ApprovalClaim | undefined> {
  const name = objectName(approvalObject);
  return (await store.claims()).find((each): each is ApprovalClaim => objectName(each) === name);
}

/** @param at the time of the claim, if it is older than its change */
function claim(store: Pick<Store, 'change'>, holder: ApprovalHolder, at: number, now = at): Promise<void> {
  return store.change([{ type: 'claim', claim: { ...approvalObject, identity: {}, holder, at } }], now);
}

/** The first 12 characters without `sha256:`. `vdcsync approve` accepts no shorter prefix. */
export function shortDigest(digest: string): string {
  return digest.slice('sha256:'.length, 'sha256:'.length + shortest);
}

/** Whether `settings.approval` asks about the plan. */
export function asksForApproval(
  { operations, summary, cost }: Plan,
  { approval }: Desired['settings'],
): boolean {
  if (approval === 'none') return false;
  if (approval === 'plan') return true;
  // The deletion of a retiring server, and of its address, ends its replacement.
  const isHalf = ({ key, replacement }: Operation) =>
    replacement !== undefined || retiredFrom(takeApart(key).parent ?? key) !== undefined;
  if (approval.deletions && operations.some((each) => each.verb === 'delete' && !isHalf(each))) return true;
  if (approval.replacements && (summary.replace > 0 || operations.some(isHalf))) return true;
  const most = cost.known_monthly_most ?? cost.known_monthly_delta;
  const added = sumDecimals([most, negated(cost.known_monthly_freed ?? '0')]);
  return approval.monthly_increase !== null && Number(added) > approval.monthly_increase;
}

type Content = Pick<Operation, 'id' | 'key' | 'verb' | 'changes' | 'target' | 'replacement' | 'loses'>;

function isIn(approved: { has(part: string): boolean }, operation: Content): boolean {
  return partsOfContent(operation).every((part) => approved.has(part));
}

/**
 * Identifies the content of an operation. A creation or update in place has a part for each wanted value. A creation writes the same values whether the resource replaces another one
 * or not, so the values of the replaced resource are no part of its content.
 */
function partsOfContent({ id, key, verb, changes, target, replacement, loses }: Content): readonly string[] {
  // A retiring server has its id in its key: after the new server exists, the same deletion has no other half.
  if (verb === 'delete' && retiredFrom(key) !== undefined) return [digestOf({ id, verb, target })];
  if (verb !== 'delete' && replacement === undefined) {
    const wanted = changes.map(({ path, to, to_id }) => digestOf({ id, path, to, to_id }));
    return [digestOf({ id, verb, target, loses }), ...wanted];
  }
  const parts = changes.map((change) => canonicalJson(verb === 'create' ? asCreated(change) : change));
  return [digestOf({ id, verb, changes: parts.sort(), target, replacement, loses })];
}

/** If no value remains, the previous value names the resource that is deleted. */
function asCreated(change: Change): Partial<Change> {
  const { path, to, to_id } = change;
  return to === null ? change : { path, to, ...(to_id === undefined ? {} : { to_id }) };
}

/** @throws PlanStaleError unless the plan is the one that was reviewed. */
export function refuseStale(plan: Plan, saved: Plan): void {
  // The digest covers the world, and the operator reviewed the list of operations. Both must be unchanged.
  if (plan.digest === saved.digest && equal(plan.operations, saved.operations)) return;
  const others = differing(plan.operations, saved.operations);
  const where =
    others.length === 0
      ? ''
      : `. Other operations result now for ${others.slice(0, 5).join(', ')}${others.length > 5 ? ' and more' : ''}`;
  throw new PlanStaleError(
    `The saved plan no longer fits: the project or the spec has changed since${where}.`,
    { remedies: [command('plan', ['--out', 'FILE'], { when: 'to save a new plan' })] },
  );
}

/** Keys whose operations differ from the reviewed plan. */
function differing(now: Plan['operations'], then: Plan['operations']): ResourceKey[] {
  const same = (one: Plan['operations'][number], others: Plan['operations']) =>
    others.some((other) => equal(one, other));
  const moved = [...now.filter((each) => !same(each, then)), ...then.filter((each) => !same(each, now))];
  return [...new Set(moved.map(({ key }) => key))];
}

/**
 * The prices of the servers that replacements have deleted in the last day, and that no creation has replaced yet. An
 * entry that returns later asks for a new server.
 */
export async function freedBefore({ deps, world, lines }: Run): Promise<Prices> {
  const since = deps.clock.now() - 24 * 3_600_000;
  const missing = world
    .serverSubjects()
    .flatMap(({ key, desired }) => (desired?.managed === true && !world.isThere(key) ? [desired] : []));
  const freed = missing.map(async (entry) => {
    const written = [...lines().of(entry)].map((key) => deps.store.intents({ key, limit: 100 }));
    const done = (await Promise.all(written)).flat().filter((each) => partsOf(each).outcome === 'done');
    const { freed: known, createdAt = 0 } = done.sort((a, b) => b.createdAt - a.createdAt)[0] ?? {};
    return known === undefined || createdAt < since ? [] : [[entry.key, { known }] as const];
  });
  return new Map((await Promise.all(freed)).flat());
}
