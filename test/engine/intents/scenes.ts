import type { ResourceKey } from '../../../src/core/keys.ts';
import { profiled } from '../../support/profiled.ts';
import { rig, sliders as slider } from '../../support/rig.ts';

/** One operation of each sort, in the smallest spec that asks for it. */
export interface Scene {
  /** The emulator's name of the operation. */
  readonly operation: string;
  /** Applied without faults first. */
  readonly before?: string;
  readonly spec: string;
  /** Ending in a dot: of the one that is bound under such a key by then. */
  readonly key: string;
  /** Only a profile opens it. */
  readonly profile?: true;
  /** Days after which `before` is applied once more. */
  readonly days?: number;
}

const settings = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
const network = 'networks:\n  backend: {cidr: 10.20.0.0/24}\n';
const nothing = settings;
const server = (more = '') =>
  `${settings}servers:\n  web: {${slider}, public_ipv4: {new: true}${more === '' ? '' : `, ${more}`}}\n`;
const firewall =
  'firewall: {enabled: true, policy_in: drop, rules: [{direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22"}]}';

const rescue = 'isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\n';
const schedule = 'backup_policy: {enabled: true, days: [mon], hour: 3, minute: 0, keep: 4}';

export const scenes: Readonly<Record<string, Scene>> = {
  'create a network': { operation: 'create_network', spec: settings + network, key: 'networks.backend' },
  'allocate an address': {
    operation: 'allocate_ip',
    spec: `${settings}ips:\n  web: {server_type_id: 3}\n`,
    key: 'ips.web',
  },
  'add an ISO': {
    operation: 'add_iso',
    spec: `${settings}isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\n`,
    key: 'isos.rescue',
  },
  'create a slider server': { operation: 'create_server', spec: server(), key: 'servers.web' },
  'create a plan server': {
    operation: 'create_server',
    spec: `${settings}servers:\n  web: {server_type: plans-1, image: debian-13, plan_id: 51, public_ipv4: {reuse: true}}\n`,
    key: 'servers.web',
  },
  'create a GPU server without an address': {
    operation: 'create_server',
    spec: `${settings}servers:\n  web: {server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: [l40s-2, l40s-1]}\n`,
    key: 'servers.web',
  },
  'add a card': {
    operation: 'add_network_interface',
    before: server() + network,
    spec: server('network_interfaces: [backend]') + network,
    key: 'servers.web.network_interfaces.backend',
  },
  'put a firewall': {
    operation: 'replace_firewall',
    before: server(),
    spec: server(firewall),
    key: 'servers.web.firewall',
  },
  'take a backup': {
    operation: 'take_backup',
    before: server(),
    spec: server('backup: {max_age: 24h}'),
    key: 'servers.web.backup',
  },
  'delete a server': { operation: 'delete_server', before: server(), spec: nothing, key: 'servers.web' },
  'release an address': {
    operation: 'release_ip',
    before: `${settings}ips:\n  web: {server_type_id: 3}\n`,
    spec: nothing,
    key: 'ips.web',
  },
  'delete an ISO': {
    operation: 'delete_iso',
    before: `${settings}isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\n`,
    spec: nothing,
    key: 'isos.rescue',
  },
  'delete a network': {
    operation: 'delete_network',
    before: settings + network,
    spec: nothing,
    key: 'networks.backend',
  },
  'insert an ISO': {
    operation: 'insert_iso',
    before: server() + rescue,
    spec: server('iso: rescue') + rescue,
    key: 'servers.web.iso',
    profile: true,
  },
  'eject an ISO': {
    operation: 'eject_iso',
    before: server('iso: rescue') + rescue,
    spec: server('iso: null') + rescue,
    key: 'servers.web.iso',
    profile: true,
  },
  'take a server image': {
    operation: 'take_server_image',
    before: server(),
    spec: `${server()}server_images:\n  golden: {server: web}\n`,
    key: 'server_images.golden',
    profile: true,
  },
  'delete a backup': {
    operation: 'delete_backup',
    before: server('backup: {max_age: 24h, keep: 2}'),
    days: 2,
    spec: server('backup: {max_age: 90d, keep: 1}'),
    key: 'servers.web.backup.',
    profile: true,
  },
  'remove a card': {
    operation: 'remove_network_interface',
    before: server('network_interfaces: [backend]') + network,
    spec: server() + network,
    key: 'servers.web.network_interfaces.backend',
    profile: true,
  },
  'change a backup policy': {
    operation: 'update_backup_policy',
    before: server(schedule),
    spec: server(schedule.replace('hour: 3', 'hour: 5')),
    key: 'servers.web.backup_policy',
    profile: true,
  },
  'resize a server': {
    operation: 'resize_server',
    before: server(),
    spec: server().replace('cores: 1', 'cores: 2'),
    key: 'servers.web',
    profile: true,
  },
};

/** Everything there that the scene's operation needs, and the key that it is about. */
export async function prepare({ before, days, key, profile }: Scene) {
  const played = profile === true ? profiled() : rig();
  if (before !== undefined) await played.apply(before);
  if (before !== undefined && days !== undefined) {
    await played.clock.advance(days * 24 * 3_600_000);
    await played.apply(before);
  }
  const bound = (await played.store.bindings()).find((each) => each.key.startsWith(key));
  return { played, key: (key.endsWith('.') ? bound?.key : key) as ResourceKey };
}
