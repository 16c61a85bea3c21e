import { SIZE_BOUNDS } from './catalogue.ts';
import type { Readings } from './readings.ts';
import { timestamp } from './time.ts';
import { isLost, seenInterfaces, seenIp } from './visibility.ts';
import type {
  Backup,
  BackupPolicy,
  Firewall,
  Ip,
  Iso,
  Network,
  NetworkInterface,
  Project,
  Server,
  ServerType,
  Task,
} from './world.ts';

type View = Record<string, unknown>;

/** These fields of a resource, under the names that the document gives them: `serverId` is `server_id`. */
function fieldsOf<Resource extends object>(
  resource: Resource,
  ...names: readonly (keyof Resource & string)[]
): View {
  return Object.fromEntries(
    names.map((name) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), resource[name]]),
  );
}

/** `@source API §2 Project` `@assumption A20` */
export function projectView(project: Project, readings: Readings): View {
  const status = {
    active: 'Active',
    suspended: 'Suspended',
    unpaid: readings.unpaidStatus,
  }[project.standing];
  return { ...fieldsOf(project, 'id', 'name'), status };
}

/** `@source API §2 Server` `@assumption A48` `@assumption A50` */
export function serverView(project: Project, server: Server, readings: Readings): View {
  const ips = project.ips.flatMap((ip) => {
    const seen = ip.serverId === server.id ? seenIp(project, ip, readings) : null;
    return seen === null ? [] : { isPrimary: ip.primary, seen };
  });
  return {
    ...fieldsOf(server, 'id', 'name', 'status', 'power'),
    ipv4: ips.find(({ isPrimary }) => isPrimary)?.seen.address ?? null,
    ips: ips.map(({ seen }) => ipView(seen)),
    ...(readings.serverFields === 'sizes' ? fieldsOf(server, 'cores', 'memoryMb', 'diskGb', 'planId') : {}),
    ...driveView(project, server, readings),
  };
}

/** `@assumption A50` */
function driveView(project: Project, { isoInDrive }: Server, readings: Readings): View {
  if (readings.driveField === 'none') return {};
  if (readings.driveField === 'iso_id') return { iso_id: isoInDrive };
  const iso = project.isos.find(({ id }) => id === isoInDrive);
  return { iso: iso === undefined ? null : fieldsOf(iso, 'id', 'name') };
}

/** `@source API §2 Ip` */
export function ipView(ip: Ip): View {
  return fieldsOf(ip, 'id', 'address', 'prefix', 'gateway', 'serverId', 'primary');
}

/** `@source API §2 Network` `@assumption A47` */
export function networkView(
  project: Project,
  network: Network,
  skipCount: boolean,
  readings: Readings,
): View {
  return {
    ...fieldsOf(network, 'id', 'name', 'cidr', 'isDefault'),
    server_count: skipCount ? readings.skippedServerCount : seenServersOn(project, network.id, readings),
    router: null,
  };
}

/** The servers that have an interface in the network, including servers in deletion. */
export function serversOn(project: Project, networkId: number): Server[] {
  return project.servers.filter((server) => isOn(server.interfaces, networkId));
}

function seenServersOn(project: Project, networkId: number, readings: Readings): number {
  return project.servers.filter(
    (server) => !isLost(project, server) && isOn(seenInterfaces(project, server, readings), networkId),
  ).length;
}

function isOn(interfaces: readonly NetworkInterface[], networkId: number): boolean {
  return interfaces.some((each) => !each.public && each.networkId === networkId);
}

/** `@source API §2 Network interface` `@assumption A53` */
export function interfaceView(
  server: Server,
  networkInterface: NetworkInterface,
  { cardIps }: Readings,
): View {
  return {
    ...fieldsOf(networkInterface, 'id', 'public', 'networkId'),
    firewall: networkInterface.public && server.firewall.enabled,
    ips:
      cardIps === 'addresses' ? networkInterface.ips : networkInterface.ips.map((address) => ({ address })),
  };
}

