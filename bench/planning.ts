import equal from 'fast-deep-equal';
import { attribute } from '../src/core/attribute.ts';
import type { Desired } from '../src/core/desired.ts';
import type { ResourceKey } from '../src/core/keys.ts';
import type { ReadPort } from '../src/core/ports.ts';
import { documentedProfile } from '../src/core/profile.ts';
import type { NetworkId, NetworkInterfaceId, ServerId, ServerTypeId } from '../src/core/resources.ts';
import type { Binding } from '../src/core/state.ts';
import { observeAll } from '../src/engine/observe.ts';
import { buildPlan } from '../src/plan/build.ts';
import { kinds } from '../src/reconcilers/registry.ts';
import { load } from '../test/support/rig.ts';
import { fleetSpec } from './fleet-spec.ts';
import type { Row } from './table.ts';

const rounds = 7;

/** The file asks for it and nothing is there; all is there; all is there and is to go. */
const cases = ['new', 'unchanged', 'leaving'] as const;
export type PlanningCase = (typeof cases)[number];

/**
 * Pure planning, without I/O: 1,000 and 10,000 resources. Compared with one deep comparison of the same input, which no
 * planner can do without, and with itself at a tenth of the size.
 */
export async function planning(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const name of cases) {
    const [small, large] = [await measure(1_000, name), await measure(10_000, name)];
    rows.push(
      {
        figure: `plan of 10,000 ${name} resources / of 1,000, per resource`,
        value: large.planMs / small.planMs / 10,
        aim: '≤ 2',
      },
      {
        figure: `plan of 10,000 ${name} resources / deep comparison of its input`,
        value: large.planMs / large.compareMs,
        aim: '',
      },
    );
  }
  return rows;
}

async function measure(resources: number, name: PlanningCase) {
  const { desired, world, plan } = await planningCase(resources, name);
  const copy = structuredClone({ desired: desired.resources, observed: [...world.observed] });
  const { operations } = plan();
  if ((operations.length === 0) !== (name === 'unchanged'))
    throw new Error(`${operations.length} operations`);
  return {
    planMs: median(plan),
    compareMs: median(() => equal({ desired: desired.resources, observed: [...world.observed] }, copy)),
  };
}

/** A project of so many resources, its bindings, and the function that plans it. */
export async function planningCase(resources: number, name: PlanningCase) {
  const destroy = name === 'leaving';
  // Each server has three parts, and all are in one network.
  const servers = Math.floor((resources - 1) / 4);
  const desired = load(fleetSpec(servers));
  const { world, bindings } = await worldOf(desired, servers, name);
  const attribution = attribute(world, { claims: [], intents: [] });
  const plan = () =>
    buildPlan({
      kinds,
      world,
      openIntents: [],
      desiredDigest: desired.digest,
      register: {
        ...attribution,
        claims: [],
        isNew: false,
        declaredAbsent: [],
        answeredElsewhere: new Map(),
        line: ({ key }) => new Set([key]),
        held: () => undefined,
      },
      destroy,
      deletedBefore: 0,
      now: 0,
    }).plan;
  return { desired, world, bindings, plan };
}

function median(work: () => unknown): number {
  const times = Array.from({ length: rounds }, () => {
    const start = process.hrtime.bigint();
    work();
    return Number(process.hrtime.bigint() - start) / 1e6;
  });
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0;
}

async function worldOf(file: Desired, servers: number, name: PlanningCase) {
  const bound = name !== 'new';
  const bindings = new Map<ResourceKey, Binding>();
  const idOf = new Map<ResourceKey, number>();
  for (const [at, { key, kind, parent, value }] of file.resources.entries()) {
    idOf.set(key, kind === 'ip' ? 100_000 + at : at + 1);
    if (!bound) continue;
    bindings.set(key, {
      key,
      kind,
      id: kind === 'network_interface' ? 'net1' : String(idOf.get(key)),
      ...(parent === undefined ? {} : { parentId: String(idOf.get(parent)) }),
      identity: {},
      applied: kind === 'server' ? ({ entry: value, body: null } as never) : null,
      protect: false,
      keep: false,
      boundAt: 0,
    });
  }
  const network = {
    id: 1 as NetworkId,
    name: 'backend',
    cidr: '10.20.0.0/16',
    is_default: false,
    server_count: servers,
  };
  const addresses = file.resources.filter(({ kind }) => kind === 'ip');
  const read: Partial<ReadPort> = {
    project: async () => ({ id: file.projectId as never, name: 'bench', status: 'Active' }),
    ips: async () =>
      bound
        ? addresses.map(({ key, parent }, at) => ({
            id: idOf.get(key) as never,
            address: `203.0.${at >> 8}.${at & 255}`,
            server_id: (parent === undefined ? null : idOf.get(parent)) as ServerId | null,
            primary: true,
          }))
        : [],
    networks: async () => (bound ? [network] : []),
    isos: async () => [],
    serverTypes: async () => [
      { id: 3 as ServerTypeId, name: 'sliders-1', pricing_mode: 'sliders', gpu: false },
    ],
    pricing: async () => ({ gpu_packages: [] }),
    images: async () => [{ id: 'img', name: 'ubuntu-24.04', type: 'os' }],
    findNetworkInterfaces: async () => [
      { id: 'net0' as NetworkInterfaceId, public: true, network_id: null, addresses: [] },
      { id: 'net1' as NetworkInterfaceId, public: false, network_id: network.id, addresses: [] },
    ],
    findBackups: async () => [],
    findFirewall: async () => ({
      enabled: true,
      policy_in: 'drop',
      policy_out: 'accept',
      rules: [{ direction: 'in', action: 'accept', enabled: true, protocol: 'tcp', destination_port: '22' }],
    }),
    apiNow: () => 0,
    now: () => 0,
  };
  const port = read as ReadPort;
  if (bound)
    bindings.set('networks.backend' as ResourceKey, {
      ...(bindings.get('networks.backend' as ResourceKey) as Binding),
      id: '1',
    });
  const settings = { ...file.settings, prune: true, max_deletions: servers * 2 };
  const desired = name === 'leaving' ? { ...file, resources: [], settings } : file;
  const world = await observeAll({
    desired,
    bindings,
    kinds,
    profile: documentedProfile,
    read: port,
    catalogueRead: port,
  });
  return { world, bindings: [...bindings.values()] };
}
