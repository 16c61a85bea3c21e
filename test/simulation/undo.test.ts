import isEqual from 'fast-deep-equal';
import { describe, expect, test } from 'vitest';
import { runsIn } from '../../src/cli/runs.ts';
import type { Desired } from '../../src/core/desired.ts';
import type { Selection, UndoGrade } from '../../src/core/plan.ts';
import { type ApiProfile, documentedProfile } from '../../src/core/profile.ts';
import type { ApplyReport } from '../../src/core/progress.ts';
import type { Project, Server } from '../../src/emulator/world.ts';
import { type Undoing, undoing } from '../../src/plan/undo.ts';
import { kinds } from '../../src/reconcilers/registry.ts';
import { type Chance, chance } from '../../src/simulation/chance.ts';
import type { SpecModel } from '../../src/simulation/story.ts';
import { loadSpec } from '../../src/spec/load.ts';
import { playsAll } from '../support/drawn.ts';
import { type Rig, rig } from '../support/rig.ts';
import { editSpec, generateFirewall, generateSpec } from './generator.ts';
import { clientProfile, serviceProfile } from './operations.ts';
import { specSources } from './spec-sources.ts';

const all = { limit: 100_000 };

/**
 * No setting holds a change back: the tests of the command show that the guards hold an undo back. No server takes any
 * free address: it could take another one than before.
 */
function permitting(spec: SpecModel): SpecModel {
  const settings = { prune: true, max_deletions: 100, exclusive: true };
  const servers = Object.entries(spec.servers).map(([name, server]) => {
    const { protect: _protect, keep_ip: _keep, public_ipv4: address, ...rest } = server;
    const public_ipv4 = isEqual(address, { reuse: true }) ? { new: true } : address;
    return [name, { ...rest, ...(public_ipv4 ? { public_ipv4 } : {}), replace: 'allowed' }] as const;
  });
  return { ...spec, settings, servers: Object.fromEntries(servers) };
}

/** The edits of the other stories, and those of single fields of a server. */
function edited(dice: Chance, spec: SpecModel): SpecModel {
  const [name, server] = Object.entries(spec.servers)[0] ?? [];
  const withServer = (fields: object): SpecModel => ({
    ...spec,
    servers: { ...spec.servers, [name ?? '']: { ...server, ...fields } },
  });
  if (name === undefined || server === undefined || dice.happens(0.5)) return editSpec(dice, spec);
  switch (dice.pick(['firewall', 'image', 'interface', 'add', 'disk', 'address'] as const)) {
    case 'firewall':
      return server.public_ipv4 === undefined ? spec : withServer({ firewall: generateFirewall(dice) });
    case 'image':
      return withServer({ image: server.image === 'debian-13' ? 'ubuntu-24.04' : 'debian-13' });
    case 'interface':
      return {
        ...withServer({ network_interfaces: ['net-8'] }),
        networks: { ...spec.networks, 'net-8': { cidr: '10.98.0.0/24' } },
      };
    case 'add': {
      const { public_ipv4: _address, firewall: _firewall, ...rest } = server;
      return { ...spec, servers: { ...spec.servers, 'srv-9': rest } };
    }
    case 'disk':
      return server.disk_gb === undefined ? spec : withServer({ disk_gb: 60 });
    case 'address':
      return server.public_ipv4 === undefined ? withServer({ public_ipv4: { new: true } }) : spec;
  }
}

function desiredOf(spec: SpecModel): Desired {
  return loadSpec(specSources(spec, 4711), {});
}

