import { addressObject, foreignClaims, objectName, serverObject } from '../../core/claims.ts';
import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { type CommandResult, result, run as runs } from '../../core/remedy.ts';
import type { Ip } from '../../core/resources.ts';
import { described } from '../../plan/unmanaged.ts';
import { attributionOf } from '../claims/claims.ts';
import type { EngineDeps } from '../deps.ts';
import { openRun } from '../run/start.ts';
import type { Run } from '../run.ts';
import type { WriteGate } from '../write-gate.ts';
import { namedOf } from './named.ts';

/** Ends the ignored or released mark of servers (by id) and addresses (as text). vdcsync asks about them again. */
export async function unignore(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  names: readonly string[],
): Promise<CommandResult> {
  const run = await openRun(deps, gate, desired);
  const { world } = run;
  if (world.settings.unmanaged === 'ignore')
    throw new ConfigError(
      '`unmanaged: ignore` under `settings` ignores all unmanaged resources: remove that setting first.',
    );
  const { servers, addresses } = namedOf(names);
  for (const id of servers) refuseServer(run, id);
  for (const address of addresses) refuseAddress(run, address, servers);
  const held = world.ips.filter(({ server_id }) => server_id !== null && servers.includes(server_id));
  const named = world.ips.filter(({ address }) => addresses.includes(address));
  const isMeant = ({ kind, id, identity }: (typeof claims)[number]) =>
    factsOf(kind).container
      ? servers.some((each) => String(each) === id)
      : addresses.includes(identity.address ?? '') || held.some((ip) => isSame(ip, { id, identity }));
  const claims = foreignClaims(run.claims.values());
  await run.change(
    claims
      .filter(isMeant)
      .map((object) => ({ type: 'unclaim', object, reason: 'an operator ignores it no more' }) as const),
  );
  const what = described({ servers, addresses: [...held, ...named] });
  const [are, them] = names.length === 1 ? ['is', 'it'] : ['are', 'them'];
  return result(
    `${what} ${are} no longer ignored. Creations of this file may be blocked until you adopt or ignore ${them}.`,
  );
}

function refuseServer({ world, claims }: Run, id: number): void {
  if (!claims.has(objectName(serverObject(id)))) throw notIgnored(`server ${id}`);
  refuseDeclared(`server ${id}`, world.keyOf(serverObject(id)));
}

function refuseAddress(run: Run, address: string, also: readonly number[]): void {
  const known = foreignClaims(run.claims.values()).filter(({ identity }) => identity.address === address);
  if (known.length === 0) throw notIgnored(`address ${address}`);
  const live = run.world.ips.find((ip) => known.some((claim) => isSame(ip, claim)));
  const server = live?.server_id ?? undefined;
  const holder = server === undefined ? undefined : attributionOf(run).server(String(server)).is;
  if (server !== undefined && !also.includes(server) && (holder === 'ignored' || holder === 'released'))
    throw new ConfigError(
      `address ${address} belongs to server ${server}, which is ignored with it.`,
      false,
      [runs('ignore', ['--undo', server], { when: 'for both' })],
    );
  refuseDeclared(`address ${address}`, run.world.keyOf(addressObject(live?.id ?? '')));
}

function isSame(
  ip: Ip,
  { id, identity }: { readonly id: string; readonly identity: { address?: string } },
): boolean {
  return String(ip.id) === id && ip.address === identity.address;
}

/** If the file marks the object, the next apply would mark the object again. */
function refuseDeclared(noun: string, key: string | undefined): void {
  if (key !== undefined)
    throw new ConfigError(`${noun} is ${key} in the file, so the file decides about it: correct its entry.`);
}

function notIgnored(noun: string): ConfigError {
  return new ConfigError(`${noun} is not ignored.`, false, [
    runs('status', [], { when: 'to list the ignored resources' }),
  ]);
}
