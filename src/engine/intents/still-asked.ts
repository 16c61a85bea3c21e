import equal from 'fast-deep-equal';
import type { World } from '../../core/kind.ts';
import { type Operation, operationId } from '../../core/plan.ts';
import { draftOne, operationsOf } from '../../plan/draft.ts';
import { restsOnOpenIdentity } from '../../plan/held.ts';
import { boughtAlready } from '../../plan/purchases.ts';
import { registerOf } from '../bookkeeping/claims.ts';
import type { Run } from '../run.ts';
import { staleMs } from '../staleness.ts';
import { attachedMeanwhile } from './attached-meanwhile.ts';
import { type Again, again, type Stopped } from './endings.ts';

/** Why an operation is not to be done as things are now. */
export type NotAsked =
  /** Nothing to do any more: the world is already so. */
  | { readonly now: 'satisfied' }
  | Stopped
  /** The world moved, and this is not what was approved: the next plan tells. */
  | { readonly now: 'overtaken'; readonly reason: string };

/**
 * The plan is a permission: what is done is what a fresh look says, if that is the same.
 * A creation is the same whatever it is diffed against: its server may not have been there yet.
 */
export function stillAsked(
  run: Run,
  world: World,
  { key, verb, changes }: Pick<Operation, 'key' | 'verb' | 'changes'>,
): NotAsked | undefined {
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
    return { now: 'overtaken', reason: 'what it takes the place of is there' };
  if (fresh !== undefined && (verb === 'create' || equal(fresh.changes, changes))) return undefined;
  if (verdict.verdict === 'blocked') return { now: 'blocked', code: verdict.code, reason: verdict.reason };
  if (fresh === undefined && verdict.verdict === 'unchanged') return { now: 'satisfied' };
  return { now: 'overtaken', reason: 'the project or the file has moved since the plan' };
}

/**
 * What is unmanaged, and has come since the plan, may be what is about to be bought. The
 * creation that ends a replacement is held only where nobody else creates: what it replaces is
 * gone already, and what came is elsewhere likely to be somebody else's.
 */
export async function boughtMeanwhile(
  run: Run,
  world: World,
  { key, verb, replacement }: Pick<Operation, 'key' | 'verb' | 'replacement'>,
): Promise<NotAsked | Again | undefined> {
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
  // What reads show may be behind what they count. @assumption A9
  if (!run.doubted.has(key)) {
    run.doubted.add(key);
    return again(staleMs);
  }
  const reason = `network ${network} counts more servers than when the plan was made, and no address shows them: another copy of the state may have bought just this; look in the client area, then adopt it or apply again`;
  return { now: 'blocked', code: 'unlisted_servers', reason };
}
