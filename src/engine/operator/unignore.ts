import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { type CommandResult, result, run as runs } from '../../core/remedy.ts';
import { described, nameOf, nobody, type Vouched, vouchedServers } from '../../plan/strangers.ts';
import { vouchedBy } from '../bookkeeping/vouched-note.ts';
import { putVouched } from '../bookkeeping/vouching.ts';
import type { EngineDeps } from '../deps.ts';
import { openRun } from '../look.ts';
import type { Run } from '../run.ts';
import type { WriteGate } from '../write-gate.ts';
import { namedOf } from './named.ts';

/** Takes back that servers (by id) and addresses (as text) are somebody else's: they are asked about again. */
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
      "`unmanaged: ignore` under `settings` says of whatever is there that it is somebody else's: take that out first.",
    );
  const vouched = (await vouchedBy(deps.store)) ?? nobody;
  const asked = namedOf(names);
  const addresses = new Set(asked.addresses);
  const servers = new Set<number>(asked.servers);
  for (const id of servers) refuseServer(run, vouched, id);
  for (const address of addresses) refuseAddress(run, vouched, address, servers);
  const held = world.ips.filter(({ server_id }) => server_id !== null && servers.has(server_id));
  const named = world.ips.filter(({ address }) => addresses.has(address));
  const heldNames = new Set(held.map(nameOf));
  await putVouched(deps.store, {
    ...vouched,
    servers: vouched.servers.filter((id) => !servers.has(id)),
    addresses: vouched.addresses.filter((name) => !heldNames.has(name) && !addresses.has(addressOf(name))),
  });
  const what = described({ servers: [...servers], addresses: [...held, ...named] });
  const [are, them] = names.length === 1 ? ['is', 'it'] : ['are', 'them'];
  return result(
    `${what} ${are} no longer ignored: purchases of this file may wait until you adopt or ignore ${them}.`,
  );
}

function refuseServer({ world }: Run, { servers }: Vouched, id: number): void {
  if (!servers.includes(id)) throw notLeftAlone(`server ${id}`);
  refuseDeclared(`server ${id}`, world.keyOf('server', String(id)));
}

function refuseAddress({ world }: Run, vouched: Vouched, address: string, also: ReadonlySet<number>): void {
  const known = vouched.addresses.filter((name) => addressOf(name) === address);
  if (known.length === 0) throw notLeftAlone(`address ${address}`);
  const live = world.ips.find((ip) => known.includes(nameOf(ip)));
  const server = live?.server_id ?? undefined;
  if (server !== undefined && !also.has(server) && vouchedServers(world, vouched)(server))
    throw new ConfigError(
      `address ${address} belongs to server ${server}, which is ignored with it.`,
      false,
      [runs('ignore', ['--undo', server], { when: 'for both' })],
    );
  refuseDeclared(`address ${address}`, world.keyOf('ip', String(live?.id)));
}

/** What the file says of it the next apply would note again. */
function refuseDeclared(noun: string, key: string | undefined): void {
  if (key !== undefined)
    throw new ConfigError(`${noun} is ${key} in the file, and it is what that says: correct its entry.`);
}

function notLeftAlone(noun: string): ConfigError {
  return new ConfigError(`${noun} is not ignored.`, false, [runs('status', [], { when: 'to list what is' })]);
}

function addressOf(name: string): string {
  return name.split(' ')[1] ?? '';
}
