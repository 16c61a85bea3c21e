import { explanationOf } from '../../core/codes.ts';
import { partsOf } from '../../core/intent.ts';
import { digestOf, member } from '../../core/json.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import { type Blocked, blockedName, type Operation, type Plan } from '../../core/plan.ts';
import type { OperationResult } from '../../core/progress.ts';
import { command, outside, type Remedy } from '../../core/remedy.ts';
import type { Intent, StateStore } from '../../core/state.ts';
import { adoption, makingRoom, waysOut } from '../../plan/open-writes.ts';
import { isSelected } from '../../plan/order.ts';
import { precedesDeletion } from '../../plan/replacements.ts';
import { withBlocked } from '../../plan/totals.ts';
import { isReplacing } from '../intents/endings.ts';
import { endOf, tokenReport } from '../intents/pauses.ts';
import { unresolvedBeside } from '../intents/revalidate.ts';
import type { Run } from '../run.ts';

/** The note in the state that holds the findings of the last run, and since when each operation is blocked. */
const noteName = 'blocked';

interface Recorded {
  readonly findings: readonly RecordedFinding[];
  readonly since: BlockedTimes;
}

/** A note that cannot be read has no findings: the next run finds them again. */
async function recordedIn(store: Pick<StateStore, 'note'>): Promise<Recorded> {
  const note: unknown = await store.note(noteName);
  const [findings, since] = [member(note, 'findings'), member(note, 'since')];
  return {
    findings: Array.isArray(findings) ? findings.filter(isFinding) : [],
    since: isTimes(since) ? since : {},
  };
}

function isFinding(value: unknown): value is RecordedFinding {
  const isText = (name: string) => typeof member(value, name) === 'string';
  const intent = member(value, 'intent');
  return (
    ['key', 'verb', 'code', 'reason', 'basis'].every(isText) &&
    (intent === null || typeof intent === 'string') &&
    typeof member(value, 'open') === 'boolean' &&
    Array.isArray(member(value, 'remedies'))
  );
}

function isTimes(value: unknown): value is BlockedTimes {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((each) => typeof each === 'number')
  );
}

/**
 * An operation that a run found blocked although a fresh plan alone does not show the block: a task past its
 * deadline, or a write that was refused too often. Every later plan and status reports the finding until its cause
 * may be gone. The finding decides nothing: the next run tries again in any case.
 */
export interface RecordedFinding extends Blocked {
  /** Digest of the entry at that time. An edited entry ends the finding. */
  readonly basis: string;
  /** The newest write of the key at that time, or null. A later write ends the finding. */
  readonly intent: string | null;
  /**
   * The write was open at that time. The finding then lasts until the write ends, even if the plan no longer asks for
   * the operation.
   */
  readonly open: boolean;
}

interface Found {
  readonly kept: readonly RecordedFinding[];
  readonly found: readonly Blocked[];
  /** The last plan of the run, with the findings. */
  readonly plan: Plan;
  /** Ms since the epoch. */
  readonly at: number;
}

/** The recorded findings that no later write, and no decision of the operator, has ended. */
export async function standingFindings(
  store: Pick<StateStore, 'note' | 'intents' | 'openIntents'>,
): Promise<readonly RecordedFinding[]> {
  const { findings: recorded } = await recordedIn(store);
  if (recorded.length === 0) return [];
  const openIntents = new Map((await store.openIntents()).map((intent) => [intent.key, intent]));
  const standing = recorded.map(async (finding): Promise<RecordedFinding[]> => {
    const open = openIntents.get(finding.key);
    // The plan already shows a blocked write, together with its remedies.
    if (finding.open !== (open !== undefined) || open?.phase === 'blocked') return [];
    return finding.intent === (open?.id ?? (await newestWrite(store, finding.key))) ? [finding] : [];
  });
  return (await Promise.all(standing)).flat();
}

/** The findings that still apply to this plan: their write is open, or the plan asks for the same operation again. */
export function applying(
  findings: readonly RecordedFinding[],
  { operations, selection }: Plan,
  world: World,
): readonly Blocked[] {
  const isAsked = ({ key, verb, basis }: RecordedFinding) =>
    basisOf(world, key) === basis &&
    operations.some((each) => each.key === key && (each.verb === verb || each.replacement !== undefined));
  const isShown = (key: ResourceKey) =>
    selection === undefined || isSelected(selection, key) || operations.some((each) => each.key === key);
  return findings
    .filter((finding) => isShown(finding.key) && (finding.open || isAsked(finding)))
    .map(({ key, verb, code, reason, remedies }) => ({ key, verb, code, reason, remedies }));
}

