import type { Readings } from './readings.ts';
import { timestamp } from './time.ts';
import { isLost, seenCards, seenIp } from './visibility.ts';
import type {
  Backup,
  BackupPolicy,
  Card,
  Firewall,
  Ip,
  Iso,
  Network,
  Project,
  Server,
  ServerType,
  Task,
} from './world.ts';

type View = Record<string, unknown>;

/** `@source API §2 Project` `@assumption A20` */
export function projectView(project: Project, readings: Readings): View {
  const status = {
    active: 'Active',
    suspended: 'Suspended',
    unpaid: readings.unpaidStatus,
  }[project.standing];
  return { id: project.id, name: project.name, status };
}

/** `@source API §2 Server` `@assumption A48` `@assumption A50` */
export function serverView(project: Project, server: Server, readings: Readings): View {
  const ips = project.ips.flatMap((ip) => {
    const seen = ip.serverId === server.id ? seenIp(project, ip, readings) : null;
    return seen === null ? [] : { isPrimary: ip.primary, seen };
  });
  return {
    id: server.id,
    name: server.name,
    status: server.status,
    power: server.power,
    ipv4: ips.find(({ isPrimary }) => isPrimary)?.seen.address ?? null,
    ips: ips.map(({ seen }) => ipView(seen)),
    ...(readings.serverFields === 'sizes'
      ? { cores: server.cores, memory_mb: server.memoryMb, disk_gb: server.diskGb, plan_id: server.planId }
      : {}),
    ...driveView(project, server, readings),
  };
}

/** `@assumption A50` */
function driveView(project: Project, { isoInDrive }: Server, readings: Readings): View {
  if (readings.driveField === 'none') return {};
  if (readings.driveField === 'iso_id') return { iso_id: isoInDrive };
  const iso = project.isos.find(({ id }) => id === isoInDrive);
  return { iso: iso === undefined ? null : { id: iso.id, name: iso.name } };
}

/** `@source API §2 Ip` */
export function ipView(ip: Ip): View {
  return {
    id: ip.id,
    address: ip.address,
    prefix: ip.prefix,
    gateway: ip.gateway,
    server_id: ip.serverId,
    primary: ip.primary,
  };
}

/** `@source API §2 Network` `@assumption A47` */
export function networkView(
  project: Project,
  network: Network,
  skipCount: boolean,
  readings: Readings,
): View {
  return {
    id: network.id,
    name: network.name,
    cidr: network.cidr,
    is_default: network.isDefault,
    server_count: skipCount ? readings.skippedServerCount : seenServersOn(project, network.id, readings),
    router: null,
  };
}

/** The servers that have an interface in the network, including servers in deletion. */
export function serversOn(project: Project, networkId: number): Server[] {
  return project.servers.filter((server) =>
    server.cards.some((card) => !card.public && card.networkId === networkId),
  );
}

function seenServersOn(project: Project, networkId: number, readings: Readings): number {
  const servers = project.servers.filter((server) => !isLost(project, server));
  return servers.filter((server) =>
    seenCards(project, server, readings).some((card) => !card.public && card.networkId === networkId),
  ).length;
}

/** `@source API §2 Network interface` `@assumption A53` */
export function cardView(server: Server, card: Card, { cardIps }: Readings): View {
  return {
    id: card.id,
    public: card.public,
    network_id: card.networkId,
    firewall: card.public && server.firewall.enabled,
    ips: cardIps === 'addresses' ? card.ips : card.ips.map((address) => ({ address })),
  };
}

/** `@source API §2 Firewall` `@assumption A32` */
export function firewallView(firewall: Firewall, readings: Readings): View {
  return {
    enabled: firewall.enabled,
    policy_in: firewall.policyIn,
    policy_out: firewall.policyOut,
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
    id: backup.id,
    server_id: backup.serverId,
    status: backup.status,
    size_bytes: backup.status === 'available' ? backup.sizeBytes : null,
    created_at: timestamp(backup.createdMs),
  };
}

/** `@source API §2 Backup policy` */
export function policyView(policy: BackupPolicy): View {
  return {
    enabled: policy.enabled,
    days: policy.days,
    hour: policy.hour,
    minute: policy.minute,
    keep: policy.keep,
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
  const common = { id: iso.id, name: iso.name, url: iso.url };
  return readings.isoFields === 'status/error'
    ? { ...common, status: iso.status, error: iso.failure }
    : { ...common, download_status: iso.status, reason: iso.failure };
}

/** `@source API §2 Server type` */
export function serverTypeView(type: ServerType): View {
  return {
    id: type.id,
    name: type.name,
    pricing_mode: type.pricingMode,
    gpu: type.gpu,
    description: type.description,
  };
}

/** Withdrawn packages are left out. `@source API §2 Server type pricing` `@assumption A54` */
export function pricingView(type: ServerType, { planList }: Pick<Readings, 'planList'>): View {
  const packages = type.packages.filter((sold) => !sold.withdrawn);
  return {
    server_type_id: type.id,
    pricing_mode: type.pricingMode,
    gpu_packages: packages.map((sold) => ({
      key: sold.key,
      name: sold.name,
      gpu_model: sold.gpuModel,
      gpu_count: sold.gpuCount,
      cores: sold.cores,
      memory_gb: sold.memoryGb,
      disk_gb: sold.diskGb,
      price: sold.price,
      backup_price: sold.backupPrice,
    })),
    ...(type.pricingMode === 'plans' && planList === 'shown'
      ? {
          plans: type.plans.map((plan) => ({
            id: plan.id,
            name: plan.name,
            cores: plan.cores,
            memory_mb: plan.memoryMb,
            disk_gb: plan.diskGb,
          })),
        }
      : {}),
    limits:
      type.pricingMode === 'sliders'
        ? {
            cores: { min: 1, max: 32 },
            memory_mb: { min: 512, max: 262_144 },
            disk_gb: { min: 10, max: 4096 },
          }
        : null,
  };
}

/** The type's system images and the project's own finished ISOs. `@source API §2 Server type image entry` */
export function imageViews(project: Project, type: ServerType): View[] {
  const own = project.isos.filter((iso) => iso.status === 'available');
  return [
    ...type.images.map((image) => ({ id: image.id, name: image.name, type: 'os' })),
    ...own.map((iso) => ({ id: iso.id, name: iso.name, type: 'useriso' })),
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