/** Each resource of the project by its name, as far as a spec describes it. Ids and addresses are apart. */
function snapshot({ emulator }: Rig) {
  const project = emulator.world.projects[0] as Project;
  const networkOf = (id: number) => project.networks.find((each) => each.id === id)?.name ?? id;
  const addressesOf = ({ id }: Server) =>
    project.ips.filter((ip) => ip.serverId === id).map((ip) => ip.address);
  const cards = (server: Server) =>
    server.interfaces.filter((card) => !card.public).map(({ networkId }) => networkOf(networkId));
  const facts = [
    ...project.networks.map(({ name, cidr }) => [`networks.${name}`, { cidr }] as const),
    ...project.isos.map(({ name, url }) => [`isos.${name}`, { url }] as const),
    ...project.servers.map((server) => {
      const { typeId, image, cores, memoryMb, diskGb, planId, firewall, policy, isoInDrive } = server;
      const { nextRunMs: _next, lastRunMs: _last, ...schedule } = policy;
      const drive = project.isos.find(({ id }) => id === isoInDrive)?.name;
      const size = { typeId, image, cores, memoryMb, diskGb, planId };
      const inside = { firewall, schedule, drive, public: addressesOf(server).length };
      return [`servers.${server.name}`, { ...size, ...inside }] as const;
    }),
  ];
  return {
    facts: Object.fromEntries(facts),
    cards: Object.fromEntries(project.servers.map((each) => [`servers.${each.name}`, cards(each).sort()])),
    ids: Object.fromEntries(project.servers.map(({ name, id }) => [`servers.${name}`, id])),
    addresses: Object.fromEntries(project.servers.map((each) => [`servers.${each.name}`, addressesOf(each)])),
    count: project.ips.length,
  };
}

async function boundAddresses({ store }: Rig): Promise<Readonly<Record<string, string | undefined>>> {
  const bindings = await store.bindings();
  const ips = bindings.filter(({ kind, parentId }) => kind === 'ip' && parentId === undefined);
  return Object.fromEntries(ips.map(({ key, identity }) => [key, identity.address]));
}

/** The differences between both worlds that the plan has not declared. */
function undeclared(
  before: ReturnType<typeof snapshot>,
  after: ReturnType<typeof snapshot>,
  { losses }: Undoing,
): readonly string[] {
  const isDeclared = (key: string, grades: readonly UndoGrade[]) =>
    losses.some(
      (loss) =>
        grades.includes(loss.grade) &&
        (loss.key === key || loss.key.startsWith(`${key}.`) || loss.key.startsWith(`${key}~`)),
    );
  const differs = (one: unknown, other: unknown) => JSON.stringify(one) !== JSON.stringify(other);
  const keys = new Set([...Object.keys(before.facts), ...Object.keys(after.facts)]);
  return [...keys].flatMap((key) => [
    ...(differs(before.facts[key], after.facts[key]) ? [`${key} differs`] : []),
    ...(differs(before.cards[key], after.cards[key]) && !isDeclared(key, ['stays'])
      ? [`${key}: interfaces differ`]
      : []),
    ...(before.ids[key] !== after.ids[key] && !isDeclared(key, ['data_lost'])
      ? [`${key}: another disk`]
      : []),
    ...(differs(before.addresses[key], after.addresses[key]) &&
    !isDeclared(key, ['another_address', 'data_lost'])
      ? [`${key}: another address`]
      : []),
  ]);
}

/** How one edit and its way back ended, and all that is wrong. */
interface End {
  readonly end: string;
  readonly wrong: readonly string[];
}

/** Plays some edits of one project, each with its way back. */
async function play(seed: number): Promise<readonly End[]> {
  const dice = chance(seed);
  const isOpen = dice.happens(0.3);
  const profile = isOpen ? clientProfile : documentedProfile;
  const played = rig(isOpen ? { profile, emulator: { profile: serviceProfile } } : {});
  const first = permitting(generateSpec(dice));
  const opening = await apply(played, desiredOf(first));
  const ends: End[] = [];
  while (opening.outcome === 'converged' && ends.length < editsOfProject) {
    const end = await undone(played, desiredOf(permitting(edited(dice, edited(dice, first)))), profile);
    ends.push(end);
    if (end.end !== 'no write' && !end.end.startsWith('undone')) break;
  }
  return ends;
}

const editsOfProject = 6;

function apply(played: Rig, desired: Desired, selection?: Selection): Promise<ApplyReport> {
  const options = { approve: async () => true, ...(selection && { selection }) };
  return played.clock.run(played.engine.apply(desired, options));
}

