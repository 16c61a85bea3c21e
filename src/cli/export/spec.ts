import type { BackupPolicy, Firewall, FirewallRule, Network } from '../../core/resources.ts';
import type { Names } from './names.ts';
import type { FoundServer, Inventory } from './survey.ts';

/** One entry of the file, with what the API could not tell, for a comment above it. */
export interface ExportedEntry {
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly notes: readonly string[];
}

/** The file as a value. `left_out` is there and cannot be in the file. */
export interface ExportedSpec {
  readonly projectId: number;
  readonly head: readonly string[];
  readonly networks: readonly ExportedEntry[];
  readonly ips: readonly ExportedEntry[];
  readonly isos: readonly ExportedEntry[];
  readonly servers: readonly ExportedEntry[];
  readonly leftOut: readonly string[];
}

/**
 * The live project as a spec. Every entry carries its id, so that it is bound and never
 * made; only what was read is declared, so that it plans nothing but `adopt`.
 */
export function specOf(inventory: Inventory, names: Names): ExportedSpec {
  const { project, ips } = inventory;
  const leftOut: string[] = [];
  const servers = inventory.servers.map((server) => ({
    server,
    name: names.of('servers', 'server', server.id, [server.shown?.name, `server-${server.id}`]),
  }));
  const networks = exportNetworks(inventory.networks, names, leftOut);
  const holder = new Map(
    servers.flatMap(({ server, name }) => server.ips.map(({ id }) => [id, name] as const)),
  );
  const ipName = new Map(
    ips.map(({ id, address, primary }) => {
      const plain = `ip-${address.replaceAll('.', '-')}`;
      return [id, names.of('ips', 'ip', id, [primary ? holder.get(id) : undefined, plain])] as const;
    }),
  );
  return {
    projectId: project.id,
    head: headOf(inventory),
    networks: networks.map(({ entry }) => entry),
    ips: ips.map(({ id, address, server_id }) => ({
      name: ipName.get(id) ?? '',
      fields: { id },
      notes: [server_id === null ? `${address}: attached to nothing, and billed` : address],
    })),
    isos: exportIsos(inventory, names, leftOut),
    servers: servers.map(({ server, name }) => exportServer(server, name, networks, ipName)),
    leftOut,
  };
}

function headOf({ project, networks, servers, complete }: Inventory): string[] {
  const counted = networks.flatMap(({ id, name, server_count }) => {
    const found = servers.filter(({ cards }) => cards.some((card) => card.network_id === id)).length;
    return (server_count ?? 0) > found
      ? [`Network ${name} counts ${server_count} servers, and only ${found} of them could be found.`]
      : [];
  });
  return [
    `Project ${project.id} (${project.name}, ${project.status}), as it was found. Planning this file gives nothing but adopt.`,
    ...(complete
      ? []
      : [
          'Servers were found by their public addresses: the documented API has no list of servers. One without an',
          'address is missing here; an API profile with list_servers finds it.',
          ...counted,
        ]),
    'Not shown by the API, and so not here: where an ISO came from, SSH keys, tags, data disks, the router,',
    complete
      ? 'and the type, image and size of a server.'
      : 'and the name, type, image and size of a server. An entry without `id:` needs those, one with it does not.',
  ];
}

interface ExportedNetwork {
  readonly network: Network;
  readonly entry: ExportedEntry;
}

function exportNetworks(networks: readonly Network[], names: Names, leftOut: string[]): ExportedNetwork[] {
  const seen: Network[] = [];
  return networks.flatMap((network): ExportedNetwork[] => {
    const { id, name, cidr, is_default } = network;
    if (seen.some((each) => each.name.trim() === name.trim())) {
      leftOut.push(`network ${id} (${cidr}): a second one named ${name}, and a file names each once`);
      return [];
    }
    const clash = seen.find((each) => overlap(each.cidr, cidr));
    seen.push(network);
    const key = names.of('networks', 'network', id, [name]);
    const named = key === name.trim() ? {} : { name: name.trim() };
    const entry = is_default
      ? {
          name: key,
          fields: { id, managed: false, ...named },
          notes: [`${cidr}: the default network is never touched`],
        }
      : {
          name: key,
          fields: { id, ...named, ...(clash === undefined ? { cidr } : {}) },
          notes:
            clash === undefined
              ? []
              : [`cidr ${cidr} overlaps with that of ${clash.name}, so it is not compared`],
        };
    return [{ network, entry }];
  });
}

