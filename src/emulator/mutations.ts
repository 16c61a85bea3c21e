import * as z from 'zod';
import { ADDRESS_POOLS } from './catalogue.ts';
import { EmulatorInputError } from './readings.ts';
import { removeServer } from './tasks.ts';
import { fingerprint } from './tokens.ts';
import { refusal } from './words.ts';
import { type Ip, newNetwork, type Project, type Server, type World } from './world.ts';

/** A change by another user of the project, outside the client. Without `project_id` it applies to the first project. */
export type Mutation = z.infer<typeof mutationSchema>;

const project_id = z.int().optional();
const id = z.int();

const mutationSchema = z.discriminatedUnion('do', [
  z.strictObject({
    do: z.literal('set_standing'),
    project_id,
    standing: z.enum(['active', 'suspended', 'unpaid']),
  }),
  /** `active: true` skips `creating`. */
  z.strictObject({
    do: z.literal('add_server'),
    project_id,
    name: z.string().min(1),
    server_type_id: z.int().optional(),
    public: z.boolean().optional(),
  }),
  z.strictObject({ do: z.literal('delete_server'), project_id, id }),
  z.strictObject({ do: z.literal('add_ip'), project_id, pool: z.string().optional() }),
  /** Also takes it off a server. */
  z.strictObject({ do: z.literal('delete_ip'), project_id, id }),
  z.strictObject({
    do: z.literal('add_network'),
    project_id,
    name: z.string().min(1),
    cidr: z.string().min(9),
  }),
  /** Also with servers on it. */
  z.strictObject({ do: z.literal('delete_network'), project_id, id }),
  z.strictObject({ do: z.literal('delete_iso'), project_id, id: z.string() }),
  z.strictObject({
    do: z.literal('set_firewall'),
    project_id,
    server_id: id,
    enabled: z.boolean().optional(),
    policy_in: z.string().optional(),
    policy_out: z.string().optional(),
    rules: z.array(z.record(z.string(), z.unknown())).optional(),
  }),
  z.strictObject({ do: z.literal('fail_next_task'), project_id, times: z.int().min(1).optional() }),
  z.strictObject({ do: z.literal('set_capacity'), package: z.string(), capacity: z.int().min(0) }),
  z.strictObject({
    do: z.literal('withdraw_package'),
    package: z.string(),
    withdrawn: z.boolean().optional(),
  }),
  z.strictObject({ do: z.literal('delete_ssh_key'), id }),
  /** By its secret or by its name, such as `4711-readWrite`. */
  z.strictObject({ do: z.literal('revoke_token'), token: z.string(), revoked: z.boolean().optional() }),
  z.strictObject({ do: z.literal('refuse_operations'), token: z.string(), operations: z.array(z.string()) }),
  z.strictObject({ do: z.literal('forward_clock'), ms: z.number().min(0) }),
]);

/** Checks a mutation that came from outside. Throws `EmulatorInputError`. */
export function parseMutation(input: unknown): Mutation {
  const mutation = mutationSchema.safeParse(input);
  if (mutation.success) return mutation.data;
  throw refusal(mutation.error, 'mutation');
}

/** The contents of a new server. */
export function newContents(): Pick<
  Server,
  'interfaces' | 'nextInterface' | 'firewall' | 'policy' | 'isoInDrive'
> {
  return {
    interfaces: [],
    nextInterface: 0,
    firewall: { enabled: false, policyIn: 'drop', policyOut: 'accept', rules: [] },
    policy: { enabled: false, days: [], hour: 0, minute: 0, keep: 7, nextRunMs: null, lastRunMs: null },
    isoInDrive: null,
  };
}

/** The platform's own network, which no project lists. */
const PUBLIC_NETWORK_ID = 1;

/** Gives a new server its address and its public network interface. `@assumption A28` */
export function attach(server: Server, ip: Ip, hidden = false): void {
  ip.serverId = server.id;
  ip.primary = true;
  server.interfaces.push({
    id: 'net0',
    public: true,
    networkId: PUBLIC_NETWORK_ID,
    ips: [ip.address],
    hidden,
  });
  server.nextInterface = 1;
}

/** An address that is attached to nothing. */
export function newIp(id: number, address: string, pool: string): Ip {
  const gateway = address.replace(/\d+$/, '1');
  return { id, address, prefix: '/24', gateway, pool, serverId: null, primary: false };
}

