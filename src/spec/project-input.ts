import type { z } from 'zod';
import type { backupSchema } from '../reconcilers/backup/copies.ts';
import type { backupPolicySchema } from '../reconcilers/backup-policy.ts';
import type { driveSchema } from '../reconcilers/drive.ts';
import type { firewallSchema } from '../reconcilers/firewall/rules.ts';
import type { ipSchema } from '../reconcilers/ip.ts';
import type { isoSchema } from '../reconcilers/iso.ts';
import type { networkSchema } from '../reconcilers/network.ts';
import type { networkInterfacesSchema } from '../reconcilers/network-interface.ts';
import type { serverSchema } from '../reconcilers/server/entry.ts';
import type { serverImageSchema } from '../reconcilers/server-image.ts';
import type { commonSchema, projectSchema, settingsSchema } from './schemas.ts';

type Input<Own extends z.ZodType, Id = number> = z.input<Own> & z.input<typeof commonSchema> & { id?: Id };
type Inputs<Value> = Record<string, Value>;

/** An entry under `servers`, with the resources inside the server. */
export type ServerInput = Input<typeof serverSchema> & {
  network_interfaces?: z.input<typeof networkInterfacesSchema>;
  firewall?: z.input<typeof firewallSchema>;
  backup?: z.input<typeof backupSchema>;
  backup_policy?: z.input<typeof backupPolicySchema>;
  iso?: z.input<typeof driveSchema>;
};

/** The spec as a value, before any default is filled in. */
export interface ProjectInput {
  version?: 1;
  project: z.input<typeof projectSchema>;
  settings?: z.input<typeof settingsSchema>;
  defaults?: { servers?: Omit<ServerInput, 'id' | 'name' | 'moved' | 'managed'> };
  networks?: Inputs<Input<typeof networkSchema>>;
  ips?: Inputs<Input<typeof ipSchema>>;
  isos?: Inputs<Input<typeof isoSchema, string>>;
  servers?: Inputs<ServerInput>;
  server_images?: Inputs<Input<typeof serverImageSchema, number | string>>;
}

/** The spec of a project, checked by the compiler. `vdcsync render FILE` prints it as YAML. */
export function defineProject(project: ProjectInput): ProjectInput {
  return { version: 1, ...project };
}