function exportIsos({ isos }: Inventory, names: Names, leftOut: string[]): ExportedEntry[] {
  const seen = new Set<string>();
  return isos.flatMap(({ id, name, download, reason }) => {
    const plain = name.trim();
    if (download === 'failed' || seen.has(plain)) {
      const why =
        download === 'failed'
          ? `its download failed: ${reason ?? 'no reason given'}`
          : 'a second one of that name';
      leftOut.push(`ISO ${id} (${plain}): ${why}`);
      return [];
    }
    seen.add(plain);
    const key = names.of('isos', 'iso', id, [plain]);
    return [{ name: key, fields: { id, ...(key === plain ? {} : { name: plain }) }, notes: [] }];
  });
}

function exportServer(
  { id, shown, ips, cards, firewall, policy, backups }: FoundServer,
  name: string,
  networks: readonly ExportedNetwork[],
  ipName: ReadonlyMap<number, string>,
): ExportedEntry {
  const [first, ...further] = ips;
  const inside = cards.filter((card) => !card.public && card.network_id !== null);
  const cardNames = inside.map(
    (card) => networks.find(({ network }) => network.id === card.network_id)?.entry.name,
  );
  const known = [...new Set(cardNames.filter((each) => each !== undefined))];
  const { plan_id, cores, memory_mb, disk_gb } = shown ?? {};
  const size = plan_id === undefined ? { cores, memory_mb, disk_gb } : { plan_id };
  const rules = firewall === undefined ? undefined : exportFirewall(firewall);
  return {
    name,
    fields: defined({
      id,
      name: shown === undefined || shown.name.trim() === name ? undefined : shown.name.trim(),
      ...size,
      public_ipv4: first && { ip: ipName.get(first.id) },
      network_interfaces: known.length === 0 ? undefined : known,
      firewall: rules?.fields,
      backup_policy: policy && exportPolicy(policy),
    }),
    notes: [
      ...(further.length === 0 ? [] : [`also holds ${further.map(({ address }) => address).join(', ')}`]),
      ...(known.length === inside.length
        ? []
        : ['has several cards in one network, or one in a network that is not here']),
      ...(rules?.notes ?? []),
      ...(backups === 0 ? [] : [`${backups} ${backups === 1 ? 'backup' : 'backups'}, billed`]),
    ],
  };
}

const shownRuleFields = ['direction', 'action', 'enabled', 'protocol', 'destination_port', 'description'];

function exportFirewall({ enabled, policy_in, policy_out, rules }: Firewall) {
  const extra = [...new Set(rules.flatMap((rule) => Object.keys(rule)))].filter(
    (field) => !shownRuleFields.includes(field),
  );
  return {
    fields: { enabled, policy_in, rules: rules.map(exportRule) },
    notes: [
      ...(policy_out === null || policy_out === 'accept'
        ? []
        : [`policy_out is ${policy_out}, which the API does not take back`]),
      ...(extra.length === 0
        ? []
        : [`its rules also carry ${extra.join(', ')}, which the API's document does not show`]),
    ],
  };
}

function exportRule(rule: FirewallRule): Record<string, unknown> {
  const entries = shownRuleFields.map((field) => [field, rule[field]] as const);
  return Object.fromEntries(
    entries.filter(([, value]) => value !== undefined && value !== null && value !== ''),
  );
}

const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

/** A policy that the file's own schema would refuse is left out. */
function exportPolicy({ enabled, days: on, hour, minute, keep }: BackupPolicy) {
  const fits =
    on.every((day) => days.includes(day)) &&
    hour >= 0 &&
    hour < 24 &&
    minute >= 0 &&
    minute < 60 &&
    keep >= 1;
  return fits ? { enabled, days: [...on], hour, minute, keep } : undefined;
}

function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function overlap(a: string, b: string): boolean {
  const [one, other] = [range(a), range(b)];
  return one !== undefined && other !== undefined && one.start <= other.end && other.start <= one.end;
}

function range(cidr: string) {
  const [dotted = '', bits = ''] = cidr.trim().split('/');
  const groups = dotted.split('.').map(Number);
  if (groups.length !== 4 || groups.some((each) => !Number.isInteger(each))) return undefined;
  const size = 2 ** (32 - Number(bits));
  const address = groups.reduce((sum, each) => sum * 256 + each, 0);
  const start = address - (address % size);
  return { start, end: start + size - 1 };
}
