import { type Context, findServer, type Reply, refuseDeleting, startTask } from '../context.ts';
import type { Route } from '../router.ts';
import { detach } from '../tasks.ts';
import { readId } from '../validate.ts';
import { billableIps } from '../views.ts';
import { readServerFields } from './server-body.ts';
import { createServer } from './server-creation.ts';

/** `@source API §4 /servers` */
export const serverRoutes: readonly Route[] = [
  {
    name: 'create_server',
    method: 'POST',
    path: '/servers',
    takesBody: true,
    spends: () => true,
    check: readServerFields,
    handle: createServer,
  },
  { name: 'delete_server', method: 'DELETE', path: '/servers/{id}', handle: deleteServer },
];

/** The addresses stay billed and leave the server inside the task. `@source API §3.2` `@assumption A33` */
function deleteServer(context: Context): Reply {
  const { project, readings } = context;
  const server = findServer(context, readId(context.params.id ?? ''));
  refuseDeleting(server);
  const ips = project.ips.filter((ip) => ip.serverId === server.id);
  const data = { server_id: server.id, billable_ips: billableIps(ips, readings) };
  server.status = 'deleting';
  server.power = false;
  if (readings.detachAt === 'accepted') detach(project, server.id);
  const task = startTask(context, { kind: 'delete_server', serverId: server.id });
  return { status: 202, data, task };
}
