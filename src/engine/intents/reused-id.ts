import type { Binding, Intent, StateChange } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { staleMs } from '../staleness.ts';
import { companionsOf } from './bound-by.ts';
import { isAnother, makerOf, ownerOf } from './owner.ts';
import { released } from './release.ts';

/**
 * What the API gives out as new was another key's before: that one's is gone. A name that
 * was asked for is not given out. @assumption A17 @assumption A51
 */
export async function giveOn(run: Run, intent: Intent, id: string): Promise<void> {
  if (isNamed(intent, id)) return;
  const bound = ownerOf(run, { ...intent, id });
  const maker = makerOf(run, { ...intent, id });
  if (bound !== undefined) await run.change(takenFrom(run, bound, intent));
  if (maker !== undefined) await markGivenOn(run, maker, intent);
}

/** Who else has what an intent has made. */
export interface Rival {
  readonly key: Binding['key'];
  /** Its end will tell. */
  readonly isOpen: boolean;
}

/**
 * An old answer tells what was given out then. What another key had before has gone since;
 * what another key has got later, or may have, is that key's: the rival.
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

/** Sent later; of two that were sent in one millisecond, the one that was answered later. */
function isLater(one: Intent, other: Intent): boolean {
  if (one.firstSentAt !== other.firstSentAt) return one.firstSentAt > other.firstSentAt;
  return (one.acceptedAt ?? 0) > (other.acceptedAt ?? 0);
}

/** What a creation made is gone: its id has passed on to another key. */
interface GivenOn {
  readonly givenOn?: string;
  readonly formerId?: string;
  /** The address that it was answered with. */
  readonly ipv4?: string;
}

/** To which key the id of what it made has passed on. */
export function givenOnTo({ facts }: Intent): string | undefined {
  return (facts as GivenOn | undefined)?.givenOn;
}

/**
 * The address that came with what is gone: it is billed, and goes as any that outlives its
 * server, unless a server holds it by now. `undefined`: the token was exchanged meanwhile.
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

/** It is closed by whoever works on its key, who may be waiting for its task now. */
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

/** What was asked for later has the id by now. */
async function wasAskedBefore(run: Run, { key, id, boundAt }: Binding, intent: Intent): Promise<boolean> {
  const past = await run.deps.store.intents({ key, limit: 20 });
  const made = past.find(({ verb, resourceId }) => verb === 'create' && resourceId === id);
  return (made?.firstSentAt ?? boundAt) <= intent.firstSentAt;
}

function isNamed({ request }: Intent, id: string): boolean {
  return (request.body as { readonly name?: unknown } | undefined)?.name === id;
}
