import { z } from 'zod';
import type { EntryFields } from '../../core/desired.ts';
import type { Seen } from '../../core/kind.ts';
import type { EntryIssue } from '../../core/kind-entry.ts';
import type { Ip, NetworkInterface, Server } from '../../core/resources.ts';

/** A server, with the parts of its entry that are no resources of their own. */
export type ServerEntry = Readonly<z.infer<typeof serverSchema>> &
  Pick<EntryFields, 'public_ipv4'> & { readonly name: string };

/**
 * There is no documented read of a server: it exists while its network interfaces answer 200 or an
 * address is attached to it, and is gone when neither is true. If the profile enables the
 * undocumented reads, they count as well, and show the fields to compare.
 */
export interface ServerObserved extends Seen {
  readonly interfaces: readonly NetworkInterface[] | undefined;
  readonly addresses: readonly Ip[];
  /** The server in the profile's reads. */
  readonly shown: Server | undefined;
  /**
   * The number of backups; read only if the server may be deleted, because no read shows them afterwards. @assumption
   * A42
   */
  readonly backups: number | undefined;
}

/** The sizes of slider types. */
export const sliders = ['cores', 'memory_mb', 'disk_gb'] as const;

const text = z.string().trim().min(1);
const id = z.int().min(1);
const size = id.optional();

export const serverSchema = z.strictObject({
  name: text.optional().describe('Name in the API. Default: the name of the entry.'),
  server_type: z.union([text, id]).optional().describe('The type of the server: its id or name.'),
  image: text.optional().describe('The image: its id or name. It must be an image of the server type.'),
  cores: size.describe('Number of cores, for server types with free sizes.'),
  memory_mb: size.describe('Memory in MB, for server types with free sizes.'),
  disk_gb: size.describe('Disk in GB, for server types with free sizes.'),
  plan_id: size.describe('Id of the plan, for server types with plans.'),
  gpu_package: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
    .optional()
    .describe(
      'For server types with packages of graphics cards: a package, or a list in order of preference.',
    ),
  ssh_keys: z
    .array(id)
    .optional()
    .describe('Ids of SSH keys of the account, for the creation of the server only.'),
  public_ipv4: z
    .union([
      z.strictObject({ new: z.literal(true) }),
      z.strictObject({ reuse: z.literal(true) }),
      z.strictObject({ ip: z.string().min(1) }),
    ])
    .optional()
    .describe(
      '{new: true}: a new address. {reuse: true}: any free address of the project. {ip: NAME}: the entry NAME under ips. Without this field: no public address.',
    ),
  gpus: size.describe('Number of graphics cards. Not possible with gpu_package.'),
  disk_type: z.string().min(1).optional().describe('Type of the disk. Not possible with gpu_package.'),
  replace: z
    .union([
      z.enum(['never', 'allowed']),
      z.strictObject({
        order: z
          .enum(['create_first', 'delete_first'])
          .optional()
          .describe(
            'create_first: the old server is deleted once the new one is complete. delete_first: the old server is deleted first. Default: create_first, unless the new server needs the address or the graphics cards of the old one.',
          ),
        at_once: size.describe('How many servers may be replaced at the same time. Default: 1.'),
      }),
    ])
    .optional()
    .meta({
      description:
        'Whether vdcsync may replace the server, or make its disk smaller. {order: ..., at_once: ...} permits it and says how.',
      default: 'never',
    }),
  keep_ip: z.boolean().optional().meta({
    description: 'true: the address of {new: true} stays when the server is deleted, and stays billed.',
    default: false,
  }),
});

const noSize = 'the server has no size: give cores, memory_mb and disk_gb, or plan_id, or gpu_package';

/** Exactly one of the three sizing modes, and no field that packaged types refuse. @source API §4 @assumption A31 */
export function checkSizing(entry: ServerEntry): readonly EntryIssue[] {
  const given = sliders.filter((field) => entry[field] !== undefined);
  const modes = [
    ...(given.length > 0 ? [given.join(', ')] : []),
    ...(entry.plan_id === undefined ? [] : ['plan_id']),
    ...(entry.gpu_package === undefined ? [] : ['gpu_package']),
  ];
  const refused =
    entry.gpu_package === undefined
      ? []
      : (['gpus', 'disk_type'] as const).filter((field) => entry[field] !== undefined);
  const severalSizes = `${modes.join(' and ')} exclude each other: a server is sized by cores, memory_mb and disk_gb, or by plan_id, or by gpu_package`;
  return [
    ...(modes.length > 1 ? [{ path: [sliders[0]], message: severalSizes }] : []),
    ...(modes.length === 0 && entry.server_type !== undefined ? [{ path: [], message: noSize }] : []),
    ...refused.map((field) => ({
      path: [field],
      message: `a server with \`gpu_package\` cannot have ${field}`,
    })),
  ];
}
