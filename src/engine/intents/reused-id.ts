import type { Binding, Intent, StateChange } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { staleMs } from '../staleness.ts';
import { companionsOf } from './bound-by.ts';
import { isAnother, makerOf, ownerOf } from './owner.ts';
import { released } from './release.ts';

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
  return (one.acceptedAt ?? 0) > (other.acceptedAt ?? 0);
}

/** The created resource is gone: its id now belongs to another key. */
interface GivenOn {
  readonly givenOn?: string;
  readonly formerId?: string;
  /** The address in the answer to the creation. */
  readonly ipv4?: string;
}

/** The key that now has the id of the resource of this intent. */
export function givenOnTo({ facts }: Intent): string | undefined {
  return (facts as GivenOn | undefined)?.givenOn;
}

/**
 * The address that came with the resource that is gone. The address is billed, and is released like any address that
 * outlives its server, unless a server holds it now. Returns `undefined` if the token was exchanged meanwhile.
 */
export async function leftBy(run: Run, intent: Intent): Promise<StateChange[] | undefined> {
  const { formerId, ipv4 } = (intent.facts ?? {}) as GivenOn;
  if (formerId === undefined || ipv4 === undefined) return [];
  const token = await run.fence();
  const ips = await run.cache.since(run.deps.clock.monotonic()).ips();
  if (run.deps.writes.token() !== token) return undefined;
  const addresses = ips.flatMap(({ id, address, server_id }) =>
    server_id === null && address === ipv4 ? [{ id, address }] : [],
  );
  return companionsOf(run, { ...intent, resourceId: formerId }, formerId, { addresses });
}

function takenFrom(run: Run, { key, id }: Binding, intent: Intent): StateChange[] {
  run.superseded.set(key, intent.key);
  return released(run, key, `its id ${id} was given to ${intent.key}`);
}

/** The work on the key of `maker` closes `maker`. That work may be waiting for the task of `maker` now. */
async function markGivenOn(run: Run, maker: Intent, { key }: Intent): Promise<void> {
  run.superseded.set(maker.key, key);
  const { resourceId: formerId } = maker;
  const given = { givenOn: key, ...(formerId === undefined ? {} : { formerId }) };
  run.stopwatch.mark(maker.id, 'due', staleMs);
  await run.update(maker, {
    facts: { ...(maker.facts as object | undefined), ...given },
    dueAt: run.deps.clock.now() + staleMs,
    clear: ['resourceId'],
  });
}

/** Whether the resource with the id was requested before the intent. The later request has the id by now. */
async function wasAskedBefore(run: Run, { key, id, boundAt }: Binding, intent: Intent): Promise<boolean> {
  const past = await run.deps.store.intents({ key, limit: 20 });
  const made = past.find(({ verb, resourceId }) => verb === 'create' && resourceId === id);
  return (made?.firstSentAt ?? boundAt) <= intent.firstSentAt;
}

function isNamed({ request }: Intent, id: string): boolean {
  return (request.body as { readonly name?: unknown } | undefined)?.name === id;
}
