import type { ResourceKind } from '../core/kind.ts';
import type { KindName } from '../core/kind-facts.ts';
import { backup } from './backup.ts';
import { backupPolicy } from './backup-policy.ts';
import { drive } from './drive.ts';
import { firewall } from './firewall.ts';
import { ip } from './ip.ts';
import { iso } from './iso.ts';
import { network } from './network.ts';
import { networkInterface } from './network-interface.ts';
import { server } from './server.ts';
import { serverImage } from './server-image.ts';

/**
 * Every kind of resource. Operations that are ready at the same time are sent in
 * this order: parents first, and a firewall before network interfaces, because its server is exposed until then.
 */
const registry = {
  network,
  ip,
  iso,
  server,
  firewall,
  network_interface: networkInterface,
  backup,
  backup_policy: backupPolicy,
  drive,
  server_image: serverImage,
} satisfies Readonly<Record<KindName, unknown>>;

/** The kinds by name. */
export const kinds = new Map(Object.entries(registry)) as unknown as ReadonlyMap<KindName, ResourceKind>;
