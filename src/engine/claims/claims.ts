import {
  type Attribution,
  attribute,
  interfacesOf,
  serversShown,
  type Unmanaged,
} from '../../core/attribute.ts';
import {
  addressObject,
  type Claim,
  foreignClaims,
  type Holder,
  isForeign,
  isFoundServer,
  objectName,
  serverObject,
} from '../../core/claims.ts';
import type { DesiredResource } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf, isAddress } from '../../core/kind-facts.ts';
import type { Ip, IpId, ServerId } from '../../core/resources.ts';
import type { Answer, Binding, Intent, StateChange } from '../../core/state.ts';
import type { Planned } from '../../plan/build.ts';
import { draftOne } from '../../plan/draft.ts';
import {
  heldAddresses,
  isNone,
  observedInterfaces,
  type Register,
  type Unlisted,
  unlisted,
} from '../../plan/unmanaged.ts';
import { knownIds, type Run } from '../run.ts';
import { absenceGapMs } from '../timing.ts';
import { incarnationOf, lastCreation } from './scope.ts';

/** A plan, and the register that it was made with. */
export interface Judged extends Planned {
  readonly register: Register;
}

/** For this time after a deletion, reads may still show the deleted resource. This is twice A9. @assumption A9 */
const goneMs = 120_000;
/** The highest age of a read of the network interfaces of other servers. */
const interfacesFreshMs = 60_000;
/**
 * The time between the two reads that confirm a claimed object as absent. An object that no list shows costs one read
 * each time. A found one may hold a purchase.
 */
const missingGapMs = ({ holder }: Claim) => (holder.is === 'found' ? absenceGapMs : 3_600_000);

/** The holder of each object, as of the last refresh. */
export async function registerOf(run: Run): Promise<Register> {
  const { store, clock } = run.deps;
  const isNew = ![...run.claims.values()].some(({ holder }) => holder.is === 'baseline');
  const absent = (await store.intents({ outcome: 'absent', limit: 50 })).filter(isDeclaredAbsent);
  const counts = isNew || mayBeCounted(run, absent);
  const unlistedHere = counts ? await unlistedBeside(run) : undefined;
  const isRecent = (each: Intent) =>
    each.verb === 'delete' && clock.now() - (partsOf(each).closedAt ?? 0) < goneMs;
  // Bindings and open writes are from one moment, because a write that was bound meanwhile is no longer open.
  const found = attributionOf(run);
  const attribution = isNone(found.unmanaged)
    ? found
    : attributionOf(run, (await store.intents({ limit: 100 })).filter(isRecent));
  const known = {
    claims: [...run.claims.values()],
    declaredAbsent: absent,
    answeredElsewhere: await answeredElsewhere(run),
    ...linesOf(run),
  };
  return { ...attribution, isNew, unlisted: unlistedHere, ...known };
}

/** The register without reads: objects that no list shows, and deletions of a moment ago, are left out. */
export function knownRegister(run: Run): Register {
  const claims = [...run.claims.values()];
  const unread = { isNew: false, declaredAbsent: [], answeredElsewhere: new Map() };
  return { ...attributionOf(run), claims, ...unread, ...linesOf(run) };
}

function linesOf({ lines }: Run): Pick<Register, 'line' | 'held'> {
  return { line: (entry) => lines().of(entry), held: (key) => lines().returning().get(key) };
}

/** The holders by the last refresh. @param removed deletions that reads may not show yet @assumption A9 */
export function attributionOf(run: Run, removed: readonly Intent[] = []): Attribution {
  const [claims, intents] = [[...run.claims.values()], [...run.intents.values()]];
  return attribute(run.world, { claims, intents, removed, changed: (key) => identityChanged(run, key) });
}

function isDeclaredAbsent(intent: Intent): boolean {
  const { unconfirmed, because } = partsOf(intent);
  const isPurchase = intent.verb === 'create' && factsOf(intent.kind).bought === true;
  return unconfirmed !== undefined && isPurchase && because === 'reported_absent';
}

function isServer(kind: Claim['kind']): boolean {
  return factsOf(kind).container === true;
}

/** A network also counts a server whose creation is in flight. */
function mayBeCounted({ intents }: Run, absent: readonly Intent[]): boolean {
  const isCreated = [...intents.values()].some(({ kind, verb }) => isServer(kind) && verb === 'create');
  return absent.some(({ kind }) => isServer(kind)) && !isCreated;
}

/**
 * The servers that no list shows. Not counted are the servers that this state knows by id (bound, claimed, or answered
 * to an open creation), and the servers that their addresses show.
 */
