import type { Unmanaged } from '../../core/attribute.ts';
import {
  addressObject,
  backupObject,
  type Claim,
  foreignClaims,
  isHeldClaim,
  type LiveObject,
  objectName,
  serverObject,
} from '../../core/claims.ts';
import { ConfigError } from '../../core/errors.ts';
import { isInside, nounOf, type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf, isAddress } from '../../core/kind-facts.ts';
import {
  type CommandResult,
  command,
  edit,
  idInFile,
  type Remedy,
  result,
  wayToForget,
} from '../../core/remedy.ts';
import type { Ip, ServerId } from '../../core/resources.ts';
import type { Binding, StateChange } from '../../core/state.ts';
import { didYouMeanKey } from '../../core/suggest.ts';
import { capitalised } from '../../core/text.ts';
import { described } from '../../plan/unmanaged.ts';
import { attributionOf, claimsOn, identityChanged } from '../claims/claims.ts';
import { leftBackups, released, releasing } from '../claims/release.ts';
import type { Run } from '../run.ts';

/**
 * Marks servers (by id) and addresses (as text) as ignored. For a server that is gone, ends the reports about the
 * backups that the server left.
 */
export async function ignore(run: Run, names: readonly string[]): Promise<CommandResult> {
  const { world } = run;
  const named = namedOf(names);
  const left = new Set(leftBackups(run.claims.values()).map(({ server }) => server));
  const servers: ServerId[] = [];
  for (const id of named.servers) {
    const there = await isServer(run, id);
    if (!there && left.has(String(id))) continue;
    refuseManaged(run, serverObject(id), there);
    servers.push(id);
  }
  const addresses = named.addresses.flatMap((name) => {
    const live = world.ips.find(({ address }) => address === name);
    refuseManaged(run, addressObject(live?.id ?? ''), live !== undefined, name);
    return live ?? [];
  });
  await run.deps.store.claimProject(run.desired.projectId);
  const forgotten = leftBackups(run.claims.values()).filter(({ server }) =>
    named.servers.map(String).includes(server),
  );
  const reports = forgotten.map(
    ({ server, backups }) =>
      `vdcsync no longer reports the backups of server ${server}: ${backups.join(', ')}.`,
  );
  await run.state.change([
    ...forgotten.flatMap(({ server, backups }) =>
      backups.map((id) => {
        const object = backupObject(id, server);
        return { type: 'unclaim', object, reason: 'the operator asked for no further reports' } as const;
      }),
    ),
    ...ignoring(run, { servers, addresses }),
  ]);
  if (servers.length + addresses.length === 0) return result(reports.join(' '));
  // An address of this spec stays bound to this spec, even if an ignored server holds it.
  const attached = servers.flatMap((id) => world.ipsOf(String(id))).filter(world.isUnbound);
  const others = addresses.filter(({ id }) => !attached.some((each) => each.id === id));
  const what = described({ servers, addresses: [...others, ...attached] });
  const [are, them] = servers.length + others.length === 1 ? ['is', 'it'] : ['are', 'them'];
  return result(
    [
      `${capitalised(what)} ${are} ignored: vdcsync does not manage ${them}, and no longer refuses to create resources because of ${them}.`,
      ...reports,
    ].join(' '),
  );
}

const ignoredByOperator = { is: 'ignored', by: 'operator' } as const;

/**
 * The changes that mark objects as ignored. A key that was bound to the id was bound to another object, which is
 * gone. @assumption A17
 */
function ignoring(run: Run, objects: Unmanaged): StateChange[] {
  const claims = claimsOn(run, ignoredByOperator, objects).map((claim): Claim => {
    const held = run.claims.get(objectName(claim));
    const before =
      held && (isHeldClaim(held) ? held.holder : held.holder.is === 'ignored' && held.holder.before);
    return before ? { ...claim, holder: { ...ignoredByOperator, before } } : claim;
  });
  const names = new Set(claims.map(objectName));
  const bound = [...run.bindings.values()].filter((binding) => names.has(objectName(binding)));
  return [
    ...bound.flatMap(({ key }) => goneAndReused(run, key)),
    ...claims.map((claim) => ({ type: 'claim', claim }) as const),
  ];
}

