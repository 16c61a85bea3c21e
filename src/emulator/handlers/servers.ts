import { allocateIp, releaseIp } from '../addresses.ts';
import type { Context, Fields, Reply, Route } from '../call.ts';
import { recordExecution, refuseDeleting, serverIn, spend, startTask, takeId } from '../context.ts';
import { attach, newContents } from '../mutations.ts';
import { Refusal } from '../problem.ts';
import { detach } from '../tasks.ts';
import { billableIps, serverView } from '../views.ts';
import type { GpuPackage, Ip, Server, ServerType } from '../world.ts';
import { findIp } from './ips.ts';
import { attachInterface } from './network-interfaces.ts';
import { type PublicAddress, readServerBody, readServerFields } from './server-body.ts';

/** `@source API §4 /servers` */
export const serverRoutes: readonly Route[] = [
  {
    name: 'create_server',
    method: 'POST',
    path: '/servers',
    spends: () => true,
    read: readServerFields,
    handle: createServer,
  },
  { name: 'delete_server', method: 'DELETE', path: '/servers/{id}', handle: deleteServer },
];

/** The addresses stay billed and leave the server inside the task. `@source API §3.2` `@assumption A33` */
function deleteServer(context: Context): Reply {
  const { project, readings } = context;
  const server = serverIn(context);
  refuseDeleting(server);
  const ips = project.ips.filter((ip) => ip.serverId === server.id);
  const data = { server_id: server.id, billable_ips: billableIps(ips, readings) };
  server.status = 'deleting';
  server.power = false;
  if (readings.detachAt === 'accepted') detach(project, server.id);
  const task = startTask(context, { kind: 'delete_server', serverId: server.id });
  return { status: 202, data, task };
}

/** A new server. The answer has its id, and the task creates the machine. `@source API §4 POST /servers` */
function createServer(context: Context, body: Fields): Reply {
  const { world, project, readings } = context;
  const wanted = readServerBody(context, body);
  spend(context);
  const { ip, fresh } = takeAddress(context, wanted.address, wanted.type);
  if (wanted.sold !== null && !hasCapacity(context, wanted.sold)) {
    // A refused request costs nothing: an address that it allocated is released, an address that the caller named is kept.
    if (ip !== null && fresh) releaseIp(context, ip.id);
    throw new Refusal(409, 'no_gpu_capacity', 'No host has the requested graphics cards free.');
  }
  if (wanted.sold !== null) wanted.sold.capacity = Math.max(0, wanted.sold.capacity - 1);
  const ids = world.projects.flatMap((owner) => owner.servers.map((server) => server.id));
  const server: Server = {
    id: takeId(context, 'server', ids),
    name: wanted.name,
    typeId: wanted.type.id,
    image: wanted.image,
    status: 'creating',
    power: false,
    ...wanted.sizes,
    gpuPackage: wanted.sold?.key ?? null,
    sshKeys: wanted.sshKeys,
    createdMs: context.nowMs,
    ...newContents(),
  };
  project.servers.push(server);
  // An id that is used again must not be answered for its predecessor.
  project.goneServers = project.goneServers.filter((id) => id !== server.id);
  if (ip !== null) attach(server, ip, readings.publicCardAt === 'taskDone');
  const home = project.networks.find((network) => network.isDefault);
  if (readings.defaultNetworkCard && home !== undefined) attachInterface(server, home);
  recordExecution(context, 'server', String(server.id));
  const newIpId = fresh && ip !== null ? ip.id : null;
  const task = startTask(context, { kind: 'create_server', serverId: server.id, newIpId });
  return {
    status: 202,
    data: serverView(project, server, context.readings),
    task,
    location: `/v1/servers/${server.id}`,
  };
}

/** `@assumption A22` */
function takeAddress(
  context: Context,
  wanted: PublicAddress,
  type: ServerType,
): { ip: Ip | null; fresh: boolean } {
  switch (wanted.kind) {
    case 'none':
      return { ip: null, fresh: false };
    case 'new':
      return { ip: allocateIp(context, type.pool), fresh: true };
    case 'reuse': {
      const free = context.project.ips.find((ip) => ip.serverId === null && isReusable(context, ip, type));
      return free === undefined
        ? { ip: allocateIp(context, type.pool), fresh: true }
        : { ip: free, fresh: false };
    }
    case 'named': {
      const ip = findIp(context, wanted.ipId);
      if (ip.serverId !== null) throw new Refusal(409, 'ip_in_use', 'The address is attached to a server.');
      if (ip.pool !== type.pool) {
        throw new Refusal(422, 'ip_not_usable', 'The address does not serve servers of this type.');
      }
      return { ip, fresh: false };
    }
  }
}

/** Any free address, as the document states, or only an address that serves the type. `@assumption A49` */
function isReusable({ readings }: Context, ip: Ip, type: ServerType): boolean {
  return readings.reusePool === 'any' || ip.pool === type.pool;
}

function hasCapacity(context: Context, sold: GpuPackage): boolean {
  return context.call.fault?.do !== 'no_gpu_capacity' && sold.capacity > 0;
}
