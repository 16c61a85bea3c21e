import { allocateIp, releaseIp } from '../addresses.ts';
import { type Context, recordExecution, spend } from '../context.ts';
import { Refusal } from '../problem.ts';
import type { Route } from '../router.ts';
import { readBody, readId } from '../validate.ts';
import { ipView } from '../views.ts';
import type { Ip } from '../world.ts';
import { findType } from './server-types.ts';

/** `@source API §4 /ips` */
export const ipRoutes: readonly Route[] = [
  {
    name: 'list_ips',
    method: 'GET',
    path: '/ips',
    handle: ({ project }) => ({ status: 200, data: project.ips.map(ipView) }),
  },
  {
    name: 'allocate_ip',
    method: 'POST',
    path: '/ips',
    takesBody: true,
    handle: (context) => {
      const body = readBody(context.body, { server_type_id: { type: 'integer', least: 1 } });
      const typeId = body.server_type_id as number | undefined;
      const pool = typeId === undefined ? context.project.pool : findType(context, typeId).pool;
      spend(context);
      const ip = allocateIp(context, pool);
      recordExecution(context, 'ip', String(ip.id));
      return { status: 201, data: ipView(ip), location: `/v1/ips/${ip.id}` };
    },
  },
  {
    name: 'read_ip',
    method: 'GET',
    path: '/ips/{id}',
    handle: (context) => ({ status: 200, data: ipView(findIp(context, readId(context.params.id ?? ''))) }),
  },
  {
    name: 'release_ip',
    method: 'DELETE',
    path: '/ips/{id}',
    handle: (context) => {
      const ip = findIp(context, readId(context.params.id ?? ''));
      if (ip.serverId !== null) {
        throw new Refusal(409, 'ip_in_use', { detail: `The address is attached to server ${ip.serverId}.` });
      }
      releaseIp(context, ip.id);
      return { status: 200, data: { deleted: ip.id } };
    },
  },
];

/** The project's address, or 404. */
export function findIp(context: Context, id: number): Ip {
  const ip = context.project.ips.find((candidate) => candidate.id === id);
  if (ip === undefined) throw new Refusal(404, 'ip_not_found', { detail: `There is no address ${id}.` });
  return ip;
}
