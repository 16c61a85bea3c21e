import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { ConfigError } from '../../core/errors.ts';
import type { ReadPort } from '../../core/ports.ts';
import { loadSpec } from '../../spec/load.ts';
import { inSession } from '../compose.ts';
import { type ExitCode, exitCodes, usageError } from '../exit.ts';
import { type CommonFlags, defaultSpec } from '../flags.ts';
import { type Io, packaged, specSchema } from '../terminal.ts';
import { writeOut } from './output.ts';

export interface InitFlags extends Omit<CommonFlags, 'file'> {
  readonly out?: string;
  readonly project?: number;
}

/** The JSON Schema of the spec, next to it. */
const schemaFile = 'vdcsync.schema.json';

/** Writes a first spec to edit: a network, an address, and a server of a type that the project can order. */
export async function init(flags: InitFlags, io: Io): Promise<ExitCode> {
  const file = flags.out ?? defaultSpec;
  if (existsSync(resolve(io.cwd, file))) {
    throw new ConfigError(`${file} exists, and init does not overwrite it. Name another file with --out`);
  }
  const { project, server } = await projectAndServer(flags, io);
  const id = flags.project ?? project;
  if (id === undefined) {
    throw usageError('init does not know the project. Give --project ID, or set VDC_BASE_URL and VDC_TOKEN');
  }
  const text = specText(id, server);
  loadSpec([{ file, text }], {});
  writeOut(file, text, io);
  const ignored = join(dirname(file), '.gitignore');
  if (!existsSync(resolve(io.cwd, ignored))) writeOut(ignored, '# The state of vdcsync.\n.vdcsync/\n', io);
  const schema = join(dirname(file), schemaFile);
  if (!existsSync(resolve(io.cwd, schema))) writeOut(schema, packaged(specSchema), io);
  const more = file === defaultSpec ? '' : ` -f ${file}`;
  io.stderr.write(
    `vdcsync: ${file} is written. Edit it, and show the plan:\n  → vdcsync plan${flags.emulator ? ' --emulator' : ''}${more}\n`,
  );
  return exitCodes.done;
}

/** Type, image and size of the first server. */
type FirstServer = Readonly<Record<string, string | number>>;

const sliders = { cores: 2, memory_mb: 4096, disk_gb: 40 };
const usualServer: FirstServer = { server_type: 'sliders-1', image: 'ubuntu-24.04', ...sliders };

/** The project of the token and a server of its catalogue. A first spec can be written without the API. */
async function projectAndServer(
  flags: InitFlags,
  io: Io,
): Promise<{ project?: number; server: FirstServer }> {
  if (flags.emulator !== true && !io.env.VDC_BASE_URL) return { server: usualServer };
  return inSession(flags, io, { mode: 'read', projectId: flags.project ?? 4711 }, async ({ reads }) => ({
    project: (await reads.project()).id,
    server: await serverOnSale(reads),
  }));
}

async function serverOnSale(reads: ReadPort): Promise<FirstServer> {
  const types = await reads.serverTypes();
  const type = types.find((each) => each.pricing_mode === 'sliders') ?? types[0];
  if (type === undefined) return usualServer;
  const [images, pricing] = await Promise.all([reads.images(type.id), reads.pricing(type.id)]);
  const image = images.find((each) => each.type !== 'useriso')?.name ?? 'ubuntu-24.04';
  const plan = { plan_id: pricing.plans?.[0]?.id ?? 1 };
  const fixed = { gpu_package: pricing.gpu_packages[0]?.key ?? 'none' };
  const size = type.pricing_mode === 'plans' ? plan : type.pricing_mode === 'fixed' ? fixed : sliders;
  return { server_type: type.name, image, ...size };
}

function specText(project: number, server: FirstServer): string {
  return `# yaml-language-server: $schema=./${schemaFile}
# The resources of this project. \`vdcsync plan\` shows the changes, and \`vdcsync apply\` makes them.
version: 1

project: { id: ${project} }
# settings: { exclusive: true }  # if only vdcsync creates resources in this project

networks:
  backend: { cidr: 10.20.0.0/24 }

ips:
  web-1: {}

servers:
  web-1:
${stringify(server, { lineWidth: 0 }).replace(/^/gm, '    ').trimEnd()}
    # ssh_keys: [101]  # ids from the client area; used only when the server is created
    public_ipv4: { ip: web-1 }
    network_interfaces: [backend]
    firewall:
      enabled: true
      policy_in: drop
      rules:
        - { direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "80,443" }
`;
}
