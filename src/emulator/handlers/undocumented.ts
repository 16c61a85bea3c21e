import type { Context, Fields, Reply, Route } from '../call.ts';
import { findServer, recordExecution, refuseDeleting, spend, startTask } from '../context.ts';
import { invalid, Refusal } from '../problem.ts';
import type { Profile, ProfileOperation } from '../profile.ts';
import { nextRun } from '../schedule.ts';
import { bindTemplate } from '../template.ts';
import { flag, integer, list, object, oneOf, readBody, readId } from '../validate.ts';
import { policyView, serverView } from '../views.ts';
import { listsServer } from '../visibility.ts';
import type { Server } from '../world.ts';
import { findIso } from './isos.ts';

/**
 * The operations that the document does not show, at the places the profile
 * gives them. None is served unless named there. `@assumption A30`
 */
export function undocumentedRoutes(profile: Profile): Route[] {
  return Object.entries(profile.operations).flatMap(([name, operation]) => {
    const handler = HANDLERS[name];
    if (handler === undefined || operation.method === undefined || operation.path === undefined) return [];
    return [
      {
        name,
        method: operation.method,
        path: operation.path,
        spends: () => name === 'take_server_image',
        read: (context) => readValues(context, operation),
        handle: handler,
      },
    ];
  });
}

const HANDLERS: Readonly<Record<string, Route['handle']>> = {
  list_servers: ({ project, readings }) => ({
    status: 200,
    data: project.servers
      .filter((server) => listsServer(project, server, readings))
      .map((server) => serverView(project, server, readings)),
  }),
  read_server: (context, values) => ({
    status: 200,
    data: serverView(context.project, serverOf(context, values), context.readings),
  }),
  remove_network_interface: removeNetworkInterface,
  update_backup_policy: updateBackupPolicy,
  insert_iso: (context, values) => {
    const server = serverOf(context, values);
    refuseDeleting(server);
    const iso = findIso(context, String(values.iso_id), 'iso_id');
    if (iso.status !== 'available') throw new Refusal(409, 'iso_not_ready', 'The ISO is not downloaded.');
    return change(context, server, { isoInDrive: iso.id }, () => ({ server_id: server.id, iso_id: iso.id }));
  },
  eject_iso: (context, values) => {
    const server = serverOf(context, values);
    return change(context, server, { isoInDrive: null }, () => ({ server_id: server.id, iso_id: null }));
  },
  take_server_image: takeServerImage,
  delete_backup: (context, values) => {
    const { project } = context;
    const server = Number(values.server_id ?? Object.values(context.params)[0]);
    const id = lastParam(context);
    const backup = project.backups.find((candidate) => candidate.serverId === server && candidate.id === id);
    if (backup === undefined) throw new Refusal(404, 'backup_not_found', `There is no backup ${id}.`);
    project.backups = project.backups.filter((candidate) => candidate !== backup);
    return { status: 200, data: { deleted: backup.id } };
  },
  resize_server: resizeServer,
};

/** Path parameters and, if the profile gives a body template, the values at its placeholders. */
function readValues(context: Context, operation: ProfileOperation): Fields {
  const { body } = context;
  const bound =
    operation.body === undefined ? {} : bindTemplate(operation.body, body === undefined ? {} : body);
  const wrong = Object.entries(TYPES).filter(
    ([name, type]) => Object.hasOwn(bound, name) && typeof bound[name] !== type,
  );
  if (wrong.length > 0)
    throw invalid(...wrong.map(([name, type]) => ({ name, reason: `must be a ${type}` })));
  const trimmed = Object.entries(bound).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.trim() : value,
  ]);
  return { ...context.params, ...Object.fromEntries(trimmed) };
}

/** Types are strict, also for a field that the profile renames. `@source API §4 rule 3` */
const TYPES = { server_id: 'number', iso_id: 'string', name: 'string' } as const;

/** The server is `server_id`, or the first parameter of the path. */
function serverOf(context: Context, values: Fields): Server {
  const id = values.server_id ?? Object.values(context.params)[0];
  return findServer(context, readId(String(id), 'server_id'));
}

