import type { ReadPort } from '../../core/ports.ts';
import type { Ip, Server, ServerId } from '../../core/resources.ts';

/** One server with its contents; `shown` if the API profile describes how to read servers. */
export type FoundServer = NonNullable<Awaited<ReturnType<typeof readServer>>>;

/** The whole of a live project, as far as it can be read. `complete`: servers were listed, and not only found by their addresses. */
export type Inventory = Awaited<ReturnType<typeof readInventory>>;

/** Reads everything; servers by their addresses, and by the list where there is one. */
export async function readInventory(read: ReadPort, onProgress: (done: number, of: number) => void) {
  const project = await read.project();
  const [networks, ips, isos, listed] = await Promise.all([
    read.networks(),
    read.ips(),
    read.isos(),
    read.servers?.(),
  ]);
  const ids = [
    ...new Set([...ips.flatMap(({ server_id }) => server_id ?? []), ...(listed ?? []).map(({ id }) => id)]),
  ].sort((a, b) => a - b);
  const show = await shower(read, listed ?? []);
  let done = 0;
  onProgress(done, ids.length);
  const servers = await Promise.all(
    ids.map(async (id) => {
      const shown = await show(id);
      const found = await readServer(read, id, shown, ips);
      onProgress(++done, ids.length);
      return found;
    }),
  );
  const found = servers.flatMap((each) => each ?? []);
  return { project, networks, ips, isos, servers: found, complete: listed !== undefined };
}

/** Reads a server with the profile's reads. If the list shows as much as the read of one server, the list serves for all. */
async function shower(
  read: ReadPort,
  listed: readonly Server[],
): Promise<(id: ServerId) => Promise<Server | undefined>> {
  const inList = new Map(listed.map((each) => [each.id, each]));
  const [first] = listed;
  if (first === undefined || read.findServer === undefined) {
    return async (id) => (await read.findServer?.(id)) ?? inList.get(id);
  }
  const alone = await read.findServer(first.id);
  const more = alone !== undefined && Object.keys(alone).some((field) => !(field in first));
  return async (id) =>
    inList.has(id) && !more ? inList.get(id) : ((await read.findServer?.(id)) ?? inList.get(id));
}

/** `undefined`: the server was deleted during the read. */
async function readServer(read: ReadPort, id: ServerId, shown: Server | undefined, ips: readonly Ip[]) {
  const [interfaces, firewall, policy] = await Promise.all([
    read.findNetworkInterfaces(id),
    read.findFirewall(id),
    read.findBackupPolicy(id),
  ]);
  if (interfaces === undefined) return undefined;
  const own = ips.filter(({ server_id }) => server_id === id);
  const primaryFirst = [...own].sort((a, b) => Number(b.primary) - Number(a.primary));
  return { id, shown, ips: primaryFirst, interfaces, firewall, policy };
}