/** `@source API §2 Firewall` `@assumption A32` */
export function firewallView(firewall: Firewall, readings: Readings): View {
  return {
    ...fieldsOf(firewall, 'enabled', 'policyIn', 'policyOut'),
    rules: firewall.rules.map((rule, index) => ({ ...decoration(readings, index), ...rule })),
  };
}

/** Fields that the server adds to each rule. `@assumption A32` */
function decoration({ ruleDecoration }: Readings, index: number): View {
  return {
    ...(ruleDecoration === true || ruleDecoration === 'position and id' ? { id: index + 1 } : {}),
    ...(ruleDecoration === 'position' || ruleDecoration === 'position and id' ? { position: index } : {}),
  };
}

/** `@source API §2 Backup` */
export function backupView(backup: Backup): View {
  return {
    ...fieldsOf(backup, 'id', 'serverId', 'status'),
    size_bytes: backup.status === 'available' ? backup.sizeBytes : null,
    created_at: timestamp(backup.createdMs),
  };
}

/** `@source API §2 Backup policy` */
export function policyView(policy: BackupPolicy): View {
  return {
    ...fieldsOf(policy, 'enabled', 'days', 'hour', 'minute', 'keep'),
    next_run: policy.nextRunMs === null ? null : timestamp(policy.nextRunMs),
    last_run: policy.lastRunMs === null ? null : timestamp(policy.lastRunMs),
  };
}

/** `@source API §2 Task` */
export function taskView(task: Task, nowMs: number): View {
  const status = task.done ? task.outcome : nowMs < task.startsMs ? 'pending' : 'running';
  return {
    id: task.id,
    status,
    is_terminal: task.done,
    poll: `/v1/tasks/${encodeURIComponent(task.id)}`,
    created_at: timestamp(task.createdMs),
  };
}

/** `@assumption A24` */
export function isoView(iso: Iso, readings: Readings): View {
  const common = fieldsOf(iso, 'id', 'name', 'url');
  return readings.isoFields === 'status/error'
    ? { ...common, status: iso.status, error: iso.failure }
    : { ...common, download_status: iso.status, reason: iso.failure };
}

/** `@source API §2 Server type` */
export function serverTypeView(type: ServerType): View {
  return fieldsOf(type, 'id', 'name', 'pricingMode', 'gpu', 'description');
}

/** Withdrawn packages are left out. `@source API §2 Server type pricing` `@assumption A54` */
export function pricingView(type: ServerType, { planList }: Pick<Readings, 'planList'>): View {
  const packages = type.packages.filter((sold) => !sold.withdrawn);
  return {
    server_type_id: type.id,
    pricing_mode: type.pricingMode,
    gpu_packages: packages.map((sold) => ({
      ...fieldsOf(sold, 'key', 'name', 'gpuModel', 'gpuCount'),
      ...fieldsOf(sold, 'cores', 'memoryGb', 'diskGb', 'price', 'backupPrice'),
    })),
    ...(type.pricingMode === 'plans' && planList === 'shown'
      ? { plans: type.plans.map((plan) => fieldsOf(plan, 'id', 'name', 'cores', 'memoryMb', 'diskGb')) }
      : {}),
    limits: type.pricingMode === 'sliders' ? SIZE_BOUNDS : null,
  };
}

/** The type's system images and the project's own finished ISOs. `@source API §2 Server type image entry` */
export function imageViews(project: Project, type: ServerType): View[] {
  const own = project.isos.filter((iso) => iso.status === 'available');
  return [
    ...type.images.map((image) => ({ ...fieldsOf(image, 'id', 'name'), type: 'os' })),
    ...own.map((iso) => ({ ...fieldsOf(iso, 'id', 'name'), type: 'useriso' })),
  ];
}

/** `@source API §2 Deletion results` `@assumption A18` */
export function billableIps(ips: readonly Ip[], readings: Readings): unknown[] {
  switch (readings.billableIps) {
    case 'addresses':
      return ips.map((ip) => ip.address);
    case 'objects':
      return ips.map(ipView);
    case 'ids':
      return ips.map((ip) => ip.id);
  }
}
