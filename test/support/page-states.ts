import type { Diagnostic } from '../../src/core/errors.ts';
import { documentedProfile, type PriceList } from '../../src/core/profile.ts';
import type { ProgressEvent } from '../../src/core/progress.ts';
import type { PageInput } from '../../src/daemon/http/page.ts';
import type { Mode, OpenProject } from '../../src/daemon/ports.ts';
import type { ProjectSummary } from '../../src/daemon/project/facts.ts';
import type { SourceState } from '../../src/daemon/sources/spec-reader.ts';
import { type FaultRule, faultRule } from '../../src/emulator/faults.ts';
import { chance } from '../../src/simulation/chance.ts';
import { viewOf } from '../../src/view/build.ts';
import type { ProjectFacts } from '../../src/view/facts.ts';
import { projectWith, sessionWith } from './project.ts';
import { load, type Rig, rig } from './rig.ts';

/** A page, and the facts of its project. */
export type PageState = PageInput & { readonly facts: ProjectFacts | undefined };

/** The states of the status page that an operator meets, each made by the real daemon, engine and emulator in process. */
export const pageStates: Readonly<Record<string, () => Promise<PageState>>> = {
  converged: async () => pageOf(await factsAfter(converged)),
  converging: async () => pageOf(await factsAfter({ ...converged, forMs: 12_000 })),
  drifting: async () =>
    pageOf(await factsAfter({ ...converged, mode: 'observe', before: converged, spec: edited(shopSpec) })),
  approval: async () => pageOf(await factsAfter(approval)),
  blocked: async () => pageOf(await factsAfter(blocked)),
  exposed: async () => pageOf(await factsAfter(exposed)),
  leaking: async () => pageOf(await factsAfter(leaking)),
  broken: async () => {
    const facts = await factsAfter({ ...converged, forMs: 26 * hour, problem: brokenSpec });
    return pageOf(facts, {
      commit: { ...commit, id: 'b81f0c2e55d1', subject: 'Add a replica of the database' },
    });
  },
  unauthorized: async () => pageOf(await factsAfter({ ...converged, before: converged, revoked: true })),
  fleet: async () => ({ ...pageOf(undefined), projects: thousand(), wanted: {} }),
};

const now = Date.UTC(2026, 0, 1, 3, 4, 0);

const commit = {
  id: '4f2a91c07be3d2',
  ref: 'main',
  fullRef: 'refs/heads/main',
  subject: 'Change the servers of the shop',
  author: 'Ada Operator',
  url: 'https://git.example.com/shop/infrastructure/commit/4f2a91c07be3d2',
  at: Date.UTC(2026, 0, 1),
};

const prices: PriceList = {
  currency: 'EUR',
  address: '3.20',
  network_interface: '0.00',
  servers: { 'sliders-1': { core: '4.50', memory_gb: '2.10', disk_gb: '0.06' } },
};

const profile = { ...documentedProfile, prices };

const shopSpec = `version: 1
project: { id: 4711 }
settings: { max_deletions: 9 }
networks:
  default: { managed: false }
  backend: { cidr: 10.20.0.0/24 }
ips:
  web: {}
servers:
  web-1: &web
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: { ip: web }
    network_interfaces: [backend]
    firewall:
      enabled: true
      policy_in: drop
      rules:
        - { direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22,443" }
  web-2:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: { new: true }
    network_interfaces: [backend]
    firewall: { enabled: true, policy_in: drop, rules: [] }
  database-primary:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 8
    memory_mb: 16384
    disk_gb: 160
    network_interfaces: [backend]
    backup: { max_age: 24h }
    protect: true
`.replace(' &web', '');

/** Asks for a firewall that lets in less. */
function edited(spec: string): string {
  return spec.replace('"22,443"', '"443"');
}

interface Story {
  readonly spec: string;
  readonly mode?: Mode;
  readonly faults?: readonly FaultRule[];
  /** How long it goes on, in ms of the API. */
  readonly forMs?: number;
  /** What ran on the same project before. */
  readonly before?: Story;
  readonly problem?: readonly Diagnostic[];
  readonly revoked?: boolean;
  /** Bought by somebody else, and not by this spec. */
  readonly strays?: number;
}

const hour = 3_600_000;
const converged: Story = { spec: shopSpec, forMs: 2 * hour };

const blocked: Story = {
  before: converged,
  spec: shopSpec
    .replace('cidr: 10.20.0.0/24', 'cidr: 10.21.0.0/24')
    .replace('  web: {}\n', '  web: {}\n  mail: {}\n')
    .replace(/ {2}web-2:[\s\S]*?(?= {2}database)/, ''),
  faults: [
    faultRule({ method: 'POST', path: '/ips' }, { do: 'reset', effect: 'done', stored: false }),
    faultRule({ method: 'POST', path: '/servers/*/backups' }, { do: 'answer', status: 500 }),
  ],
  forMs: hour,
};