/** Releases the key whose resource is gone, because its id belongs to another resource now. @assumption A17 */
function goneAndReused(run: Run, key: ResourceKey): StateChange[] {
  return released(
    run,
    key,
    'the operator reported that the resource is gone, and that another resource has its id',
  );
}

/** The bound id belongs to an unmanaged resource now, and the bound resource is gone. @assumption A17 */
export async function goneAndUsedAgain(run: Run, { key, kind, id }: Binding): Promise<CommandResult> {
  const isServer = factsOf(kind).container;
  const address = isServer ? undefined : run.world.addressesOf({ kind, id })[0];
  const isManaged = (server: number | null) =>
    server !== null && run.world.keyOf(serverObject(server)) !== undefined;
  const ignored = ignoring(run, {
    servers: isServer ? [Number(id)] : [],
    // An address that came with a server of this spec belongs to that server.
    addresses: address === undefined || isManaged(address.server_id) ? [] : [address],
  });
  await run.state.change(ignored.length > 0 ? ignored : goneAndReused(run, key));
  return result(`The resource of ${key} is recorded as gone. The present ${nounOf(kind)} ${id} is ignored.`);
}

function refuseManaged(run: Run, object: LiveObject, there: boolean, called = object.id): void {
  const noun = `${nounOf(object.kind)} ${called}`;
  if (!there) throw new ConfigError(`The project has no ${noun}.`);
  const maker = [...run.intents.values()].find(
    (each) => each.phase === 'accepted' && each.kind === object.kind && each.answer.id === object.id,
  );
  if (maker?.verb === 'create') {
    const text = `${capitalised(noun)} was created for ${maker.key}, and the creation is still open.`;
    throw new ConfigError(text, false, [command('apply')]);
  }
  const key = run.world.keyOf(object);
  // An entry that would take the object back is not bound to it yet.
  const isHeld = key !== undefined && run.world.subjects.get(key)?.desired?.held !== undefined;
  if (key !== undefined && !isHeld && !identityChanged(run, key))
    throw new ConfigError(
      `${capitalised(noun)} is bound to ${key}.`,
      false,
      waysToRelease(run, key, object.id),
    );
}

/** A server that was found under its key, or released, may be gone since. The question about it names this command. */
async function isServer(run: Run, id: ServerId): Promise<boolean> {
  if (isListed(run, id)) return true;
  const claim = run.claims.get(objectName(serverObject(id)));
  return (claim !== undefined && isHeldClaim(claim)) || isThere(run, id);
}

function isListed({ world }: Run, id: ServerId): boolean {
  return world.ipsOf(String(id)).length > 0 || world.servers?.some((each) => each.id === id) === true;
}

/** Reads the network interfaces of the server: the only read that shows each server. */
async function isThere({ cache, deps }: Run, id: ServerId): Promise<boolean> {
  const read = cache.since(deps.clock.monotonic());
  return (await read.findNetworkInterfaces(id)) !== undefined;
}

/** Releases the resource that is bound to a key. The resource continues to exist. */
export async function forgetKey(run: Run, key: ResourceKey): Promise<CommandResult> {
  const binding = run.bindings.get(key);
  if (binding === undefined) {
    const hint = didYouMeanKey(key, run.bindings.keys());
    throw new ConfigError(
      `The state has no binding for ${key}${hint === '' ? '.' : hint}`,
      true,
      hint === '' ? [command('status', [], { when: 'to list the bound keys' })] : [],
    );
  }
  const open = [...run.intents.values()].find((each) => each.key === key || isInside(each.key, key));
  if (open !== undefined)
    throw new ConfigError(`${open.key} has an open write (${open.verb}). Finish or resolve it first.`);
  const { parent, kind, id } = { ...takeApart(key), ...binding };
  if (parent === undefined && run.world.subjects.get(key)?.desired !== undefined)
    throw new ConfigError(
      `${key} is in the spec, so the next apply would create it again.`,
      false,
      waysToRelease(run, key, id),
    );
  await run.moves.keep();
  const changes = releasing(run, key, 'operator', 'the operator released the resource');
  const ended = bindingsOf(run, changes);
  const gone = factsOf(kind).staysBilled ? await goneBackups(run, ended) : [];
  await run.state.change(changes.filter((each) => each.type !== 'claim' || !gone.includes(each.claim.id)));
  return result(`${key} is released.${stays(run, binding, ended)}`);
}

