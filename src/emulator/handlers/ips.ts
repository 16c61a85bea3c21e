import { allocateIp, releaseIp } from '../addresses.ts';
import type { Context, Route } from '../call.ts';
import { found, idIn, recordExecution, spend } from '../context.ts';
import { Refusal } from '../problem.ts';
import { shows } from '../router.ts';
import { integer, object, readBody } from '../validate.ts';
import { ipView } from '../views.ts';
import { seenIp, seenIps } from '../visibility.ts';
import type { Ip } from '../world.ts';
import { findType } from './server-types.ts';

/** `@source API §4 /ips` */
export const ipRoutes: readonly Route[] = [
  shows('list_ips', '/ips', ({ project, readings }) => seenIps(project, readings).map(ipView)),
  {
    name: 'allocate_ip',
    method: 'POST',
    path: '/ips',
    spends: () => true,
    read: ({ body }) => readBody(body, ALLOCATION),
    handle: (context, body) => {
      const typeId = body.server_type_id as number | undefined;
      const pool = typeId === undefined ? context.project.pool : findType(context, typeId).pool;
      spend(context);
      const ip = allocateIp(context, pool);
      recordExecution(context, 'ip', String(ip.id));
      return { status: 201, data: ipView(ip), location: `/v1/ips/${ip.id}` };
    },
  },
  shows('read_ip', '/ips/{id}', (context) => {
    const ip = findIp(context, idIn(context));
    return ipView(seenIp(context.project, ip, context.readings) ?? ip);
  }),
  {
    name: 'release_ip',
    method: 'DELETE',
    path: '/ips/{id}',
    handle: (context) => {
      const ip = findIp(context, idIn(context));
      if (ip.serverId !== null) {
        throw new Refusal(409, 'ip_in_use', `The address is attached to server ${ip.serverId}.`);
      }
      releaseIp(context, ip.id);
      return { status: 200, data: { deleted: ip.id } };
    },
  },
];

const ALLOCATION = object({ server_type_id: integer(1).optional() });

/** An address of the project; 404 also for an address that reads do not show yet. `@assumption A59` */
export function findIp({ project, readings }: Context, id: number): Ip {
  const ip = project.ips.find((each) => each.id === id && seenIp(project, each, readings) !== null);
  return found(ip, 'ip_not_found', `There is no address ${id}.`);
}