async function unlistedBeside(run: Run): Promise<Unlisted | undefined> {
  const { world, cache, deps, claims } = run;
  const observed = observedInterfaces(world);
  if (unlisted(world, observed) === undefined) return undefined;
  const claimed = [...claims.values()].flatMap(({ kind, id }) => (isServer(kind) ? [id] : []));
  const shown = [...serversShown(world)].map(String);
  const others = [...new Set([...shown, ...claimed, ...knownIds(run, 'server')])].filter(
    (id) => !observed.has(id),
  );
  const read = cache.since(deps.clock.monotonic() - interfacesFreshMs);
  return unlisted(world, new Map([...observed, ...(await interfacesOf(others, read))]));
}

/** The questions that only a new state asks before a purchase: the state stays new until each is answered. */
const asksNewState: ReadonlySet<string> = new Set([
  'image_taken_before',
  'moved_from_unknown',
  'unmanaged_resources',
]);

/**
 * The claims of an approved plan: the resources that the spec marks as not managed, the resources that a deletion
 * leaves, the addresses that claimed servers hold now, and the resources that `unmanaged: ignore` ignores. The state
 * has its baseline once no resource is unmanaged.
 */
export async function claimChanges(run: Run, { plan, register }: Judged): Promise<StateChange[]> {
  const { desired, world } = run;
  const ignores = desired.settings.unmanaged === 'ignore';
  const byFile = { is: 'ignored', by: 'file' } as const;
  // The `id` may be wrong as long as a question about the entry is open: no resource needs to have it.
  const isAsked = (named: ResourceKey) => plan.blocked.some(({ key }) => key === named);
  const leaving = plan.operations.filter(({ kind, verb }) => isServer(kind) && verb === 'delete');
  const left = desired.resources.flatMap(({ id, ...entry }) =>
    entry.managed || id === undefined || isAsked(entry.key) ? [] : [{ ...entry, id }],
  );
  const claims = [
    ...left.flatMap(({ key, kind, id, moved }) =>
      claimsOn(
        run,
        { is: 'released', by: 'file', formerKey: key, ...(moved && { formerKeys: [moved] }) },
        isServer(kind) ? { servers: [Number(id)], addresses: [] } : alone(world.addressesOf({ kind, id })),
      ),
    ),
    ...leaving.flatMap(({ key, target = '' }) =>
      claimsOn(
        run,
        { is: 'released', by: 'file', formerKey: key },
        alone(world.ipsOf(target).filter(world.isUnbound)),
      ),
    ),
    ...(ignores ? claimsOn(run, byFile, register.unmanaged) : []),
    ...(ignores ? claimsOn(run, byFile, alone(heldAddresses(register, world))) : []),
    ...claimsWith(run, register),
  ].filter((claim) => !isRecorded(run, claim));
  const asks = plan.blocked.some(({ code }) => asksNewState.has(code));
  const isWhole = run.mode.selection === undefined && !run.mode.destroy;
  const isKnown = register.isNew && !asks && isWhole;
  const baseline = isKnown && (ignores || (await isWithoutUnmanaged(run, register)));
  return [
    ...(await goneClaims(run, register)),
    ...[...claims, ...left.flatMap((each) => renamedClaim(run, each))].map(
      (claim) => ({ type: 'claim', claim }) as const,
    ),
    ...(baseline ? [{ type: 'claim', claim: baselineOf(run) } as const] : []),
  ];
}

/** An entry without management was renamed: its resource is of both keys, also once its `moved` has left the spec. */
function renamedClaim(
  { claims }: Run,
  { key, kind, id, moved }: Pick<DesiredResource, 'key' | 'kind' | 'moved'> & { readonly id: string },
): readonly Claim[] {
  const claim = claims.get(objectName({ kind, id }));
  if (claim?.holder.is !== 'released' || claim.holder.formerKey !== moved) return [];
  const { formerKey, formerKeys = [] } = claim.holder;
  return [{ ...claim, holder: { ...claim.holder, formerKey: key, formerKeys: [formerKey, ...formerKeys] } }];
}

function baselineOf({ desired, deps }: Run): Claim {
  const id = String(desired.projectId);
  return { kind: 'project', id, identity: {}, holder: { is: 'baseline' }, at: deps.clock.now() };
}

async function isWithoutUnmanaged(run: Run, register: Register): Promise<boolean> {
  const isCut = run.world.servers !== undefined && !run.world.listsServers();
  const unsure = !isNone(register.unmanaged) || register.unlisted !== undefined || isCut;
  return !unsure && isEmptyStill(run);
}