async function undone(played: Rig, desired: Desired, profile: ApiProfile): Promise<End> {
  const before = snapshot(played);
  const addresses = await boundAddresses(played);
  const sent = (await played.store.intents(all)).length;
  await apply(played, desired);
  const journal = await played.store.intents(all);
  if (journal.length === sent) return { end: 'no write', wrong: [] };
  const [run] = runsIn(journal, played.clock.now());
  if (run === undefined || run.writes.length !== journal.length - sent)
    return { end: 'run', wrong: ['the run is not the edit'] };
  const bound = new Map((await played.store.bindings()).map(({ key, id }) => [key, id]));
  const way = undoing({
    ...{ run: run.name, writes: run.writes, journal, bound, renames: new Map() },
    desired,
    kinds,
    profile,
  });
  const report = await apply(played, way.desired, way.selection);
  if (report.outcome !== 'converged') {
    // The API attaches any free address, and an unused one of the spec is free too.
    const isHeld = report.blocked.some(({ code }) => code === 'address_not_the_only_free_one');
    const isExplained = isHeld || way.losses.some(({ grade }) => grade === 'stays');
    const blocked = report.blocked.map(({ key, code, reason }) => `${key} ${code} ${reason}`);
    return { end: 'blocked', wrong: isExplained ? [] : [`not undone: ${blocked.join('; ')}`] };
  }
  const after = snapshot(played);
  const moved = Object.entries(await boundAddresses(played)).filter(([key, each]) => addresses[key] !== each);
  return {
    end: way.losses.length === 0 ? 'undone wholly' : 'undone with declared losses',
    wrong: [
      ...undeclared(before, after, way),
      ...moved.flatMap(([key]) =>
        way.losses.some((loss) => loss.key === key) ? [] : [`${key}: another address`],
      ),
      ...(before.count === after.count ? [] : ['an address is left, or missing']),
    ],
  };
}

describe('src/plan/undo.ts', () => {
  const count = playsAll ? 100 : 60;

  test('undoing an edit restores the project, except for the declared losses', async () => {
    const ends = new Map<string, number>();
    const wrong: string[] = [];
    for (let seed = 0, edits = 0; edits < count; seed += 1) {
      for (const played of await play(seed)) {
        ends.set(played.end, (ends.get(played.end) ?? 0) + 1);
        if (played.end.startsWith('undone')) edits += 1;
        wrong.push(...played.wrong.map((each) => `${seed}: ${each}`));
      }
    }
    expect(wrong).toEqual([]);
    const [wholly = 0, declared = 0] = ['undone wholly', 'undone with declared losses'].map((end) =>
      ends.get(end),
    );
    expect([wholly > count / 5, declared > count / 5]).toEqual([true, true]);
  }, 600_000);

  test('an undo does not delete resources that were left over before the edit', async () => {
    const played = rig({ profile: clientProfile, emulator: { profile: serviceProfile } });
    const size = { server_type: 'sliders-1', image: 'ubuntu-24.04', memory_mb: 1024, disk_gb: 20 };
    const spec = (cores: number, network_interfaces: readonly string[]) =>
      desiredOf({
        ...{ settings: { exclusive: true }, ips: {}, isos: {} },
        networks: { backend: { cidr: '10.20.0.0/24' } },
        servers: { web: { ...size, cores, network_interfaces } },
      });
    await apply(played, spec(1, ['backend']));
    const desired = spec(2, []);
    await apply(played, desired);
    const journal = await played.store.intents(all);
    const [run] = runsIn(journal, played.clock.now());
    const bound = new Map((await played.store.bindings()).map(({ key, id }) => [key, id]));
    const { name = '', writes = [] } = run ?? {};
    const way = undoing({
      ...{ run: name, writes, journal, bound, renames: new Map() },
      ...{ desired, kinds, profile: clientProfile },
    });
    const { results } = await apply(played, way.desired, way.selection);
    expect(results.map(({ verb, key, outcome }) => `${verb} ${key} ${outcome}`)).toEqual([
      'update servers.web done',
    ]);
    expect(snapshot(played)).toMatchObject({
      facts: { 'servers.web': { cores: 1 } },
      cards: { 'servers.web': ['backend'] },
    });
  });
});
