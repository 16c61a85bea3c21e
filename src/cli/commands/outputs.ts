import { stringify } from 'yaml';
import { interfacesOf } from '../../core/attribute.ts';
import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { collections, factsOf } from '../../core/kind-facts.ts';
import type { Binding } from '../../core/state.ts';
import { didYouMeanKey } from '../../core/suggest.ts';
import { shellWord } from '../../core/text.ts';
import { refuseOtherProject } from '../../engine/observe.ts';
import { fromState, inSession } from '../compose.ts';
import { type ExitCode, exitCodes, usageError } from '../exit.ts';
import { type CommonFlags, type OutputFormat, outputFormats } from '../flags.ts';
import { isShown, type LiveFacts, type Outputs, outputsOf, type ServerOutput } from '../outputs/outputs.ts';
import { refuseNoState } from '../settings/own-state.ts';
import { readSpecWithState } from '../settings/spec-source.ts';
import type { Io } from '../terminal.ts';
import { writeOut } from './output.ts';

export interface OutputsFlags extends CommonFlags {
  readonly format?: OutputFormat;
  readonly key?: string;
  readonly offline?: boolean;
  readonly out?: string;
}

/** Addresses, ids and names of the managed resources, for other programs. Reads only. */
export async function outputs(flags: OutputsFlags, io: Io): Promise<ExitCode> {
  const desired = await readSpecWithState(flags, io);
  await refuseNoState(flags, io);
  const { info, bindings } = await fromState(flags, io, async (store) => ({
    info: await store.info(),
    bindings: await store.bindings(),
  }));
  const shown = flags.key === undefined ? bindings : withKey(flags.key, bindings);
  const live = flags.offline === true ? {} : { live: await readLive(flags, io, desired, shown) };
  const { resources: declared } = desired;
  const made = outputsOf({ projectId: info.projectId, declared, bindings, ...live }, flags.key);
  for (const { key, id } of shown.filter((each) => !isShown(each, live))) {
    io.stderr.write(
      `vdcsync: ${key} is left out, because the project has no server ${id}. \`vdcsync plan\` shows the difference.\n`,
    );
  }
  const format = flags.format ?? outputFormats[0];
  const needsAddress = format !== 'json' && format !== 'env';
  for (const server of needsAddress ? Object.values(made.servers) : []) {
    if (addressOf(server) !== undefined) continue;
    const why =
      flags.offline === true
        ? 'the state has no address of this server'
        : 'the API shows no address of this server';
    io.stderr.write(`vdcsync: ${server.key} is left out: ${why}\n`);
  }
  const text = writers[format](made);
  if (flags.out === undefined) io.stdout.write(text);
  else writeOut(flags.out, text, io);
  return exitCodes.done;
}

function withKey(key: string, bindings: readonly Binding[]): readonly Binding[] {
  const found = bindings.filter((each) => each.key === key);
  if (found.length > 0 && key.split('.').length === 2) return found;
  const near = didYouMeanKey(
    key,
    bindings.map((each) => each.key),
  );
  throw usageError(
    `--key ${key}: the state has no network, address, ISO, server or server image with this key${near === '' ? '.' : near} \`vdcsync status\` lists the managed resources.`,
  );
}

async function readLive(
  flags: CommonFlags,
  io: Io,
  desired: Desired,
  bindings: readonly Binding[],
): Promise<LiveFacts> {
  const { projectId, token } = desired;
  return inSession(flags, io, { mode: 'read', projectId, token }, async ({ clock, reads }) => {
    const at = clock.now();
    refuseOtherProject(desired, await reads.project());
    const [ips, networks] = await Promise.all([reads.ips(), reads.networks()]);
    const servers = bindings.filter(({ kind }) => factsOf(kind).container);
    const interfaces = await interfacesOf(
      servers.map(({ id }) => id),
      reads,
    );
    return { at, ips, networks, interfaces };
  });
}

/** They throw a ConfigError if two names of the spec become one name of the format. */
const writers: Readonly<Record<OutputFormat, (outputs: Outputs) => string>> = {
  json: (outputs) => `${JSON.stringify(outputs, null, 2)}\n`,
  env,
  ansible,
  'ssh-config': sshConfig,
};