/**
 * A list may end early, and a new state has no other evidence of that. Unmanaged resources must therefore be missing
 * from a second read of the lists too. The second read follows at once, because a pause of a minute would slow each
 * first apply. The refresh before a purchase shows any resource that the second read adds. @assumption A8
 */
async function isEmptyStill({ deps, signals, cache, world }: Run): Promise<boolean> {
  const read = deps.reads('operation', signals.halt);
  const lists = [
    { was: world.ips, is: await read.ips() },
    { was: world.servers ?? [], is: (await read.servers?.()) ?? [] },
  ];
  const isWhole = lists.every(({ was, is }) => is.every(({ id }) => was.some((each) => each.id === id)));
  if (!isWhole) cache.forgetLists();
  return isWhole;
}

/** Claims on servers, on the addresses that they hold now, and on further addresses. */
export function claimsOn(
  { deps, world }: Run,
  holder: Holder,
  { servers, addresses }: Unmanaged,
): readonly Claim[] {
  const at = deps.clock.now();
  const own = new Set<number>(servers);
  // If an unmanaged server holds an address of this spec, the address stays bound to this spec.
  const attached = world.ips.filter((ip) => own.has(ip.server_id ?? Number.NaN) && world.isUnbound(ip));
  const further = addresses.filter((ip) => !attached.includes(ip));
  return [
    ...servers.map((id): Claim => ({ ...serverObject(id), identity: {}, holder, at })),
    ...attached.map((ip) => ({ ...addressClaim(ip, holder, at), parentId: String(ip.server_id) })),
    ...further.map((ip) => addressClaim(ip, holder, at)),
  ];
}

function addressClaim({ id, address }: Ip, holder: Holder, at: number): Claim {
  return { ...addressObject(id), identity: { address }, holder, at };
}

function alone(addresses: readonly Ip[]): Unmanaged {
  return { servers: [], addresses };
}

/** Claims the addresses that claimed servers hold now, so that the addresses stay known after the servers are gone. */
function claimsWith(run: Run, register: Register): readonly Claim[] {
  const { world } = run;
  return world.ips.filter(world.isUnbound).flatMap((ip) => {
    const holder = register.server(String(ip.server_id));
    if (!isForeign(holder)) return [];
    return [{ ...addressClaim(ip, holder, run.deps.clock.now()), parentId: String(ip.server_id) }];
  });
}

/** The object is bound, or claimed already. */
function isRecorded({ bindings, claims }: Run, claim: Claim): boolean {
  const before = claims.get(objectName(claim));
  if (before !== undefined)
    return Object.entries(claim.identity).every(([name, is]) => (before.identity[name] ?? is) === is);
  return [...bindings.values()].some((each) => objectName(each) === objectName(claim));
}

/**
 * Ends the claims of objects that are gone, because another object may get the same id later. An object is gone if
 * the lists lack the object twice, an hour apart, and if its own read does not find the object. @assumption A8
 * @assumption A17
 */
async function goneClaims(run: Run, register: Register): Promise<StateChange[]> {
  const now = run.deps.clock.now();
  const listed = new Set(run.world.ips.map(({ id, address }) => `${id} ${address}`));
  const shown = serversShown(run.world);
  const isShown = ({ kind, id, identity }: Claim) =>
    isAddress(kind) ? listed.has(`${id} ${identity.address}`) : shown.has(Number(id));
  const watched = [...foreignClaims(register.claims), ...register.claims.filter(isFoundServer)];
  const missing = watched.filter((claim) => !isShown(claim));
  const due = missing.filter((claim) => now - (claim.firstMissingAt ?? now) >= missingGapMs(claim));
  const gone = await goneOf(run, due);
  const claimMissing = (claim: Claim, firstMissingAt: number) =>
    ({ type: 'claim', claim: { ...claim, firstMissingAt } }) as const;
  return [
    ...gone.map((object) => ({ type: 'unclaim', object, reason: 'the object no longer exists' }) as const),
    ...due.filter((claim) => !gone.includes(claim)).map((claim) => claimMissing(claim, now)),
    ...missing
      .filter(({ firstMissingAt }) => firstMissingAt === undefined)
      .map((claim) => claimMissing(claim, now)),
    ...watched.filter((claim) => claim.firstMissingAt !== undefined && isShown(claim)).map(claimShown),
  ];
}

