import { partsOf } from '../../core/intent.ts';
import type { Binding, InPhase, Intent, StateChange } from '../../core/state.ts';
import { isAnother, makerOf, ownerOf } from '../claims/owner.ts';
import { released } from '../claims/release.ts';
import type { Run } from '../run.ts';
import { staleMs } from '../staleness.ts';
import { companionsOf } from './bound-by.ts';

/**
 * The API answers a creation with an id that belonged to another key: the resource of the other key is gone. An id
 * that the request named is not a new id. @assumption A17 @assumption A51
 */
export async function giveOn(run: Run, intent: Intent, id: string): Promise<void> {
  if (isNamed(intent, id)) return;
  const bound = ownerOf(run, { ...intent, id });
  const maker = makerOf(run, { ...intent, id });
  if (bound !== undefined) await run.change(takenFrom(run, bound, intent));
  if (maker !== undefined) await markGivenOn(run, maker, intent);
}

/** Another key that has the resource of an intent. */
export interface Rival {
  readonly key: Binding['key'];
  /** The end of its open write will show who has the resource. */
  readonly isOpen: boolean;
}

/**
 * An old answer shows the id that the API gave out at that time. If another key had the id before, its resource is
 * gone. If another key got the id later, or may have, the id belongs to that key: the rival.
 */
export async function takeOver(run: Run, intent: Intent, binding: Binding): Promise<StateChange[] | Rival> {
  if (isNamed(intent, binding.id) || run.kindOf(intent.kind).repeats) return [];
  const maker = makerOf(run, binding);
  if (maker !== undefined && isLater(maker, intent))
    return { key: maker.key, isOpen: maker.phase !== 'blocked' };
  const bound = ownerOf(run, binding);
  if (bound !== undefined && !isAnother(bound, binding) && !(await wasAskedBefore(run, bound, intent)))
    return { key: bound.key, isOpen: false };
  if (maker !== undefined) await markGivenOn(run, maker, intent);
  return bound === undefined ? [] : takenFrom(run, bound, intent);
}

/** The intent was sent later. If both were sent in the same millisecond, it was answered later. */
function isLater(one: Intent, other: Intent): boolean {
  if (one.firstSentAt !== other.firstSentAt) return one.firstSentAt > other.firstSentAt;
  return (partsOf(one).answer?.at ?? 0) > (partsOf(other).answer?.at ?? 0);
}

/**
 * The address that came with the resource that is gone. The address is billed, and is released like any address that
 * outlives its server, unless a server holds it now. Returns `undefined` if the token was exchanged meanwhile.
 */
export async function leftBy(run: Run, intent: InPhase<'superseded'>): Promise<StateChange[] | undefined> {
  const { id: formerId, facts } = intent.former;
  if (formerId === undefined || facts.address === undefined) return [];
  const token = await run.fence();
  const ips = await run.cache.since(run.deps.clock.monotonic()).ips();
  if (run.deps.writes.token() !== token) return undefined;
  const addresses = ips.flatMap(({ id, address, server_id }) =>
    server_id === null && address === facts.address ? [{ id, address }] : [],
  );
  return companionsOf(run, intent, formerId, { addresses });
}

function takenFrom(run: Run, { key, id }: Binding, intent: Intent): StateChange[] {
  run.supersede(key, intent.key);
  return released(run, key, `its id ${id} was given to ${intent.key}`);
}

/** The work on the key of `maker` closes `maker`. That work may be waiting for the task of `maker` now. */
async function markGivenOn(run: Run, maker: Intent, { key }: Intent): Promise<void> {
  run.supersede(maker.key, key);
  const { id, facts = {} } = partsOf(maker).answer ?? {};
  run.stopwatch.mark(maker.id, 'due', staleMs);
  await run.update(maker, {
    stage: { phase: 'superseded', by: key, former: { ...(id === undefined ? {} : { id }), facts } },
    dueAt: run.deps.clock.now() + staleMs,
  });
}

/** Whether the resource with the id was requested before the intent. The later request has the id by now. */
async function wasAskedBefore(run: Run, { key, id, boundAt }: Binding, intent: Intent): Promise<boolean> {
  const past = await run.deps.store.intents({ key, limit: 20 });
  const made = past.find((each) => each.verb === 'create' && partsOf(each).answer?.id === id);
  return (made?.firstSentAt ?? boundAt) <= intent.firstSentAt;
}

function isNamed({ request }: Intent, id: string): boolean {
  return (request.body as { readonly name?: unknown } | undefined)?.name === id;
}
