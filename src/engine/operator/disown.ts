import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { isInside, type KindName, nounOf, type ResourceKey, takeApart } from '../../core/keys.ts';
import { type CommandResult, result, run as runs } from '../../core/remedy.ts';
import type { ServerId } from '../../core/resources.ts';
import type { Binding } from '../../core/state.ts';
import { didYouMeanKey } from '../../core/suggest.ts';
import { described } from '../../plan/strangers.ts';
import { forgetBackups, leftBackups, rememberForgotten } from '../bookkeeping/left-backups.ts';
import { allowAnother, keepQuietOf, vouchFor } from '../bookkeeping/vouching.ts';
import type { EngineDeps } from '../deps.ts';
import { identityChanged } from '../intents/owner.ts';
import { letGo } from '../intents/release.ts';
import { openRun } from '../look.ts';
import type { Run } from '../run.ts';
import type { WriteGate } from '../write-gate.ts';
import { namedOf } from './named.ts';

/**
 * Says of servers (by id) and addresses (as text) that they are somebody else's; of a server
 * that is gone, that the backups it left are not to be told of any more.
 */
export async function ignoreStrangers(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  names: readonly string[],
): Promise<CommandResult> {
  const run = await openRun(deps, gate, desired);
  const { world } = run;
  const named = namedOf(names);
  const left = new Set((await leftBackups(deps.store)).map(({ server }) => server));
  const servers: ServerId[] = [];
  for (const id of named.servers) {
    const there = await isServer(run, id);
    if (!there && left.has(String(id))) continue;
    refuseOurs(run, 'server', `server ${id}`, there, String(id));
    servers.push(id);
  }
  const addresses = named.addresses.flatMap((name) => {
    const live = world.ips.find(({ address }) => address === name);
    refuseOurs(run, 'ip', `address ${name}`, live !== undefined, String(live?.id));
    return live ?? [];
  });
  await deps.store.claimProject(desired.projectId);
  const forgotten = await forgetBackups(deps.store, named.servers.map(String));
  const told = forgotten.map(
    ({ server, backups }) => `The backups of server ${server} are told of no more: ${backups.join(', ')}.`,
  );
  if (servers.length + addresses.length === 0) return result(told.join(' '));
  await vouchFor(run, { servers, addresses });
  await allowAnother(deps, { servers, addresses });
  // What a server of theirs holds of this file stays this file's.
  const held = servers.flatMap((id) => world.ipsOf(String(id))).filter(world.isNobodys);
  await keepQuietOf(deps, [...addresses, ...held]);
  const what = described({ servers, addresses: [...addresses, ...held] });
  const are = servers.length + addresses.length === 1 ? 'is' : 'are';
  return result([`${what} ${are} ignored: not managed, and no longer asked about.`, ...told].join(' '));
}

function refuseOurs(run: Run, kind: KindName, noun: string, there: boolean, id: string): void {
  if (!there) throw new ConfigError(`The project has no ${noun}.`);
  const key = run.world.keyOf(kind, id);
  if (key !== undefined && !identityChanged(run, key))
    throw new ConfigError(`${noun} is bound to ${key}.`, false, [runs('forget', [key])]);
}

async function isServer({ world, cache, deps }: Run, id: ServerId): Promise<boolean> {
  if (world.ipsOf(String(id)).length > 0 || world.servers?.some((each) => each.id === id)) return true;
  const read = cache.since(deps.clock.monotonic());
  return (await read.findNetworkInterfaces(id)) !== undefined;
}

/** Lets go of what a key stands for, which stays as it is. */
export async function forgetKey(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  key: ResourceKey,
): Promise<CommandResult> {
  const run = await openRun(deps, gate, desired);
  const binding = run.bindings.get(key);
  if (binding === undefined) {
    const hint = didYouMeanKey(key, run.bindings.keys());
    throw new ConfigError(
      `The state binds nothing to ${key}${hint === '' ? '.' : hint}`,
      true,
      hint === '' ? [runs('status', [], { when: 'to list its keys' })] : [],
    );
  }
  const open = [...run.intents.values()].find((each) => each.key === key || isInside(each.key, key));
  if (open !== undefined)
    throw new ConfigError(`${open.key} has an unsettled ${open.verb}: settle that first.`);
  const { parent, kind, id } = { ...takeApart(key), ...binding };
  if (parent === undefined && run.world.subjects.get(key)?.desired !== undefined)
    throw new ConfigError(whyDeclared(run, key, id));
  await run.keepMoves();
  const changes = letGo(run, key, 'an operator let go of it');
  const letGoOf = bindingsOf(run, changes);
  if (kind === 'backup' && parent !== undefined) await rememberListed(run, parent, letGoOf);
  await run.change(changes);
  const address = kind === 'ip' ? run.world.ip(id) : undefined;
  await vouchFor(run, {
    servers: kind === 'server' ? [Number(id)] : [],
    addresses: address === undefined ? [] : [address],
  });
  return result(`${key} is released.${stays(run, binding, letGoOf)}`);
}

/** What changes let go of, asked before they are made. */
export function bindingsOf({ bindings }: Run, changes: readonly { readonly key: ResourceKey }[]): Binding[] {
  return changes.flatMap(({ key }) => bindings.get(key) ?? []);
}

function whyDeclared({ world }: Run, key: ResourceKey, id: string): string {
  const goes = world.settings.prune
    ? '; with `prune: true` under `settings`, as it is now, an apply in between would delete it, so turn that off before'
    : '';
  return `${key} is in the file, and would be made anew: make its entry \`{managed: false, id: ${id}}\`, with which the next apply lets go of it, or take the entry out first${goes}.`;
}

/** Those that a list lacks are gone already. */
async function rememberListed(
  { deps, cache }: Run,
  key: ResourceKey,
  backups: readonly Binding[],
): Promise<void> {
  const [{ parentId: server } = {}] = backups;
  if (server === undefined) return;
  const listed = await cache.since(deps.clock.monotonic()).findBackups(Number(server) as ServerId);
  const left = backups.map(({ id }) => id).filter((id) => listed?.some((each) => each.id === id) ?? true);
  if (left.length > 0)
    await rememberForgotten(deps.store, { server, key, backups: left, at: deps.clock.now() });
}

/** What is let go of, with what goes by it, goes on being billed where it is still there. */
export function stays({ world, kindOf }: Run, { kind, id }: Binding, letGoOf: readonly Binding[]): string {
  const held = kind === 'server' ? world.ipsOf(id).map(({ address }) => address) : [];
  const backups = letGoOf.filter((each) => each.kind === 'backup').map((each) => each.id);
  const name = { ip: world.ip(id)?.address, backup: backups.join(', ') }[kind as string] ?? id;
  const along = [
    ...(held.length === 0 ? [] : [`address ${held.join(', ')}`]),
    ...(kind !== 'server' || backups.length === 0 ? [] : [`backup ${backups.join(', ')}`]),
  ];
  const what = [`${nounOf(kind)} ${name}`, ...(along.length === 0 ? [] : [along.join(' and ')])];
  const billed = kindOf(kind).billed === true ? ', and is billed as long as it is there' : '';
  return ` What it stood for is nobody's now${billed}: ${what.join(' with ')}.`;
}
