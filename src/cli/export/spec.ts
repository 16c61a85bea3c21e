import { given } from '../../core/json.ts';
import type { BackupPolicy, Firewall, FirewallRule, Iso, Network, Server } from '../../core/resources.ts';
import { backupPolicySchema } from '../../reconcilers/backup-policy.ts';
import { cidrProblem, networkNamePattern, normalCidr, parseCidr } from '../../reconcilers/network.ts';
import { present } from '../render/values.ts';
import type { FoundServer, Inventory } from './inventory.ts';
import type { Names } from './names.ts';

/** One entry of the spec. `notes` lists values that the API does not show, for a comment above the entry. */
export interface ExportedEntry {
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly notes: readonly string[];
}

/** The spec as a value. `leftOut` has the live resources that the spec cannot contain. */
export type ExportedSpec = ReturnType<typeof exportedSpec>;

/**
 * The live project as a spec. Every entry carries its id, so that an apply binds the resource and never
 * creates it. The entry declares only values that were read, so that it plans nothing but `adopt`.
 */
export function exportedSpec(inventory: Inventory, names: Names) {
  const { project, ips } = inventory;
  const leftOut: string[] = [];
  const servers = inventory.servers.map((server) => ({
    server,
    name: names.of('server', server.id, [server.shown?.name]),
  }));
  const networks = exportNetworks(inventory.networks, names);
  const isos = exportIsos(inventory, names, leftOut);
  const isoName = new Map(isos.map(({ fields, name }) => [String(fields.id), name]));
  const named = servers.filter(({ server }) => !names.isNumbered('server', server.id));
  const holder = new Map(
    named.flatMap(({ server, name }) => server.ips.map(({ id }) => [id, name] as const)),
  );
  const ipName = new Map(
    ips.map(({ id, address, primary }) => {
      const plain = `ip-${address.replaceAll('.', '-')}`;
      return [id, names.of('ip', id, [primary ? holder.get(id) : undefined, plain])] as const;
    }),
  );
  return {
    projectId: project.id,
    head: headOf(inventory, named.length < servers.length),
    // By the maps of the spec.
    entries: {
      networks,
      ips: ips.map(({ id, address, server_id }) => ({
        name: ipName.get(id) ?? '',
        fields: { id },
        notes: [server_id === null ? `${address}: detached, and billed` : address],
      })),
      isos,
      servers: servers.map(({ server, name }) =>
        exportServer(server, { name, called: names.madeAs(server.id) }, networks, ipName, isoName),
      ),
    },
    leftOut,
  };
}

function headOf({ project, networks, servers, complete }: Inventory, isNumbered: boolean): string[] {
  const counted = networks.map(({ id, name, server_count }) => {
    const found = servers.filter(({ interfaces }) =>
      interfaces.some((each) => each.network_id === id),
    ).length;
    const isMissing = (server_count ?? 0) > found;
    return (
      isMissing && `Network ${name} has ${server_count} servers, and this spec has only ${found} of them.`
    );
  });
  const shownOfAll = (field: keyof Server) =>
    servers.length > 0 && servers.every(({ shown }) => shown?.[field] !== undefined);
  const isSized = servers.length > 0 && servers.every(({ shown }) => shown?.plan_id ?? shown?.cores);
  const ofServer = present('type', !shownOfAll('name') && 'name', !isSized && 'size').join(', ');
  return present(
    `Project ${project.id} (${project.name}, ${project.status}), as found. With this spec and no state, vdcsync plan shows adoptions only.`,
    !complete && [
      'Servers were found by their public addresses: the documented API has no list of servers. A server',
      'without an address is missing here, unless the API profile has list_servers.',
      ...present(...counted),
    ],
    'Not shown by the API, so not in this spec:',
    '- the URL of an ISO',
    !shownOfAll('iso') && '- the ISO in a drive (iso)',
    '- images taken from servers (server_images)',
    '- SSH keys, tags, data disks, the router',
    `- the ${ofServer} and image of a server`,
    isNumbered && 'Before the first apply, you can rename each `server-ID` to the name of that server.',
    'To add a resource, write an entry without `id:` and with all fields that a creation needs.',
    'This spec contains no backups; existing backups are still billed. To take backups, write `backup: {max_age: 24h}` in a server.',
  );
}

function exportNetworks(networks: readonly Network[], names: Names): ExportedEntry[] {
  const seen: Network[] = [];
  return networks.map((network): ExportedEntry => {
    const { id, cidr, is_default } = network;
    const plain = network.name.trim();
    const key = names.of('network', id, [plain]);
    const unnamed = whyUnnamed(plain, seen);
    const clash = seen.find((each) => overlap(each.cidr, cidr));
    seen.push(network);
    const named = key === plain ? {} : { name: plain };
    if (is_default || unnamed !== undefined) {
      const why = is_default ? 'vdcsync never changes the default network' : `not managed, as ${unnamed}`;
      const fields = { id, managed: false, ...(unnamed === undefined ? named : {}) };
      return { name: key, fields, notes: [`${cidr}: ${why}`] };
    }
    const why = clash === undefined ? cidrProblem(normalCidr(cidr)) : `overlaps with that of ${clash.name}`;
    const fields = { id, ...named, ...(why === undefined ? { cidr: normalCidr(cidr) } : {}) };
    const notes = why === undefined ? [] : [`cidr ${cidr} is not compared: ${why}`];
    return { name: key, fields, notes };
  });
}