/** `SERVERS_WEB_1_PUBLIC_IPV4=203.0.113.10`: the path of a value in the JSON, in capital letters. */
function env(outputs: Outputs): string {
  const values = leaves(Object.fromEntries(collections.map((each) => [each, outputs[each]]))).filter(
    ([path]) => path.at(-1) !== 'key',
  );
  const names = unique(
    values,
    ([path]) =>
      path
        .join('_')
        .toUpperCase()
        .replaceAll(/[^A-Z0-9]/g, '_'),
    ([path]) => path.join('.'),
  );
  return values.map(([, value], at) => `${names[at]}=${shellWord(value)}\n`).join('');
}

/** Every text inside a value, with its path. A list becomes one text with spaces; null is left out. */
function leaves(value: unknown, path: readonly string[] = []): (readonly [readonly string[], string])[] {
  if (typeof value === 'string') return [[path, value]];
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.length === 0 ? [] : [[path, value.join(' ')]];
  return Object.entries(value).flatMap(([name, each]) => leaves(each, [...path, name]));
}

/** An inventory file for `ansible-playbook -i`: each server, in a group for each of its networks. */
function ansible(outputs: Outputs): string {
  const servers = Object.entries(outputs.servers);
  const networks = [...new Set(servers.flatMap(([, each]) => Object.keys(each.network_interfaces)))].sort();
  const groups = unique(
    networks,
    (name) => `network_${name.replaceAll(/[^A-Za-z0-9_]/g, '_')}`,
    (name) => name,
  );
  const inventory = {
    all: {
      hosts: Object.fromEntries(servers.map(([name, server]) => [name, hostVariables(server)])),
      ...(networks.length === 0
        ? {}
        : {
            children: Object.fromEntries(
              networks.map((network, at) => {
                const inside = servers.filter(([, each]) => Object.hasOwn(each.network_interfaces, network));
                return [groups[at], { hosts: Object.fromEntries(inside.map(([name]) => [name, {}])) }];
              }),
            ),
          }),
    },
  };
  // Ansible reads YAML 1.1, in which more words than in 1.2 are no texts.
  return `${head(outputs)}${stringify(inventory, { version: '1.1', lineWidth: 0 })}`;
}

function hostVariables(server: ServerOutput) {
  const address = addressOf(server);
  return {
    ...(address === undefined ? {} : { ansible_host: address }),
    vdc_id: server.id,
    vdc_name: server.name,
    vdc_public_ipv4: server.public_ipv4,
    vdc_network_interfaces: server.network_interfaces,
  };
}

/** For `Include` in `~/.ssh/config`; users, keys and jump hosts stay in the operator's own file. */
function sshConfig(outputs: Outputs): string {
  return `${head(outputs)}${reachable(outputs)
    .map(([name, address]) => `\nHost ${name}\n  HostName ${address}\n`)
    .join('')}`;
}

/** The address that a server is reached at: the public one, else that of its first private network. */
function addressOf({ public_ipv4, network_interfaces }: ServerOutput): string | undefined {
  return public_ipv4 ?? Object.values(network_interfaces).flatMap(({ addresses }) => addresses)[0];
}

function reachable({ servers }: Outputs): (readonly [string, string])[] {
  return Object.entries(servers).flatMap(([name, each]) => {
    const address = addressOf(each);
    return address === undefined ? [] : [[name, address] as const];
  });
}

/** @throws ConfigError that names both, where two of the list get one name. */
function unique<T>(list: readonly T[], nameOf: (each: T) => string, labelOf: (each: T) => string): string[] {
  const taken = new Map<string, T>();
  return list.map((each) => {
    const name = nameOf(each);
    const other = taken.get(name);
    if (other !== undefined) {
      throw new ConfigError(
        `${labelOf(other)} and ${labelOf(each)} both become ${name} in this format. Rename one of them in the spec (\`moved\` keeps the resource), or use --format json.`,
      );
    }
    taken.set(name, each);
    return name;
  });
}

/** Without a time, so that the same addresses give the same file. */
function head({ project_id }: Outputs): string {
  return `# Written by vdcsync output for project ${project_id ?? 'unknown'}\n`;
}