/** Opens less, buys an address, and deletes a server. */
const approval: Story = {
  before: converged,
  spec: edited(shopSpec)
    .replace('{ max_deletions: 9 }', '{ max_deletions: 9, prune: true, approval: plan }')
    .replace('  web: {}\n', '  web: {}\n  mail: {}\n')
    .replace(/ {2}web-2:[\s\S]*?(?= {2}database)/, ''),
  forMs: hour,
};

const refused: Story = {
  spec: shopSpec,
  faults: [
    faultRule(
      { method: 'PUT', path: '/servers/*/firewall' },
      { do: 'answer', status: 422, code: 'invalid_request', detail: 'destination_port: not a port' },
    ),
  ],
  forMs: hour,
};

const exposed: Story = { ...refused, before: refused, strays: 2 };

/** A server is gone, and its address and backups stay billed. */
const leaking: Story = {
  before: { ...converged, spec: shopSpec.replace('protect: true', 'protect: false') },
  spec: shopSpec
    .replace('{ max_deletions: 9 }', '{ max_deletions: 9, prune: true }')
    .replace(/ {2}database-primary:[\s\S]*$/, ''),
  strays: 1,
  forMs: 3 * 24 * hour,
};

const brokenSpec: readonly Diagnostic[] = [
  {
    position: { file: 'vdcsync.yaml', line: 14, column: 5 },
    message: 'unknown field `server_typ`: did you mean `server_type`?',
  },
  { position: { file: 'vdcsync.yaml', line: 22, column: 26 }, message: 'no network `backnd` is declared' },
];

/** The facts of the project after the story. */
async function factsAfter(story: Story): Promise<ProjectFacts> {
  let onEvent = (_event: ProgressEvent): void => {};
  const own = rig({ profile, onEvent: (event) => onEvent(event) });
  const follow = (listen: typeof onEvent) => {
    onEvent = listen;
  };
  if (story.before !== undefined) await play(own, story.before, follow);
  return play(own, story, follow);
}

async function play(
  own: Rig,
  { spec, mode = 'correct', faults = [], forMs = hour, problem, revoked, strays = 0 }: Story,
  follow: (listen: (event: ProgressEvent) => void) => void,
): Promise<ProjectFacts> {
  const { clock, emulator, store } = own;
  const engine = own.restart();
  emulator.setFaults(faults);
  for (let at = 0; at < strays; at += 1) emulator.mutate({ do: 'add_ip' });
  if (revoked) emulator.mutate({ do: 'revoke_token', token: emulator.tokens().readWrite });
  const { reads, counts } = own.engineClient;
  const open = async (opened: OpenProject) => {
    follow(opened.onEvent);
    return sessionWith({ engine, store, reads, clock, counts, profile });
  };
  const project = projectWith(
    { clock, random: chance(1), open },
    { mode, intervalMs: 300_000, keepMs: 90 * 24 * hour },
  );
  project.offer({ desired: load(spec), files: ['vdcsync.yaml'], commit }, 'start');
  const stop = new AbortController();
  const running = project.run(stop.signal);
  await clock.advance(forMs);
  if (problem !== undefined) {
    project.reject(problem);
    await clock.advance(40 * 60_000);
  }
  const facts = await project.facts();
  stop.abort(new Error('the story is over'));
  await clock.run(running);
  return facts;
}

function pageOf(facts: ProjectFacts | undefined, source: Partial<SourceState> = {}): PageState {
  return {
    facts,
    view: facts && viewOf(facts),
    projects: [],
    source: { name: 'git', commit, readAt: now - 60_000, error: undefined, orphans: [], ...source },
    version: '0.1.0',
    now,
  };
}

/** Enough projects for a fleet: a few of them in each state that needs attention. */
export function thousand(): readonly ProjectSummary[] {
  const sorts = ['blocked', 'paused', 'drifting', 'converging', 'unreachable', 'suspended'] as const;
  return Array.from({ length: 1_000 }, (_, at) => {
    const sort = at % 83 === 7 ? sorts[Math.floor(at / 83) % sorts.length] : undefined;
    return {
      id: 4_000 + at,
      name: `${['shop', 'billing', 'search', 'media', 'analytics'][at % 5]}-${String(at).padStart(3, '0')}`,
      condition: sort ?? 'converged',
      since: now - ((at * 7) % 400) * 60_000,
      now,
      reconciledAt: at === 600 ? undefined : now - (at % 300) * 1_000,
      blocked: sort === 'blocked' ? 1 + (at % 3) : 0,
      exposed: at === 7,
      leaking: at === 256 || at === 512,
      broken: at === 421,
    };
  });
}
