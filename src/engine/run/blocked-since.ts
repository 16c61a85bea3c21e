import { parseKey } from '../../core/keys.ts';
import { type Blocked, blockedName, type Plan } from '../../core/plan.ts';
import { isSelected } from '../../plan/selection.ts';

/** The time at which a run first found each operation blocked: ms since the epoch, by `blockedName`. */
export type BlockedTimes = Readonly<Record<string, number>>;

/** The times after a run. A time is kept as long as the operation is blocked with the same code. */
export function timesAfter(
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

export function dated<Each extends Blocked>(blocked: readonly Each[], times: BlockedTimes): readonly Each[] {
  return blocked.map((each) => {
    const at = times[blockedName(each)];
    return at === undefined ? each : { ...each, since: new Date(at).toISOString() };
  });
}