/** Adds the findings to the plan as blocked, except for keys that the plan itself reports as blocked. */
export function withFurther(plan: Plan, further: readonly Blocked[]): Plan {
  const shown = new Set(plan.blocked.map(({ key }) => key));
  const more = further.filter(({ key }) => !shown.has(key));
  return more.length === 0 ? plan : withBlocked(plan, [...plan.blocked, ...more]);
}

/** Adds to each blocked operation the time at which a run first found it, if a run has found it. */
export async function withSince<Each extends Blocked>(
  store: Pick<StateStore, 'note'>,
  blocked: readonly Each[],
): Promise<readonly Each[]> {
  return blocked.length === 0 ? blocked : dated(blocked, (await recordedIn(store)).since);
}

/**
 * Replaces the recorded findings and times. Writes nothing if they are the same.
 *
 * @returns the last plan of the run, with the time of each blocked operation
 */
export async function recordFindings(
  store: StateStore,
  world: World,
  intents: ReadonlyMap<ResourceKey, Intent>,
  { kept, found, plan, at }: Found,
): Promise<Plan> {
  // A later plan shows an operation that only the first plan of this run did not show.
  const lasting = found.filter(({ code }) => code !== 'not_shown');
  const fresh = lasting.map(async (blocked): Promise<RecordedFinding> => {
    const { key } = blocked;
    const open = intents.get(key);
    const intent = open?.id ?? (await newestWrite(store, key));
    return { ...blocked, basis: basisOf(world, key), intent, open: open !== undefined };
  });
  const findings = [...kept, ...(await Promise.all(fresh))];
  const before = await recordedIn(store);
  const next = { findings, since: timesAfter(before.since, plan, at) } as const;
  if (digestOf(before) !== digestOf(next)) await store.putNote(noteName, next);
  return { ...plan, blocked: dated(plan.blocked, next.since) };
}

async function newestWrite(store: Pick<StateStore, 'intents'>, key: ResourceKey): Promise<string | null> {
  const [newest] = await store.intents({ key, limit: 1 });
  return newest?.id ?? null;
}

function basisOf(world: World, key: ResourceKey): string {
  return digestOf(world.subjects.get(key)?.desired?.value ?? null);
}

/** The time at which a run first found each operation blocked: ms since the epoch, by `blockedName`. */
type BlockedTimes = Readonly<Record<string, number>>;

/** The times after a run. A time is kept as long as the operation is blocked with the same code. */
function timesAfter(
  before: BlockedTimes,
  { blocked, selection }: Pick<Plan, 'blocked' | 'selection'>,
  at: number,
): BlockedTimes {
  // A plan with `--target` does not show the other operations.
  const unseen = Object.entries(before).filter(([name]) => {
    const key = parseKey(name.split(' ').at(-1) ?? '')?.key;
    return selection !== undefined && (key === undefined || !isSelected(selection, key));
  });
  const seen = blocked.map((each) => [blockedName(each), before[blockedName(each)] ?? at] as const);
  return Object.fromEntries([...unseen, ...seen]);
}

function dated<Each extends Blocked>(blocked: readonly Each[], times: BlockedTimes): readonly Each[] {
  return blocked.map((each) => {
    const at = times[blockedName(each)];
    return at === undefined ? each : { ...each, since: new Date(at).toISOString() };
  });
}

type Noted = Pick<OperationResult, 'key' | 'verb'> & { readonly code: string };

/** The resources that this run found blocked, including those that the last plan does not show as blocked. */
export function furtherBlocked(
  run: Run,
  plan: Plan,
  results: readonly OperationResult[],
  destroy: boolean,
): readonly Blocked[] {
  const found = new Map(results.map((result) => [result.key, result]));
  const planned = new Map(plan.blocked.map((each) => [each.key, each]));
  return [...found.values()].flatMap((result) => {
    const { key, verb, outcome, code = 'blocked', detail = '', remedies: named } = result;
    const open = run.intents.get(key);
    // A diff knows nothing of writes in flight: a resource that this write created appears unmanaged to the diff.
    const better = open === undefined || open.phase === 'blocked' ? planned.get(key) : undefined;
    if (outcome !== 'blocked' || better !== undefined) return [];
    const again = command(destroy ? 'destroy' : 'apply');
    const cause = firstOf(run, { key, verb, code });
    const next =
      cause === undefined ? { ...again, when: 'once the cause is gone' } : outside(cause, { next: [again] });
    const doctor = code === 'insufficient_scope' ? [tokenReport()] : [];
    const remedies = [
      ...(named ?? [next]),
      ...makingRoomFor(plan, { key, verb, code }),
      ...doctor,
      ...endingIt(run, open),
      ...waysOfOther(run, { key, verb, code }),
    ];
    return [{ key, verb, code, reason: detail, remedies }];
  });
}

