import equal from 'fast-deep-equal';
import type { World } from '../../core/kind.ts';
import { type Operation, operationId } from '../../core/plan.ts';
import { draftOne, operationsOf } from '../../plan/draft.ts';
import { boughtAlready } from '../../plan/purchases.ts';
import { restsOnOpenIdentity } from '../../plan/waits.ts';
import { registerOf } from '../claims/claims.ts';
import type { Run } from '../run.ts';
import { staleMs } from '../staleness.ts';
import { attachedMeanwhile } from './attached-meanwhile.ts';
import { type Again, again, type Stopped } from './endings.ts';

/** The reason why an operation must not be done now. */
export type NotWanted =
  /** Nothing is left to do: the project is already in the wanted state. */
  | { readonly now: 'satisfied' }
  | Stopped
  /** The project changed, so the operation is not the approved one. The next plan shows the change. */
  | { readonly now: 'overtaken'; readonly reason: string };

/**
 * The plan is a permission: the operation is done only if a fresh observation asks for the same operation. A creation
 * is the same even if its diff differs, because its server may not have existed at the time of the plan.
 */
export function revalidate(
  run: Run,
  world: World,
  { key, verb, changes }: Pick<Operation, 'key' | 'verb' | 'changes'>,
): NotWanted | undefined {
  const subject = world.subjects.get(key);
  if (subject === undefined) return { now: 'satisfied' };
  const open = restsOnOpenIdentity({ key, verb }, run.deps.kinds, world);
  if (open !== undefined) {
    const reason = `${open} is blocked: manual decision needed about which live resource is bound to it`;
    return { now: 'blocked', code: 'dependency_blocked', reason };
  }
  const draft = draftOne(run.deps.kinds, world, subject);
  const { verdict } = draft.diff;
  const fresh = operationsOf(draft).find(({ id }) => id === operationId(verb, key));
  if (verb === 'create' && verdict.verdict === 'replace')
    return { now: 'overtaken', reason: 'the resource that it replaces still exists' };
  if (fresh !== undefined && (verb === 'create' || equal(fresh.changes, changes))) return undefined;
  if (verdict.verdict === 'blocked') return { now: 'blocked', code: verdict.code, reason: verdict.reason };
  if (fresh === undefined && verdict.verdict === 'unchanged') return { now: 'satisfied' };
  return { now: 'overtaken', reason: 'the project or the file has moved since the plan' };
}

/**
 * An unmanaged resource that appeared since the plan may be the same purchase by another copy of the state. The
 * creation that ends a replacement waits only in an exclusive project: the replaced resource is already gone, and in
 * a shared project the new resource is probably unmanaged.
 */
export async function boughtMeanwhile(
  run: Run,
  world: World,
  { key, verb, replacement }: Pick<Operation, 'key' | 'verb' | 'replacement'>,
): Promise<NotWanted | Again | undefined> {
  const subject = world.subjects.get(key);
  if (verb !== 'create' || subject === undefined) return undefined;
  if (replacement !== undefined && !world.settings.exclusive) return undefined;
  if (subject.kind !== 'server' && subject.kind !== 'ip') return undefined;
  const draft = draftOne(run.deps.kinds, world, subject);
  const objection = boughtAlready(draft, { world, register: await registerOf(run) });
  if (objection !== undefined) return { now: 'overtaken', reason: objection.reason };
  const entry = subject.desired?.value as { readonly public_ipv4?: unknown } | undefined;
  if (subject.kind !== 'server' || entry?.public_ipv4 !== undefined) return undefined;
  const network = await attachedMeanwhile(run, world);
  if (network === undefined) return undefined;
  // Resource lists may be older than the server count of a network. @assumption A9
  if (!run.doubted.has(key)) {
    run.doubted.add(key);
    return again(staleMs);
  }
  const reason = `network ${network} counts more servers than when the plan was made, and no address shows them: another copy of the state may have bought just this; check the client area, then adopt it or apply again`;
  return { now: 'blocked', code: 'unlisted_servers', reason };
}