/** The reason why a spec cannot contain the name of the network. Servers can still reference an entry that has only an id. */
function whyUnnamed(name: string, seen: readonly Network[]): string | undefined {
  if (!networkNamePattern.test(name)) return `its name, ${JSON.stringify(name)}, is not possible in a spec`;
  return seen.some((each) => each.name.trim() === name)
    ? `another one is named ${name} too, and names are unique in a spec`
    : undefined;
}

function exportIsos({ isos }: Inventory, names: Names, leftOut: string[]): ExportedEntry[] {
  const seen = new Set<string>();
  return isos.flatMap((iso) => {
    const { id } = iso;
    const plain = iso.name.trim();
    const why = whyLeftOut(iso, plain, seen);
    if (why !== undefined) {
      leftOut.push(`ISO ${id} (${plain}): ${why}`);
      return [];
    }
    seen.add(plain);
    const key = names.of('iso', id, [plain]);
    return [{ name: key, fields: { id, ...(key === plain ? {} : { name: plain }) }, notes: [] }];
  });
}

function whyLeftOut({ download, reason }: Iso, plain: string, seen: ReadonlySet<string>) {
  if (download === 'failed') return `its download failed: ${reason ?? 'no reason given'}`;
  if (seen.has(plain)) return 'another ISO has that name';
  return plain.length >= 1 && plain.length <= 50
    ? undefined
    : 'the name of an ISO has 1 to 50 characters in a spec';
}

function exportServer(
  { id, shown, ips, interfaces: all, firewall, policy }: FoundServer,
  { name, called }: { readonly name: string; readonly called: string | undefined },
  networks: readonly ExportedEntry[],
  ipName: ReadonlyMap<number, string>,
  isoName: ReadonlyMap<string, string>,
): ExportedEntry {
  const [first, ...further] = ips;
  const interfaces = all.filter((each) => !each.public && each.network_id !== null);
  const networkNames = interfaces.map(
    (each) => networks.find(({ fields }) => fields.id === each.network_id)?.name,
  );
  const known = [...new Set(present(...networkNames))];
  const { plan_id, cores, memory_mb, disk_gb } = shown ?? {};
  const size = plan_id === undefined ? { cores, memory_mb, disk_gb } : { plan_id };
  const rules = firewall === undefined ? undefined : exportFirewall(firewall);
  const shownName = shown?.name.trim() ?? called;
  const schedule = policy && exportPolicy(policy);
  return {
    name,
    fields: given({
      id,
      name: shownName === name || shownName === '' ? undefined : shownName,
      ...size,
      public_ipv4: first && { ip: ipName.get(first.id) },
      network_interfaces: known.length === 0 ? undefined : known,
      firewall: rules?.fields,
      backup_policy: schedule,
      // An empty drive is not pinned: vdcsync must not remove a disc that an operator inserts for an hour.
      iso: shown?.iso == null ? undefined : (isoName.get(shown.iso) ?? shown.iso),
    }),
    notes: present(
      further.length > 0 && `also has ${further.map(({ address }) => address).join(', ')}`,
      known.length < interfaces.length &&
        'has several network interfaces in one network, or a network interface in a network that is missing here',
      rules?.notes,
      policy !== undefined &&
        schedule === undefined &&
        `its backup policy is not possible in a spec: ${JSON.stringify(policy)}`,
    ),
  };
}

/** Fields of a rule that the document shows, with the sort of value that a spec takes. @source API §2 */
const ruleFields = {
  direction: 'string',
  action: 'string',
  enabled: 'boolean',
  protocol: 'string',
  destination_port: 'string',
  description: 'string',
} as const;

function exportFirewall({ enabled, policy_in, policy_out, rules }: Firewall) {
  const shown = rules.map(exportRule);
  const extra = rules.flatMap((rule, at) => {
    const left = Object.entries(rule)
      .filter(([name, value]) => !isEmpty(value) && !Object.hasOwn(shown[at] ?? {}, name))
      .map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
    return left.length === 0 ? [] : `rule ${at + 1} also has ${left.join(', ')}`;
  });
  return {
    fields: given({ enabled, policy_in: policy_in.trim() === '' ? undefined : policy_in, rules: shown }),
    notes: present(
      policy_out !== null &&
        policy_out !== 'accept' &&
        `policy_out is ${policy_out}, which the API does not document how to set`,
      extra.length > 0 && `undocumented fields, which vdcsync does not compare: ${extra.join('; ')}`,
    ),
  };
}

function exportRule(rule: FirewallRule): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(ruleFields).flatMap(([name, type]) =>
      typeof rule[name] === type && !isEmpty(rule[name]) ? [[name, rule[name]]] : [],
    ),
  );
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** A policy that the spec's own schema would refuse is left out. */
function exportPolicy({ enabled, days, hour, minute, keep }: BackupPolicy) {
  return backupPolicySchema.safeParse({ enabled, days, hour, minute, keep }).data;
}

function overlap(a: string, b: string): boolean {
  const [one, other] = [parseCidr(a), parseCidr(b)];
  return one !== undefined && other !== undefined && one.start <= other.end && other.start <= one.end;
}
