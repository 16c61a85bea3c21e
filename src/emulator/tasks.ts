import { appearsLater } from './visibility.ts';
import { newNetwork, type Project, type Server, type Task, type TaskEffect, type World } from './world.ts';

/**
 * Ends one task and gives it its effect.
 *
 *     pending ──startsMs──► running ──endsMs──► succeeded (the effect)
 *                                    └────────► failed (the part in `leaves`) ──appearsMs──► the effect after all
 *
 * A stuck task stays running permanently. A forgotten task has its effect but
 * cannot be read. `@source API §3` `@assumption A14` `@assumption A40`
 */
export function finishTask(world: World, project: Project, task: Task): void {
  task.done = true;
  const { effect } = task;
  const failed = task.outcome === 'failed';
  /** The work has no effect. */
  const isVoid = failed && task.leaves !== 'everything';
  if (failed && task.leaves === 'later' && CREATIONS.has(effect.kind)) {
    task.appearsMs = task.endsMs + (task.appearsAfterMs ?? 0);
    if (effect.kind === 'add_iso') endDownload(project, effect, 'failed');
    return;
  }
  switch (effect.kind) {
    case 'create_server':
      if (failed) failServer(world, project, task, effect);
      else readyServer(project, effect.serverId);
      return;
    case 'delete_server':
      if (isVoid) reviveServer(project, effect.serverId);
      else removeServer(world, project, effect.serverId);
      return;
    case 'create_network':
      if (isVoid) dropNetwork(project, effect.networkId);
      else if (effect.listed !== true) addNetwork(world, project, effect);
      return;
    case 'delete_network':
      if (!isVoid) dropNetwork(project, effect.networkId);
      else
        for (const network of project.networks) if (network.id === effect.networkId) network.deleting = false;
      return;
    case 'add_card':
      if (isVoid) removeInterface(project, effect.serverId, effect.cardId);
      return;
    case 'remove_card':
      if (!isVoid) removeInterface(project, effect.serverId, effect.cardId);
      return;
    case 'add_iso':
      endDownload(project, effect, failed ? 'failed' : 'available');
      return;
    case 'change_server': {
      const server = project.servers.find(({ id }) => id === effect.serverId);
      if (isVoid && server !== undefined) Object.assign(server, effect.before);
      return;
    }
    case 'take_image':
      if (isVoid) project.images = project.images.filter((image) => image.id !== effect.imageId);
      return;
  }
}

/** Shows the resources of a task that was reported as failed. `@assumption A14` */
export function appear(world: World, project: Project, task: Task): void {
  task.appearsMs = null;
  const { effect } = task;
  if (effect.kind === 'create_server') readyServer(project, effect.serverId);
  if (effect.kind === 'create_network' && effect.listed !== true) addNetwork(world, project, effect);
  if (effect.kind === 'add_iso' && effect.failure === null) endDownload(project, effect, 'available');
}

const CREATIONS: ReadonlySet<string> = new Set<TaskEffect['kind']>([
  'create_server',
  'create_network',
  'add_card',
  'add_iso',
  'take_image',
]);

/** Removes a server and everything attached to it. Its addresses and backups stay. `@source API §1` */
export function removeServer(world: World, project: Project, serverId: number): void {
  const server = project.servers.find((candidate) => candidate.id === serverId);
  if (server === undefined) return;
  for (const task of project.tasks) {
    // A creation that a deletion has overtaken must not be reported as a success.
    const isOpen = !task.done || appearsLater(task);
    if (isOpen && task.effect.kind === 'create_server' && task.effect.serverId === serverId) {
      task.done = true;
      task.outcome = 'failed';
      task.appearsMs = null;
    }
  }
  detach(project, serverId);
  freeCapacity(world, server);
  project.servers = project.servers.filter((candidate) => candidate.id !== serverId);
  project.goneServers.push(serverId);
}

/** Frees the addresses of a server. They stay with the project, billed. `@source API §1.4` */
export function detach(project: Project, serverId: number): void {
  for (const ip of project.ips) {
    if (ip.serverId !== serverId) continue;
    ip.serverId = null;
    ip.primary = false;
  }
}

function readyServer(project: Project, serverId: number): void {
  const server = project.servers.find((candidate) => candidate.id === serverId);
  if (server === undefined || server.status !== 'creating') return;
  server.status = 'active';
  server.power = true;
  for (const networkInterface of server.interfaces) networkInterface.hidden = false;
}

function failServer(
  world: World,
  project: Project,
  task: Task,
  effect: { serverId: number; newIpId: number | null },
): void {
  const server = project.servers.find((candidate) => candidate.id === effect.serverId);
  if (server === undefined) return;
  if (task.leaves === 'everything') {
    server.status = 'error';
    for (const networkInterface of server.interfaces) networkInterface.hidden = false;
    return;
  }
  removeServer(world, project, effect.serverId);
  if (task.leaves === 'nothing') project.ips = project.ips.filter((ip) => ip.id !== effect.newIpId);
}

function reviveServer(project: Project, serverId: number): void {
  for (const server of project.servers) {
    if (server.id === serverId && server.status === 'deleting') server.status = 'active';
  }
}

/** Puts the network into the project's list. */
export function addNetwork(world: World, project: Project, effect: NewNetwork): void {
  effect.listed = true;
  const { networkId: id, name, cidr } = effect;
  project.networks.push(newNetwork({ id, name, cidr }));
  const execution = world.executions[effect.execution];
  if (execution !== undefined) execution.id = String(id);
}

/** The network that a creation task adds to the list of its project when the task ends. `@source API §3.5` */
export type NewNetwork = TaskEffect & { kind: 'create_network' };

function dropNetwork(project: Project, id: number): void {
  project.networks = project.networks.filter((network) => network.id !== id);
}

function endDownload(
  project: Project,
  effect: TaskEffect & { kind: 'add_iso' },
  status: 'available' | 'failed',
): void {
  const iso = project.isos.find((candidate) => candidate.id === effect.isoId);
  if (iso === undefined) return;
  iso.status = status;
  iso.failure = status === 'failed' ? (effect.failure ?? 'the download was interrupted') : null;
}

function removeInterface(project: Project, serverId: number, interfaceId: string): void {
  for (const server of project.servers) {
    if (server.id === serverId)
      server.interfaces = server.interfaces.filter((each) => each.id !== interfaceId);
  }
}

function freeCapacity(world: World, server: Server): void {
  for (const type of world.serverTypes) {
    for (const sold of type.packages) {
      if (type.id === server.typeId && sold.key === server.gpuPackage) sold.capacity += 1;
    }
  }
}