/** The bindings that the changes end. Call this before the changes are made. */
export function bindingsOf({ bindings }: Run, changes: readonly StateChange[]): Binding[] {
  return changes.flatMap((change) => (change.type === 'release' ? (bindings.get(change.key) ?? []) : []));
}

/** A key of the spec is released by its entry: without the binding, the next apply would create the resource again. */
function waysToRelease(run: Run, key: ResourceKey, id: string): readonly Remedy[] {
  const desired = run.world.subjects.get(key)?.desired;
  if (desired === undefined || takeApart(key).parent !== undefined) return [command('forget', [key])];
  const set = { managed: false, id: idInFile(id) };
  return [
    edit(key, { entry: 'replace', set, when: 'to keep the key in the spec', next: [command('apply')] }),
    forgetting(run, key, 'to remove the key from the spec'),
  ];
}

/** The remedy that releases the resource of the key. @param when the case in which it is right, for the operator */
export function forgetting({ world: { subjects, settings } }: Run, key: ResourceKey, when: string): Remedy {
  const isDeclared = subjects.get(key)?.desired !== undefined;
  return wayToForget(key, { isDeclared, when, prune: settings.prune });
}

/** Of the backups of a server that exists: those that the list lacks. */
async function goneBackups({ deps, cache }: Run, backups: readonly Binding[]): Promise<readonly string[]> {
  const [{ parentId: server } = {}] = backups;
  if (server === undefined) return [];
  const listed = await cache.since(deps.clock.monotonic()).findBackups(Number(server) as ServerId);
  return backups.flatMap(({ id }) => ((listed?.some((each) => each.id === id) ?? true) ? [] : [id]));
}

/** Reports that a released resource, with the resources released together with it, is still billed if it exists. */
export function stays({ world, kindOf }: Run, { key, kind, id }: Binding, ended: readonly Binding[]): string {
  const { container, staysBilled } = factsOf(kind);
  const attached = container ? world.ipsOf(id).map(({ address }) => address) : [];
  const backups = ended.filter((each) => factsOf(each.kind).staysBilled).map((each) => each.id);
  const name = staysBilled ? backups.join(', ') : world.nameOf({ kind, id });
  const along = [
    ...(attached.length === 0 ? [] : [`address ${attached.join(', ')}`]),
    ...(!container || backups.length === 0 ? [] : [`backup ${backups.join(', ')}`]),
  ];
  const isBilled = kindOf(kind).billing.billed === true;
  const isSeen = staysBilled || world.observed.get(key)?.id !== undefined;
  const end = isSeen
    ? ` It still exists${isBilled ? ' and is still billed' : ''}.`
    : ` No read shows it.${isBilled ? ' If it exists, it is still billed.' : ''}`;
  return ` ${capitalised(nounOf(kind))} ${[name, ...(along.length === 0 ? [] : [along.join(' and ')])].join(' with ')} is no longer managed.${end}`;
}

