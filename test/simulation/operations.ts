import type { WriteName } from '../../src/core/ports.ts';
import { type ApiProfile, documentedProfile } from '../../src/core/profile.ts';
import { loadProfile, type Profile } from '../../src/emulator/profile.ts';
import type { TaskEffect } from '../../src/emulator/world.ts';

/** How a write is met with in stories. */
interface Write {
  /** The spec that needs it, by its name among the subjects. */
  readonly subject: string;
  /** Its name in the emulator. */
  readonly name: string;
  /** Its boundary. */
  readonly path: string;
  /** Answered with a task. @source API §4 */
  readonly task?: true;
  /** An old key can make it again: deletions that took effect are never sent again. */
  readonly creates?: true;
  /** Every send has a key of its own, so that none is replayed. */
  readonly freshKeys?: true;
  /** Only a profile opens it. */
  readonly profile?: true;
}

/** Every write that a run may send: the one list that faults, drills and coverage go by. */
export const writes = {
  allocate_ip: { subject: 'ip', name: 'allocate_ip', path: 'POST /ips', creates: true },
  release_ip: { subject: 'ip', name: 'release_ip', path: 'DELETE /ips/{id}' },
  add_iso: { subject: 'iso', name: 'add_iso', path: 'POST /isos', task: true, creates: true },
  delete_iso: { subject: 'iso', name: 'delete_iso', path: 'DELETE /isos/{id}' },
  create_network: {
    subject: 'network',
    name: 'create_network',

    path: 'POST /networks',
    task: true,
    creates: true,
  },
  delete_network: { subject: 'network', name: 'delete_network', path: 'DELETE /networks/{id}', task: true },
  create_server: {
    subject: 'server',
    name: 'create_server',

    path: 'POST /servers',
    task: true,
    creates: true,
  },
  delete_server: { subject: 'server', name: 'delete_server', path: 'DELETE /servers/{id}', task: true },
  add_network_interface: {
    subject: 'parts',
    name: 'add_network_interface',

    path: 'POST /servers/{id}/network-interfaces',
    task: true,
    creates: true,
  },
  put_firewall: {
    subject: 'parts',
    name: 'replace_firewall',

    path: 'PUT /servers/{id}/firewall',
    freshKeys: true,
  },
  take_backup: {
    subject: 'parts',
    name: 'take_backup',

    path: 'POST /servers/{id}/backups',
    creates: true,
  },
  insert_iso: {
    subject: 'drive',
    name: 'insert_iso',
    path: 'PUT /servers/{id}/iso',
    freshKeys: true,
    profile: true,
  },
  eject_iso: {
    subject: 'drive',
    name: 'eject_iso',
    path: 'DELETE /servers/{id}/iso',
    freshKeys: true,
    profile: true,
  },
  delete_backup: {
    subject: 'backups',
    name: 'delete_backup',
    path: 'DELETE /servers/{id}/backups/{id}',
    profile: true,
  },
  take_server_image: {
    subject: 'image',
    name: 'take_server_image',
    path: 'POST /server-images',
    task: true,
    profile: true,
  },
  remove_network_interface: {
    subject: 'cards',
    name: 'remove_network_interface',
    path: 'DELETE /servers/{id}/network-interfaces/{id}',
    task: true,
    profile: true,
  },
  update_backup_policy: {
    subject: 'policy',
    name: 'update_backup_policy',
    path: 'PUT /servers/{id}/backup-policy',
    freshKeys: true,
    profile: true,
  },
  resize_server: {
    subject: 'sizes',
    name: 'resize_server',
    path: 'PUT /servers/{id}/resources',
    profile: true,
  },
} as const satisfies Readonly<Record<WriteName, Write>>;
type Name = keyof typeof writes;

export const operations = Object.keys(writes) as readonly Name[];

/** The writes of the list that have the property. */
export function operationsWith(fits: (write: Write) => boolean | undefined): readonly Name[] {
  return operations.filter((name) => fits(writes[name]));
}

/** The write that starts a task of that sort; a change that only a profile opens may be any of several. */
export const writeOfTask: Readonly<Record<TaskEffect['kind'], Name | undefined>> = {
  create_server: 'create_server',
  delete_server: 'delete_server',
  create_network: 'create_network',
  delete_network: 'delete_network',
  add_card: 'add_network_interface',
  remove_card: 'remove_network_interface',
  add_iso: 'add_iso',
  take_image: 'take_server_image',
  change_server: undefined,
};

/** Operations by the name that the emulator gives them. */
export const writeNames = operationsWith(({ profile }) => !profile).map((name) => writes[name].name);

const opened = Object.fromEntries(operationsWith(({ profile }) => profile).map((name) => [name, {}]));

/** The profile that both sides use in a story with a profile. */
export const clientProfile: ApiProfile = { ...documentedProfile, operations: opened };
export const serviceProfile: Profile = loadProfile(JSON.stringify({ operations: opened }));