/** The plan with these blocked resources instead of its own under the same keys. */
export function withFindings(plan: Plan, further: readonly Blocked[]): Plan {
  const found = new Set(further.map(({ key }) => key));
  return withBlocked(plan, [...plan.blocked.filter(({ key }) => !found.has(key)), ...further]);
}

/** The step that must come before the next try, if the step is known. */
function firstOf(run: Run, { key, verb, code }: Noted): string | undefined {
  switch (code) {
    case 'unresolved_create': {
      const other = otherUnresolved(run, { key, verb });
      return other?.phase === 'blocked' ? `resolve ${other.key} first` : undefined;
    }
    case 'iso_in_use':
      return 'eject the ISO in the client area';
    case 'payment_required':
      return endOf('spending', code);
    case 'task_failed':
      return 'ask the provider why the task failed: `vdcsync history` shows its task id and request id';
    case 'insufficient_privileges':
      return endOf('operation', code);
    default:
      return run.facts.allPaused()?.code === code ? endOf('everything', code) : undefined;
  }
}

/**
 * A write that waits to be resent may itself wait, for example for an address, for the write that waits for it. The
 * operator can end this deadlock.
 */
function waysOfOther(run: Run, { key, verb, code }: Noted): readonly Remedy[] {
  const other = code === 'unresolved_create' ? otherUnresolved(run, { key, verb }) : undefined;
  return other?.phase === 'waiting' ? waysOut(other, { world: run.world }) : [];
}

function otherUnresolved(run: Run, { key, verb }: Pick<Noted, 'key' | 'verb'>): Intent | undefined {
  // Of a replacement, the creation has to wait.
  return unresolvedBeside(run, { key, verb: verb === 'delete' ? 'create' : verb });
}

/** The API may refuse a second server for a quota, or for its name, as long as the replaced server exists. */
function makingRoomFor({ operations }: Plan, { key, verb, code }: Noted): readonly Remedy[] {
  const isSecond = operations.some(
    (each) => each.key === key && each.verb === verb && precedesDeletion(each),
  );
  return isSecond && explanationOf(code) === undefined ? [makingRoom(key)] : [];
}

function endingIt({ world }: Run, open: Intent | undefined): readonly Remedy[] {
  if (open === undefined || open.phase === 'waiting') return [];
  const giveUp = (when: string) => command('resolve', [open.key, '--abandon'], { when });
  if (open.verb === 'delete') return [giveUp('to give up the deletion; it may still have its effect')];
  const adopt =
    open.verb === 'create' && !isReplacing(open)
      ? [
          adoption(open, partsOf(open).answer?.id ?? 'ID', {
            world,
            when: 'if the client area shows the created resource',
          }),
        ]
      : [];
  return [...adopt, giveUp('to give up the write; a resource that it created stays, unmanaged')];
}

/** The writes of earlier runs that this run has not closed. */
export function stillOpen(run: Run, unsettled: readonly OperationResult[]): readonly OperationResult[] {
  return unsettled.filter(({ key }) => run.intents.has(key));
}

/** If an API gives out the same id again and again, each round would buy the resource again. */
export function isSuperseded(run: Run, { key, verb }: Operation): boolean {
  return verb === 'create' && run.facts.supersededBy(key) !== undefined;
}

/** Creations that this run leaves out: the API gave the id of their resource to another key. @assumption A17 */
export function supersededOf(run: Run, { operations }: Plan): readonly OperationResult[] {
  return operations
    .filter((each) => isSuperseded(run, each))
    .map(({ key, verb }) => {
      const detail = `its id was given to ${run.facts.supersededBy(key)}, so the resource is gone. The next run creates it again`;
      return { key, verb, outcome: 'blocked', code: 'superseded', detail, durationMs: 0 };
    });
}
