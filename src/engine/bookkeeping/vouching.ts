import type { Json } from '../../core/json.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import type { Ip, ServerId } from '../../core/resources.ts';
import type { Binding, Intent, StateStore } from '../../core/state.ts';
import type { Planned } from '../../plan/build.ts';
import {
  type DeclaredAbsent,
  type Found,
  findStrangers,
  isNone,
  nameOf,
  nobody,
  type Strangers,
  serversShown,
  type Unlisted,
  underWay,
  unlisted,
  type Vouched,
  vouchedServers,
} from '../../plan/strangers.ts';
import { identityChanged } from '../intents/owner.ts';
import type { Run } from '../run.ts';
import { declaredAbsent } from './declared-absent.ts';
import { heldAddresses } from './held-addresses.ts';
import { vouchedBy, vouchedNote } from './vouched-note.ts';

/** A plan, and the strangers that it was made with. */
export interface Judged extends Planned {
  readonly strangers: Found;
}

/** Reads may still show what was deleted that recently; twice A9. @assumption A9 */
const goneMs = 120_000;
/** How old a look at the cards of others may be. */
const cardsFreshMs = 60_000;

/** What is in the project, and neither this file's nor vouched for. */
export async function strangersOf(run: Run): Promise<Found> {
  const { store, clock } = run.deps;
  const vouched = await vouchedBy(store);
  const since = vouched?.settled === true ? 'settled' : 'new';
  const absent = await declaredAbsent(store);
  const known = {
    since,
    vouched,
    unlisted: since === 'new' || mayBeCounted(run, absent) ? await unlistedBeside(run, vouched) : undefined,
    declaredAbsent: absent,
    held: await heldAddresses(run, vouched ?? nobody),
  } as const;
  const changed = (key: ResourceKey) => identityChanged(run, key);
  // Bindings and open writes as of one moment: what has been bound meanwhile is open no more.
  const find = (removed: readonly Intent[] = []) =>
    findStrangers(run.world, vouched, underWay([...run.intents.values()], removed), changed);
  const found = find();
  if (isNone(found)) return { ...found, ...known };
  const removed = (await store.intents({ limit: 100 })).filter(
    ({ verb, closedAt = 0 }) => verb === 'delete' && clock.now() - closedAt < goneMs,
  );
  return { ...find(removed), ...known };
}

/** A network counts a server whose creation is under way as well. */
function mayBeCounted({ intents }: Run, absent: readonly DeclaredAbsent[]): boolean {
  const isCreated = [...intents.values()].some(({ kind, verb }) => kind === 'server' && verb === 'create');
  return absent.some(({ kind }) => kind === 'server') && !isCreated;
}

/** What no list shows, beside this file's servers, those that addresses show and those vouched for. */
async function unlistedBeside(
  { world, cache, deps }: Run,
  { servers }: Vouched = nobody,
): Promise<Unlisted | undefined> {
  if (unlisted(world) === undefined) return undefined;
  const others = [...new Set<number>([...serversShown(world), ...servers])].filter(
    (id) => world.keyOf('server', String(id)) === undefined,
  );
  const read = cache.since(deps.clock.monotonic() - cardsFreshMs);
  const cards = await Promise.all(others.map((id) => read.findNetworkInterfaces(id as ServerId)));
  return unlisted(
    world,
    cards.flatMap((each) => (each === undefined ? [] : [each])),
  );
}

/**
 * Once a plan is approved: strangers are known from the moment that there are none, or that
 * the file says to ignore them. What the plan lets go of and tells as billed is known as well.
 */
export async function rememberStrangers(run: Run, planned: Judged): Promise<void> {
  const { desired } = run;
  const { strangers } = planned;
  const ignored = desired.settings.unmanaged === 'ignore';
  const asks = planned.plan.blocked.some(({ code }) => code === 'image_taken_before');
  const isCut = run.world.servers !== undefined && !run.world.listsServers();
  const unsure = !isNone(strangers) || strangers.unlisted !== undefined || isCut || asks;
  const settles = strangers.since !== 'new' || ignored || (!unsure && (await isEmptyStill(run)));
  const leaves = leftBy(run, planned);
  const theirs = ignored ? strangers : { servers: [], addresses: [] };
  const servers = [...leaves.servers, ...theirs.servers];
  const addresses = [...leaves.addresses, ...theirs.addresses, ...(ignored ? (strangers.held ?? []) : [])];
  await vouchFor(run, { servers, addresses }, settles);
  await rememberLetGo(run, planned);
}

/** A key that buys again what it has let go of is to be asked about. */
async function rememberLetGo({ deps, world, bindings }: Run, { releases }: Planned): Promise<void> {
  const marks = releases.flatMap(({ key, gone }) => {
    const { desired, parent } = world.subjects.get(key) ?? {};
    const { kind, id } = bindings.get(key) ?? {};
    if (gone || desired === undefined || parent !== undefined || id === undefined) return [];
    if (kind === 'server' || kind === 'server_image') return [[key, id] as const];
    const live = kind === 'ip' ? world.ip(id) : undefined;
    return live === undefined ? [] : [[key, nameOf(live)] as const];
  });
  if (marks.length === 0) return;
  const before = (await vouchedBy(deps.store)) ?? nobody;
  await putVouched(deps.store, { ...before, letGo: { ...before.letGo, ...Object.fromEntries(marks) } });
}

/**
 * A list may end early, and where the state is new nothing else tells that: what nobody knows of
 * has to be missing from a second look as well. What that shows, the last look before a purchase
 * sees. The two are moments apart: a minute would be one of every first apply. @assumption A8
 */
