import { partsOf } from '../../core/intent.ts';
import type { Blocked, Operation, Plan } from '../../core/plan.ts';
import type { OperationResult } from '../../core/progress.ts';
import { outside, type Remedy, run as runs } from '../../core/remedy.ts';
import type { Intent } from '../../core/state.ts';
import { waysOut } from '../../plan/open-writes.ts';
import { withBlocked } from '../../plan/totals.ts';
import { endOf, tokenReport } from '../intents/pauses.ts';
import { unresolvedBeside } from '../intents/replacement.ts';
import type { Run } from '../run.ts';

type Found = Pick<OperationResult, 'key' | 'verb'> & { readonly code: string };

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

/** The plan with these blocked resources instead of its own under the same keys. */
export function withFindings(plan: Plan, further: readonly Blocked[]): Plan {
  const found = new Set(further.map(({ key }) => key));
  return withBlocked(plan, [...plan.blocked.filter(({ key }) => !found.has(key)), ...further]);
}

/** The step that must come before the next try, if the step is known. */
function firstOf(run: Run, { key, verb, code }: Found): string | undefined {
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
function waysOfOther(run: Run, { key, verb, code }: Found): readonly Remedy[] {
  const other = code === 'unresolved_create' ? otherUnresolved(run, { key, verb }) : undefined;
  return other?.phase === 'waiting' ? waysOut(other, { world: run.world }) : [];
}

function otherUnresolved(run: Run, { key, verb }: Pick<Found, 'key' | 'verb'>): Intent | undefined {
  // Of a replacement, the creation has to wait.
  return unresolvedBeside(run, { key, verb: verb === 'delete' ? 'create' : verb });
}

function endingIt(open: Intent | undefined): readonly Remedy[] {
  if (open === undefined || open.phase === 'waiting') return [];
  const adopt =
    open.verb === 'create'
      ? [
          runs('resolve', [open.key, '--adopt', partsOf(open).answer?.id ?? 'ID'], {
            when: 'if the client area shows the created resource',
          }),
        ]
      : [];
  return [
    ...adopt,
    runs('resolve', [open.key, '--abandon'], {
      when: 'to give up the write; a resource that it created stays, unmanaged',
    }),
  ];
}

/** The writes of earlier runs that this run has not closed. */
export function stillOpen(run: Run, unsettled: readonly OperationResult[]): readonly OperationResult[] {
  return unsettled.filter(({ key }) => run.intents.has(key));
}

/** If an API gives out the same id again and again, each round would buy the resource again. */
export function isSuperseded(run: Run, { key, verb }: Operation): boolean {
  return verb === 'create' && run.facts.supersededBy(key) !== undefined;
}

export function supersededOf(run: Run, { operations }: Plan): readonly OperationResult[] {
  return operations
    .filter((each) => isSuperseded(run, each))
    .map(({ key, verb }) => {
      const detail = `its id was given to ${run.facts.supersededBy(key)}, so the resource is gone. The next run creates it again`;
      return { key, verb, outcome: 'blocked', code: 'superseded', detail, durationMs: 0 };
    });
}