/** Executes a mutation, and returns the created resource. Throws `EmulatorInputError` for a resource that does not exist. */
export function mutate(world: World, mutation: Mutation, nowMs: number): unknown {
  const project = projectOf(world, mutation);
  switch (mutation.do) {
    case 'set_standing':
      project.standing = mutation.standing;
      break;
    case 'add_server':
      return addServer(world, project, mutation, nowMs);
    case 'delete_server':
      byId(project.servers, mutation.id, 'server');
      removeServer(world, project, mutation.id);
      break;
    case 'add_ip':
      return addIp(world, project, mutation.pool ?? 'main');
    case 'delete_ip':
      deleteIp(project, mutation.id);
      break;
    case 'add_network': {
      const network = newNetwork({ ...mutation, id: world.nextId.network });
      world.nextId.network += 1;
      project.networks.push(network);
      return network;
    }
    case 'delete_network':
      byId(project.networks, mutation.id, 'network');
      project.networks = project.networks.filter((network) => network.id !== mutation.id);
      for (const server of project.servers) {
        server.interfaces = server.interfaces.filter((each) => each.public || each.networkId !== mutation.id);
      }
      break;
    case 'delete_iso':
      byId(project.isos, mutation.id, 'ISO');
      project.isos = project.isos.filter((iso) => iso.id !== mutation.id);
      break;
    case 'set_firewall': {
      const { firewall } = byId(project.servers, mutation.server_id, 'server');
      firewall.enabled = mutation.enabled ?? firewall.enabled;
      firewall.policyIn = mutation.policy_in ?? firewall.policyIn;
      firewall.policyOut = mutation.policy_out ?? firewall.policyOut;
      firewall.rules = mutation.rules ?? firewall.rules;
      break;
    }
    case 'fail_next_task':
      project.failNextTasks += mutation.times ?? 1;
      break;
    case 'set_capacity':
      packageOf(world, mutation.package).capacity = mutation.capacity;
      break;
    case 'withdraw_package':
      packageOf(world, mutation.package).withdrawn = mutation.withdrawn ?? true;
      break;
    case 'delete_ssh_key':
      byId(world.account.sshKeys, mutation.id, 'SSH key');
      world.account.sshKeys = world.account.sshKeys.filter((key) => key.id !== mutation.id);
      break;
    case 'revoke_token':
      tokenOf(world, mutation.token).revoked = mutation.revoked ?? true;
      break;
    case 'refuse_operations':
      tokenOf(world, mutation.token).refusedOperations = mutation.operations;
      break;
    case 'forward_clock':
      world.clock.emulatorMs += mutation.ms;
      break;
  }
  return null;
}

function addServer(
  world: World,
  project: Project,
  wanted: Mutation & { do: 'add_server' },
  nowMs: number,
): Server {
  const typeId = wanted.server_type_id ?? 3;
  const type = byId(world.serverTypes, typeId, 'server type');
  const ip = wanted.public === false ? null : addIp(world, project, type.pool);
  const server: Server = {
    id: world.nextId.server,
    name: wanted.name,
    typeId,
    image: type.images[0]?.id ?? '',
    status: 'active',
    power: true,
    ...{ cores: 1, memoryMb: 1024, diskGb: 20, planId: null, gpuPackage: null },
    sshKeys: [],
    createdMs: nowMs,
    ...newContents(),
  };
  world.nextId.server += 1;
  project.servers.push(server);
  if (ip !== null) attach(server, ip);
  return server;
}

function addIp(world: World, project: Project, pool: string): Ip {
  const address = freeAddress(world, pool);
  if (address === undefined) throw new EmulatorInputError(`pool ${pool}: has no free address`);
  const ip = newIp(world.nextId.ip, address, pool);
  world.nextId.ip += 1;
  project.ips.push(ip);
  return ip;
}

/**
 * The next address of the pool that no project has. A released address is offered
 * again only after all other addresses of the pool. So an id that is
 * used again does not name the same address.
 */
export function freeAddress(world: World, pool: string): string | undefined {
  const starts = ADDRESS_POOLS[pool] ?? [];
  const used = new Set(world.projects.flatMap((owner) => owner.ips.map((ip) => ip.address)));
  const cursor = world.poolCursors[pool] ?? 0;
  const size = starts.length * ADDRESSES_EACH;
  for (let step = 0; step < size; step += 1) {
    const place = (cursor + step) % size;
    const address = `${starts[Math.floor(place / ADDRESSES_EACH)]}.${FIRST_ADDRESS + (place % ADDRESSES_EACH)}`;
    if (used.has(address)) continue;
    world.poolCursors[pool] = place + 1;
    return address;
  }
  return undefined;
}

const FIRST_ADDRESS = 10;
const ADDRESSES_EACH = 245;

function deleteIp(project: Project, id: number): void {
  const ip = byId(project.ips, id, 'address');
  project.ips = project.ips.filter((candidate) => candidate !== ip);
  for (const server of project.servers) {
    if (server.id === ip.serverId)
      server.interfaces = server.interfaces.filter((each) => !each.ips.includes(ip.address));
  }
}

function projectOf(world: World, mutation: Mutation): Project {
  const id = 'project_id' in mutation ? mutation.project_id : undefined;
  return id === undefined ? found(world.projects[0], 'project') : byId(world.projects, id, 'project');
}

function packageOf(world: World, key: string) {
  const sold = world.serverTypes.flatMap((type) => type.packages).find((candidate) => candidate.key === key);
  return found(sold, `package ${key}`);
}

function tokenOf(world: World, given: string) {
  const print = fingerprint(given);
  const token = world.tokens.find((candidate) => candidate.name === given || candidate.fingerprint === print);
  return found(token, 'token');
}

function byId<Value extends { readonly id: number | string }>(
  list: readonly Value[],
  id: Value['id'],
  what: string,
): Value {
  return found(
    list.find((each) => each.id === id),
    `${what} ${id}`,
  );
}

function found<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new EmulatorInputError(`${what}: there is none`);
  return value;
}