function claimShown({ firstMissingAt: _, ...claim }: Claim): StateChange {
  return { type: 'claim', claim };
}

async function goneOf(run: Run, due: readonly Claim[]): Promise<readonly Claim[]> {
  if (due.length === 0) return [];
  const seen = await run.fence.read((read) =>
    Promise.all(
      due.map(async ({ kind, id, identity }) => {
        if (isAddress(kind)) return (await read.findIp(Number(id) as IpId))?.address === identity.address;
        const interfaces = await read.findNetworkInterfaces(Number(id) as ServerId);
        return interfaces !== undefined || (await read.findServer?.(Number(id) as ServerId)) !== undefined;
      }),
    ),
  );
  return due.filter((_claim, at) => seen?.[at] === false);
}

/** The fields that identify a live resource. */
type Live = Pick<Binding, 'key' | 'kind' | 'id' | 'parentId'>;

/**
 * The binding of another key to the same live resource. The id of a resource inside a server is unique only within
 * the server. The id of an address is unique in the project, even if the address came with a server.
 *
 * @param but keys that are bound to another resource at the same time
 */
export function ownerOf(
  { bindings }: Run,
  live: Live,
  but: ReadonlySet<ResourceKey> = new Set(),
): Binding | undefined {
  return [...bindings.values()].find((each) => !but.has(each.key) && isSame(each, live));
}

/** The open creation of another key whose answer named the same live resource. */
export function makerOf({ intents }: Run, live: Live): Intent | undefined {
  return [...intents.values()].find((each) => {
    const id = partsOf(each).answer?.id;
    return each.verb === 'create' && id !== undefined && isSame({ ...each, id }, live);
  });
}

/** The creation of the current incarnation whose idempotency key was answered with a resource of another holder. */
export async function answeredCreation(run: Run, key: ResourceKey): Promise<Intent | undefined> {
  const present = String((await incarnationOf(run, key)).incarnation);
  const last = await lastCreation(run, key, (_parts, { incarnation }) => incarnation === present);
  return last && partsOf(last).because === 'found' ? last : undefined;
}

/**
 * The entries whose idempotency key was answered with a resource that is bound to another entry, found for it, or
 * ignored, each with that binding or claim. No other request is sent under that key. The same applies to a resource that another entry has
 * taken over.
 */
export async function answeredElsewhere(run: Run): Promise<ReadonlyMap<ResourceKey, Binding | Claim>> {
  const { subjects } = run.world;
  const isUnbound = (key: ResourceKey) =>
    subjects.get(key)?.desired?.managed === true && !run.bindings.has(key);
  const holders = [
    ...[...run.bindings.values()].map((each) => [each, each.formerKeys] as const),
    ...[...run.claims.values()].flatMap((each) =>
      each.holder.is === 'ignored' || each.holder.is === 'found'
        ? [[each, each.holder.formerKeys] as const]
        : [],
    ),
  ];
  const former = holders.flatMap(([holder, keys = []]) =>
    keys.filter(isUnbound).map((key) => [key, holder] as const),
  );
  const answered = await Promise.all(former.map(([key]) => answeredCreation(run, key)));
  const isTaken = (holder: Binding | Claim) => 'recovered' in holder && holder.recovered === 'taken';
  return new Map(former.filter(([, holder], at) => answered[at] !== undefined || isTaken(holder)));
}

function isSame(each: Live, { key, kind, id, parentId }: Live): boolean {
  return (
    each.key !== key &&
    each.kind === kind &&
    each.id === id &&
    (factsOf(kind).independent || each.parentId === parentId)
  );
}

/** Both bindings have an identity, and the identities differ: the id of one of them was used again. @assumption A17 */
export function isAnother(one: Pick<Binding, 'identity'>, other: Pick<Binding, 'identity'>): boolean {
  return Object.entries(one.identity).some(
    ([field, value]) => other.identity[field] !== undefined && other.identity[field] !== value,
  );
}

/**
 * The id that the key is bound to belongs to another resource by now, as far as the kind can recognize that.
 * @assumption A17
 */
export function identityChanged({ deps, world }: Pick<Run, 'deps' | 'world'>, key: ResourceKey): boolean {
  const subject = world.subjects.get(key);
  const verdict = subject && draftOne(deps.kinds, world, subject).diff.verdict;
  return verdict?.verdict === 'blocked' && verdict.code === 'identity_changed';
}

/** A fresh answer to exactly this request named the resource. */
export function wasNamed(answer: Answer | undefined, id: string): boolean {
  return answer?.id === id && answer.to === 'this_send';
}
