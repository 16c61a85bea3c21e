import type { Readings } from './readings.ts';
import type { Ip, Iso, Network, NetworkInterface, Project, Server, Task } from './world.ts';

/**
 * When reads show the result of a creation. The document states it for networks alone
 * (`@source API §3.5`). Every other kind has a reading: visible from the moment the request is
 * accepted, or from the end of its task. The leftover of a failed task that appears later is
 * in no read until then. `@assumption A14`
 */
export function isLost(project: Project, server: Server): boolean {
  const task = creationOf(project, server.id);
  return task !== undefined && appearsLater(task);
}

/** Whether the list of servers, if a profile enables the list, shows the server. `@assumption A64` */
export function listsServer(project: Project, server: Server, readings: Readings): boolean {
  const task = creationOf(project, server.id);
  return task === undefined || (!appearsLater(task) && readings.serverListedAt === 'accepted');
}

/** The addresses as reads show them. */
export function seenIps(project: Project, readings: Readings): Ip[] {
  return project.ips.flatMap((ip) => seenIp(project, ip, readings) ?? []);
}

/** The address as reads show the address; null while no read shows the address. `@assumption A59` `@assumption A60` */
export function seenIp(project: Project, ip: Ip, readings: Readings): Ip | null {
  const task = ip.serverId === null ? undefined : creationOf(project, ip.serverId);
  if (task === undefined) return ip;
  const isNew = task.effect.newIpId === ip.id;
  if (isNew && (appearsLater(task) || readings.addressAt === 'taskDone')) return null;
  const detached = appearsLater(task) || readings.attachedAt === 'taskDone';
  return detached ? { ...ip, serverId: null, primary: false } : ip;
}

/** The network interfaces of a server that its list shows. `@assumption A28` `@assumption A61` */
export function seenInterfaces(project: Project, server: Server, readings: Readings): NetworkInterface[] {
  const adding = project.tasks.flatMap((task) => {
    const { effect } = task;
    const open = appearsLater(task) || (!task.done && readings.interfaceAt === 'taskDone');
    return open && effect.kind === 'add_card' && effect.serverId === server.id ? [effect.cardId] : [];
  });
  return server.interfaces.filter((each) => !each.hidden && !adding.includes(each.id));
}

/** Does the list of networks hold it? `@assumption A62` */
export function showsNetwork(project: Project, network: Network): boolean {
  return !project.tasks.some(
    (task) =>
      appearsLater(task) && task.effect.kind === 'create_network' && task.effect.networkId === network.id,
  );
}

/** `@assumption A63` */
export function showsIso(project: Project, iso: Iso, readings: Readings): boolean {
  if (readings.isoAt === 'accepted') return true;
  return !project.tasks.some(
    ({ done, effect }) => !done && effect.kind === 'add_iso' && effect.isoId === iso.id,
  );
}

/** Was it reported as failed, and is its work still to show? */
export function appearsLater(task: Task): boolean {
  return task.appearsMs !== undefined && task.appearsMs !== null;
}

type Creation = Task & { readonly effect: { readonly kind: 'create_server' } };

/** The task that is still creating the server. */
function creationOf(project: Project, serverId: number): Creation | undefined {
  return project.tasks.find(
    (task): task is Creation =>
      task.effect.kind === 'create_server' &&
      task.effect.serverId === serverId &&
      (!task.done || appearsLater(task)),
  );
}