/** Ends the ignored or released mark of servers (by id) and addresses (as text). vdcsync asks about them again. */
export async function unignore(run: Run, names: readonly string[]): Promise<CommandResult> {
  const { world } = run;
  if (world.settings.unmanaged === 'ignore')
    throw new ConfigError(
      '`unmanaged: ignore` under `settings` ignores all unmanaged resources: remove that setting first.',
    );
  const { servers, addresses } = namedOf(names);
  for (const id of servers) {
    refuseServer(run, id);
    await refuseUnseen(run, id);
  }
  for (const address of addresses) refuseAddress(run, address, servers);
  const attached = world.ips.filter(({ server_id }) => server_id !== null && servers.includes(server_id));
  const named = world.ips.filter(({ address }) => addresses.includes(address));
  const isMeant = (claim: Claim) =>
    factsOf(claim.kind).container
      ? servers.some((each) => String(each) === claim.id)
      : addresses.includes(claim.identity.address ?? '') || attached.some((ip) => isSame(ip, claim));
  const claims = foreignClaims(run.claims.values());
  await run.state.change(
    claims.filter(isMeant).map((claim): StateChange => {
      const before = claim.holder.is === 'ignored' ? claim.holder.before : undefined;
      return before === undefined
        ? { type: 'unclaim', object: claim, reason: 'the operator no longer ignores it' }
        : { type: 'claim', claim: { ...claim, holder: before } };
    }),
  );
  const what = described({ servers, addresses: [...attached, ...named] });
  const [are, them] = names.length === 1 ? ['is', 'it'] : ['are', 'them'];
  return result(
    `${capitalised(what)} ${are} no longer ignored. Until you adopt or ignore ${them} again, vdcsync may block creations because of ${them}.`,
  );
}

function refuseServer({ world, claims }: Run, id: number): void {
  if (!claims.has(objectName(serverObject(id)))) throw notIgnored(`server ${id}`);
  refuseDeclared(`server ${id}`, world.keyOf(serverObject(id)));
}

/** No list shows a server that this spec has bought, and it exists: this record alone keeps it in sight. */
async function refuseUnseen(run: Run, id: ServerId): Promise<void> {
  const { holder } = run.claims.get(objectName(serverObject(id))) ?? {};
  if (holder?.is !== 'released' || isListed(run, id) || !(await isThere(run, id))) return;
  throw new ConfigError(
    `Server ${id} exists, and no list of the API shows it: without this record, vdcsync would lose sight of it.`,
    false,
    [edit(holder.formerKey, { entry: 'restore', when: 'to manage it again' })],
  );
}

function refuseAddress(run: Run, address: string, also: readonly number[]): void {
  const known = foreignClaims(run.claims.values()).filter(({ identity }) => identity.address === address);
  if (known.length === 0) throw notIgnored(`address ${address}`);
  const live = run.world.ips.find((ip) => known.some((claim) => isSame(ip, claim)));
  const server = live?.server_id ?? undefined;
  const holder = server === undefined ? undefined : attributionOf(run).server(String(server)).is;
  if (server !== undefined && !also.includes(server) && (holder === 'ignored' || holder === 'released'))
    throw new ConfigError(
      `Address ${address} belongs to the ignored server ${server}, and is ignored with it.`,
      false,
      [command('ignore', ['--undo', server], { when: 'for both' })],
    );
  refuseDeclared(`address ${address}`, run.world.keyOf(addressObject(live?.id ?? '')));
}

/** Whether the claim is on the address, or on the server that has it. */
function isSame(ip: Ip, { kind, id, identity }: Claim): boolean {
  return String(isAddress(kind) ? ip.id : ip.server_id) === id && ip.address === identity.address;
}

/** If the spec marks the object, the next apply would mark the object again. */
function refuseDeclared(noun: string, key: string | undefined): void {
  if (key !== undefined)
    throw new ConfigError(
      `${key} in the spec names ${noun}, so the entry decides whether it is ignored: correct the entry.`,
    );
}

function notIgnored(noun: string): ConfigError {
  return new ConfigError(`${capitalised(noun)} is not ignored.`, false, [
    command('status', [], { when: 'to list the ignored resources' }),
  ]);
}

/** Splits the names of unmanaged objects: a server by its id, an address by its text. */
function namedOf(names: readonly string[]) {
  const isText = (name: string) => name.includes('.');
  return {
    servers: names.filter((name) => !isText(name)).map((name) => Number(name) as ServerId),
    addresses: names.filter(isText),
  };
}
