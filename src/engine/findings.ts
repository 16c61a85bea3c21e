import type { Subject } from '../core/kind.ts';
import type { Blocked, Operation, Plan } from '../core/plan.ts';
import type { OperationResult } from '../core/progress.ts';
import { outside, type Remedy, run as runs } from '../core/remedy.ts';
import type { Intent } from '../core/state.ts';
import { waysOut } from '../plan/open-writes.ts';
import { withBlocked } from '../plan/totals.ts';
import { unresolvedBeside } from './intents/replacement.ts';
import { tokenReport, writingToken } from './intents/standing-holds.ts';
import type { Run } from './run.ts';

type Found = Pick<OperationResult, 'key' | 'verb'> & { readonly code: string };

/** What this run found blocked, also where its last plan does not show it. */
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
    // Of what is under way a diff knows nothing: what it did already looks like somebody else's.
    const better = open === undefined || open.phase === 'blocked' ? planned.get(key) : undefined;
    if (outcome !== 'blocked' || better !== undefined) return [];
    const again = runs(destroy ? 'destroy' : 'apply');
    const cause = firstOf(run, { key, verb, code });
    const next =
      cause === undefined ? { ...again, when: 'once the cause is gone' } : outside(cause, { next: [again] });
    const doctor = code === 'insufficient_scope' ? [tokenReport] : [];
    const remedies = [
      ...(named ?? [next]),
      ...doctor,
      ...endingIt(open),
      ...waysOfOther(run, { key, verb, code }),
    ];
    return [{ key, verb, code, reason: detail, remedies }];
  });
}

/** The plan with these in the place of what it reports as blocked under the same keys. */
export function withFindings(plan: Plan, further: readonly Blocked[]): Plan {
  const found = new Set(further.map(({ key }) => key));
  return withBlocked(plan, [...plan.blocked.filter(({ key }) => !found.has(key)), ...further]);
}

/** What has to be done before it can be tried again, where that is known. */
function firstOf(run: Run, { key, verb, code }: Found): string | undefined {
  switch (code) {
    case 'unresolved_create': {
      const other = otherInDoubt(run, { key, verb });
      return other?.phase === 'blocked' ? `settle ${other.key} first` : undefined;
    }
    case 'insufficient_scope':
      return writingToken;
    case 'insufficient_privileges':
      return 'use a token that may do this, or have it permitted in the client area';
    default:
      return undefined;
  }
}

/** One that is to be sent again may have to wait, for an address, for what waits for it: an operator can end that. */
function waysOfOther(run: Run, { key, verb, code }: Found): readonly Remedy[] {
  const other = code === 'unresolved_create' ? otherInDoubt(run, { key, verb }) : undefined;
  return other?.phase === 'waiting' ? waysOut(other, { world: run.world }) : [];
}

function otherInDoubt(run: Run, { key, verb }: Pick<Found, 'key' | 'verb'>): Intent | undefined {
  // Of a replacement it is the creation that has to wait.
  return unresolvedBeside(run, { key, verb: verb === 'delete' ? 'create' : verb });
}

function endingIt(open: Intent | undefined): readonly Remedy[] {
  if (open === undefined || open.phase === 'waiting') return [];
  const adopt =
    open.verb === 'create' ? [runs('resolve', [open.key, '--adopt', open.resourceId ?? 'ID'])] : [];
  return [...adopt, runs('resolve', [open.key, '--abandon'])];
}

/** Of what earlier runs left, what this one has closed is not in the way any more. */
export function stillOpen(run: Run, unsettled: readonly OperationResult[]): readonly OperationResult[] {
  return unsettled.filter(({ key }) => run.intents.has(key));
}

/** An API that gives out one id again and again would have this bought in every round. */
export function isSuperseded({ superseded }: Run, { key, verb }: Operation): boolean {
  return verb === 'create' && superseded.has(key);
}

export function supersededOf(run: Run, { operations }: Plan): readonly OperationResult[] {
  return operations
    .filter((each) => isSuperseded(run, each))
    .map(({ key, verb }) => {
      const detail = `its id was given to ${run.superseded.get(key)}, so it is gone; the next run makes it again`;
      return { key, verb, outcome: 'blocked', code: 'superseded', detail, durationMs: 0 };
    });
}

/** New servers that stand on a public address, and whose firewall has not come to be. */
export function openServers(run: Run, plan: Plan, results: readonly OperationResult[]) {
  const missing = [...plan.operations, ...plan.blocked]
    .filter(({ key, verb }) => verb === 'create' && isEnabledFirewall(run.world.subjects.get(key)))
    .filter(({ key }) => !results.some((each) => each.key === key && each.outcome === 'done'));
  const servers = missing.flatMap(({ key }) => run.world.subjects.get(key)?.parent ?? []);
  return [...new Set(servers)].flatMap((key) => {
    const open = run.intents.get(key);
    const code = 'stands_open' as const;
    // What was answered as made, and what looks have missed since, may be gone.
    const isShown =
      open?.phase === 'accepted' && open.resourceId !== undefined && open.notSeenAt === undefined;
    if (run.bindings.has(key) || isShown)
      return [{ key, code, message: 'it is there, and its firewall is not: nothing is filtered' }];
    const answered = open?.resourceId !== undefined;
    const inDoubt = open?.verb === 'create' && (answered || open.ambiguous || open.phase === 'sending');
    return inDoubt
      ? [{ key, code, message: 'it may be there, and its firewall is not: nothing is filtered then' }]
      : [];
  });
}

/** One that is not enabled filters nothing, and its file asks for that. */
function isEnabledFirewall(subject: Subject | undefined): boolean {
  const entry = subject?.desired?.value as { readonly enabled?: boolean } | undefined;
  return subject?.kind === 'firewall' && entry?.enabled === true;
}