function lastParam(context: Context): string {
  return Object.values(context.params).at(-1) ?? '';
}

/** Done inside the request, or by a task. `@assumption A52` */
function change(context: Context, server: Server, to: Partial<Server>, view: () => unknown): Reply {
  const before = Object.fromEntries(Object.keys(to).map((name) => [name, server[name as keyof Server]]));
  Object.assign(server, to);
  if (context.readings.changeAnswer === 'done') return { status: 200, data: view(), task: null };
  const task = startTask(context, { kind: 'change_server', serverId: server.id, before });
  return { status: 202, data: view(), task };
}

function removeNetworkInterface(context: Context, values: Fields): Reply {
  const server = serverOf(context, values);
  const id = lastParam(context);
  if (!server.interfaces.some((each) => each.id === id)) {
    throw new Refusal(404, 'network_interface_not_found', `The server has no network interface ${id}.`);
  }
  refuseDeleting(server);
  const task = startTask(context, { kind: 'remove_card', serverId: server.id, cardId: id });
  return { status: 202, data: null, task };
}

const POLICY = object({
  enabled: flag,
  days: list(oneOf('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun')).optional(),
  hour: integer(0, 23).optional(),
  minute: integer(0, 59).optional(),
  keep: integer(1, 365).optional(),
});

/** Switching scheduled backups on is new spending, off is not. `@source API §1.6` */
function updateBackupPolicy(context: Context, values: Fields): Reply {
  const server = serverOf(context, values);
  const given = typeof values.policy === 'object' && values.policy !== null ? values.policy : context.body;
  const body = readBody(given, POLICY);
  if (body.enabled === true) spend(context);
  const policy = { ...server.policy, ...(body as Partial<Server['policy']>) };
  const changed = { policy: { ...policy, nextRunMs: nextRun(policy, context.nowMs) } };
  return change(context, server, changed, () => policyView(server.policy));
}

function takeServerImage(context: Context, values: Fields): Reply {
  const { world, project, readings } = context;
  const server = serverOf(context, values);
  refuseDeleting(server);
  if (server.gpuPackage !== null) {
    throw new Refusal(
      readings.unshownStatus,
      'server_type_not_supported',
      'No image can be taken from a packaged graphics-card server.',
    );
  }
  spend(context);
  const id = `img-${world.nextId.image}`;
  world.nextId.image += 1;
  const image = { id, name: String(values.name ?? server.name).trim(), serverId: server.id };
  project.images.push(image);
  recordExecution(context, 'image', id);
  const task = startTask(context, { kind: 'take_image', imageId: id });
  return {
    status: 202,
    data: { ...(readings.imageAnswer === 'id' ? { id } : {}), name: image.name, server_id: server.id },
    task,
    location: `/v1/server-images/${id}`,
  };
}

const SIZE = object({
  cores: integer(1),
  memory_mb: integer(1),
  disk_gb: integer(1),
  plan_id: integer(1),
}).partial();

/** A packaged server is not resized. A resize to a smaller size reduces the bill. `@source API §4` `@source API §1.6` */
function resizeServer(context: Context, values: Fields): Reply {
  const server = serverOf(context, values);
  if (server.gpuPackage !== null) {
    throw new Refusal(422, 'resources_managed_by_package', 'The package sets the size.');
  }
  const body = readBody(context.body, SIZE);
  if (Object.keys(body).length === 0) throw invalid({ name: 'body', reason: 'must name a size' });
  const size = {
    cores: (body.cores as number | undefined) ?? server.cores,
    memoryMb: (body.memory_mb as number | undefined) ?? server.memoryMb,
    diskGb: (body.disk_gb as number | undefined) ?? server.diskGb,
    planId: (body.plan_id as number | undefined) ?? server.planId,
  };
  const isSmaller =
    size.planId === server.planId &&
    (['cores', 'memoryMb', 'diskGb'] as const).every((each) => (size[each] ?? 0) <= (server[each] ?? 0));
  if (!isSmaller) spend(context);
  return change(context, server, size, () => serverView(context.project, server, context.readings));
}
