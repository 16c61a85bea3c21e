import type { StateStore } from '../core/state.ts';
import type { Planned } from '../plan/build.ts';
import type { GuardInput } from '../plan/guards.ts';
import {
  findStrangers,
  isNone,
  nameOf,
  type Strangers,
  underWay,
  unlisted,
  type Vouched,
} from '../plan/strangers.ts';
import type { Run } from './run.ts';

/** `Vouched`, once the project has been seen without strangers, or a person has spoken of them. */
const vouchedNote = 'vouched_for';
/** What versions wrote that vouched for everything at once and for good. */
const olderNote = 'trusts_project';
/** Reads may still show what was deleted that recently; twice A9. @assumption A9 */
const goneMs = 120_000;

/** What is in the project, and neither this file's nor vouched for. */
export async function strangersOf({ deps, world, intents }: Run): Promise<GuardInput['strangers']> {
  const { store, clock } = deps;
  const vouched = await vouchedBy(store);
  const older = vouched === undefined && (await store.note(olderNote)) === true;
  const since = vouched !== undefined ? 'settled' : older ? 'unknown' : 'new';
  const open = [...intents.values()];
  const found = findStrangers(world, vouched, underWay(open));
  if (isNone(found)) return { ...found, since };
  const removed = (await store.intents({ limit: 100 })).filter(
    ({ verb, closedAt = 0 }) => verb === 'delete' && clock.now() - closedAt < goneMs,
  );
  return { ...findStrangers(world, vouched, underWay(open, removed)), since };
}

/**
 * Once a plan is approved: strangers are known from the moment that there are none, or that
 * the file says to ignore them. What the plan lets go of and tells as billed is known as well.
 */
export async function rememberStrangers(run: Run, planned: Planned): Promise<void> {
  const { desired } = run;
  const strangers = await strangersOf(run);
  const ignored = desired.settings.unmanaged === 'ignore';
  const unsure = !isNone(strangers) || unlisted(run.world) !== undefined;
  if (strangers.since === 'new' && !ignored && unsure) return;
  const leaves = leftBy(run, planned);
  const theirs = ignored || strangers.since === 'unknown' ? strangers : { servers: [], addresses: [] };
  await vouchFor(run, {
    servers: [...leaves.servers, ...theirs.servers],
    addresses: [...leaves.addresses, ...theirs.addresses],
  });
}

/** Adds to what is vouched for; the addresses of those servers, as they are now, come with them. */
export async function vouchFor({ deps, world }: Run, { servers, addresses }: Strangers): Promise<void> {
  const before = await vouchedBy(deps.store);
  const all = new Set([...(before?.servers ?? []), ...servers]);
  const theirs = world.ips.filter(({ server_id }) => server_id !== null && all.has(server_id));
  const names = new Set([...(before?.addresses ?? []), ...[...addresses, ...theirs].map(nameOf)]);
  if (before !== undefined && all.size === before.servers.length && names.size === before.addresses.length)
    return;
  await deps.store.putNote(vouchedNote, { servers: [...all], addresses: [...names] });
}

async function vouchedBy(store: StateStore): Promise<Vouched | undefined> {
  return (await store.note(vouchedNote)) as Vouched | undefined;
}

/** Servers and addresses that the file says are not managed, that the state lets go of, or that a deletion leaves. */
function leftBy({ world, desired, bindings }: Run, { plan, releases }: Planned): Strangers {
  const kept = releases.filter(({ gone }) => !gone).flatMap(({ key }) => bindings.get(key) ?? []);
  const unmanaged = desired.resources.filter(({ managed }) => !managed);
  const named = [...kept, ...unmanaged].flatMap(({ kind, id }) => (id === undefined ? [] : [{ kind, id }]));
  const leaving = plan.operations.filter(({ kind, verb }) => kind === 'server' && verb === 'delete');
  const left = leaving
    .flatMap(({ target }) => world.ipsOf(target ?? ''))
    .filter(({ id }) => world.keyOf('ip', String(id)) === undefined);
  return {
    servers: named.filter(({ kind }) => kind === 'server').map(({ id }) => Number(id)),
    addresses: [...named.flatMap(({ kind, id }) => (kind === 'ip' ? (world.ip(id) ?? []) : [])), ...left],
  };
}