async function isEmptyStill({ deps, halt, cache, world }: Run): Promise<boolean> {
  const read = deps.reads('operation', halt);
  const lists = [
    { was: world.ips, is: await read.ips() },
    { was: world.servers ?? [], is: (await read.servers?.()) ?? [] },
  ];
  const isWhole = lists.every(({ was, is }) => is.every(({ id }) => was.some((each) => each.id === id)));
  if (!isWhole) cache.forgetLists();
  return isWhole;
}

/**
 * Adds to what is vouched for; the addresses of those servers, as they are now, come with them.
 * That alone does not make the state one that knows the project: `settles` does.
 */
export async function vouchFor(
  { deps, world }: Run,
  { servers, addresses }: Strangers,
  settles = false,
): Promise<void> {
  const before = (await vouchedBy(deps.store)) ?? nobody;
  const isTheirs = vouchedServers(world, before);
  const named = new Set<number>(servers);
  const all = new Set([...before.servers, ...servers]);
  const held = world.ips.filter(
    ({ server_id }) => server_id !== null && (named.has(server_id) || isTheirs(server_id)),
  );
  // What a server of theirs holds of this file stays this file's.
  const theirs = held.filter(world.isNobodys);
  const names = new Set([...before.addresses, ...[...addresses, ...theirs].map(nameOf)]);
  const settled = settles || before.settled === true;
  const same = all.size === before.servers.length && names.size === before.addresses.length;
  if (same && settled === (before.settled === true)) return;
  await putVouched(deps.store, { ...before, servers: [...all], addresses: [...names], settled });
}

/** Says of addresses that are vouched for that an operator knows whose they are: they are told as idle no more. */
export async function keepQuietOf({ store }: Pick<Run['deps'], 'store'>, ips: readonly Ip[]): Promise<void> {
  const before = (await vouchedBy(store)) ?? nobody;
  await putVouched(store, {
    ...before,
    ignored: [...new Set([...(before.ignored ?? []), ...ips.map(nameOf)])],
  });
}

/** Says that a key may buy another one in the place of what it has let go of. */
export async function allowAnother(
  { store }: Pick<Run['deps'], 'store'>,
  { servers, addresses }: Strangers,
): Promise<void> {
  const before = await vouchedBy(store);
  if (before?.letGo === undefined) return;
  const names = new Set([...servers.map(String), ...addresses.map(nameOf)]);
  await putVouched(store, { ...before, letGo: marksBut(before, names) });
}

function marksBut({ letGo = {} }: Vouched, names: ReadonlySet<string>): NonNullable<Vouched['letGo']> {
  return Object.fromEntries(Object.entries(letGo).filter(([, name]) => !names.has(name)));
}

/** What a key stands for from now on is this file's, whatever was said of it before. */
export async function takeBack(
  { deps, world }: Run,
  { kind, id }: Pick<Binding, 'kind' | 'id'>,
): Promise<void> {
  const before = await vouchedBy(deps.store);
  if (before?.letGo !== undefined && kind === 'server_image')
    await putVouched(deps.store, { ...before, letGo: marksBut(before, new Set([id])) });
  if (before === undefined || (kind !== 'server' && kind !== 'ip')) return;
  const isTheirs = kind === 'server' && before.servers.includes(Number(id));
  // An address that was spoken of by itself is not its server's to take back.
  const held = isTheirs ? world.ipsOf(id) : [];
  const ours = kind === 'server' ? held : [world.ip(id) ?? []].flat();
  const theirs = new Set(ours.map(nameOf));
  if (!isTheirs && !before.addresses.some((name) => theirs.has(name))) return;
  await putVouched(deps.store, {
    ...before,
    servers: before.servers.filter((each) => !isTheirs || each !== Number(id)),
    addresses: before.addresses.filter((name) => !theirs.has(name)),
  });
}

export function putVouched(
  store: StateStore,
  { ignored = [], letGo = {}, ...vouched }: Vouched,
): Promise<void> {
  const left = ignored.filter((name) => vouched.addresses.includes(name));
  const known = new Set([...vouched.servers.map(String), ...vouched.addresses]);
  // Of images no read tells, so none is vouched for.
  const marks = Object.entries(letGo).filter(
    ([key, name]) => known.has(name) || parseKey(key)?.kind === 'server_image',
  );
  const note = {
    ...vouched,
    ...(left.length === 0 ? {} : { ignored: left }),
    ...(marks.length === 0 ? {} : { letGo: Object.fromEntries(marks) }),
  };
  return store.putNote(vouchedNote, note as unknown as Json);
}

/** Servers and addresses that the file says are not managed, that the state lets go of, or that a deletion leaves. */
function leftBy({ world, desired, bindings }: Run, { plan, releases }: Planned): Strangers {
  const kept = releases.filter(({ gone }) => !gone).flatMap(({ key }) => bindings.get(key) ?? []);
  const unmanaged = desired.resources.filter(({ managed }) => !managed);
  const named = [...kept, ...unmanaged].flatMap(({ kind, id }) => (id === undefined ? [] : [{ kind, id }]));
  const leaving = plan.operations.filter(({ kind, verb }) => kind === 'server' && verb === 'delete');
  const left = leaving.flatMap(({ target }) => world.ipsOf(target ?? '')).filter(world.isNobodys);
  return {
    servers: named.filter(({ kind }) => kind === 'server').map(({ id }) => Number(id)),
    addresses: [...named.flatMap(({ kind, id }) => (kind === 'ip' ? (world.ip(id) ?? []) : [])), ...left],
  };
}
