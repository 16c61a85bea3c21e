import equal from 'fast-deep-equal';
import { appliedServer } from '../core/applied.ts';
import type { Catalogue } from '../core/catalogue.ts';
import type { Clock } from '../core/clock.ts';
import type { Desired, DesiredResource } from '../core/desired.ts';
import { FenceError, StateError } from '../core/errors.ts';
import { comesWithServer, type ParsedKey, type ResourceKey, takeApart } from '../core/keys.ts';
import type {
  Observations,
  ProofChecks,
  ResourceKind,
  Seen,
  Subject,
  World,
  WorldParts,
} from '../core/kind.ts';
import { factsOf, type KindName } from '../core/kind-facts.ts';
import { type ReadName, type ReadPort, type StaleReads, serverReads } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { Project } from '../core/resources.ts';
import type { Binding, StateInfo } from '../core/state.ts';
import { createWorld } from '../core/world.ts';

/** The spec and the state, whose resources a refresh observes, and the ports of its reads. */
export interface ObserveInput {
  readonly desired: Desired;
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly kinds: ReadonlyMap<KindName, ResourceKind>;
  readonly profile: ApiProfile;
  readonly proofChecks?: ProofChecks | undefined;
  readonly read: ReadPort;
  /** Types, prices and images change seldom, so these reads may be older. */
  readonly catalogueRead: ReadPort;
}

/** Observes all resources that the spec or the state names, once. Throws `FenceError` in another project. */
export async function observeAll(input: ObserveInput): Promise<World> {
  const { read, kinds } = input;
  const subjects = subjectsOf(input);
  const project = await read.project();
  refuseOtherProject(input.desired, project);
  const [ips, networks, servers, catalogue] = await Promise.all([
    read.ips(),
    read.networks(),
    read.servers?.(),
    readCatalogue(input),
  ]);
  const observed = await observe(kinds, read, subjects, [...subjects.values()]);
  return worldOf(input, {
    ...{ project, ips, networks, catalogue, subjects, observed },
    ...(servers === undefined ? {} : { servers }),
  });
}

/**
 * Observes one resource, and reads the lists that the resource is compared with. A resource inside a server depends
 * on no list, except for an address.
 */
export async function observeOne(
  { read, kinds }: ObserveInput,
  before: World,
  key: ResourceKey,
): Promise<Observations> {
  const subject = before.subjects.get(key);
  const alone = subject?.parent !== undefined;
  const ips = alone && !comesWithServer(subject) ? before.ips : await read.ips();
  const networks = alone ? before.networks : await read.networks();
  const servers = subject && factsOf(subject.kind).container ? await read.servers?.() : before.servers;
  const observed = await observe(kinds, read, before.subjects, subject === undefined ? [] : [subject]);
  return { ips, networks, observed, ...(servers === undefined ? {} : { servers }) };
}

/** @throws StateError if the state belongs to another project, because its ids have another meaning there. */
export function refuseOtherState(desired: Desired, { projectId }: StateInfo): void {
  if (projectId === null || projectId === desired.projectId) return;
  throw new StateError(
    `The state belongs to project ${projectId}, but the spec is for project ${desired.projectId}. Name another state with --state, or correct project.id.`,
  );
}

/** @throws FenceError if the token belongs to another project than the spec. */
export function refuseOtherProject({ projectId }: Desired, { id, name }: Project): void {
  if (id === projectId) return;
  throw new FenceError(
    `The spec is for project ${projectId}, but the token belongs to project ${id} ("${name}"). Nothing was written. Use the token of project ${projectId}, or correct project.id.`,
  );
}

type Parts = Omit<WorldParts, 'settings' | 'expiry' | 'profile' | 'proofChecks' | 'apiNow' | 'now'>;

/** A world from parts of one or several refreshes: `now` and `apiNow` are of this call, and not of the reads. */
export function worldOf({ desired, profile, proofChecks, read }: ObserveInput, parts: Parts): World {
  const { project, ips, networks, servers, catalogue, subjects, observed } = parts;
  const { settings } = desired;
  const now = read.now();
  const apiNow = read.apiNow() ?? now;
  return createWorld({
    ...{
      project,
      ips,
      networks,
      catalogue,
      subjects,
      observed,
      settings,
      profile,
      apiNow,
      now,
      expiry: desired,
    },
    ...(servers === undefined ? {} : { servers }),
    ...(proofChecks === undefined ? {} : { proofChecks }),
  });
}

/** The wanted and the bound resources, by key. Parents come before children. */
function subjectsOf({ desired, bindings }: ObserveInput): ReadonlyMap<ResourceKey, Subject> {
  const wanted = new Map(desired.resources.map((each) => [each.key, each]));
  return new Map(
    [...wanted.keys(), ...bindings.keys()].flatMap((key) => {
      const subject = subjectOf({ wanted, bindings }, key);
      return subject === undefined ? [] : [[key, subject] as const];
    }),
  );
}

/** Returns `undefined` for a key that is neither wanted nor bound. */
export function subjectOf(
  {
    wanted,
    bindings,
  }: Pick<ObserveInput, 'bindings'> & { readonly wanted: ReadonlyMap<ResourceKey, DesiredResource> },
  key: ResourceKey,
): Subject | undefined {
  const desired = wanted.get(key);
  const { kind, parent } = desired ?? takeApart(key);
  const binding = current(bindings, { key, kind, parent });
  if (desired === undefined && binding === undefined) return undefined;
  return {
    key,
    kind,
    ...(desired === undefined ? {} : { desired }),
    ...(parent === undefined ? {} : { parent }),
    ...(binding === undefined ? {} : { binding }),
  };
}

/**
 * If the key of a server is bound to another server now, the bindings of the previous network interfaces and firewall
 * do not count.
 */
function current(
  bindings: ReadonlyMap<ResourceKey, Binding>,
  { key, kind, parent }: Pick<ParsedKey, 'key' | 'kind'> & { readonly parent?: ResourceKey | undefined },
): Binding | undefined {
  const binding = bindings.get(key);
  if (binding === undefined || parent === undefined || comesWithServer({ kind, parent })) return binding;
  return bindings.get(parent)?.id === binding.parentId ? binding : undefined;
}

async function observe(
  kinds: ReadonlyMap<KindName, ResourceKind>,
  read: ReadPort,
  all: ReadonlyMap<ResourceKey, Subject>,
  subjects: readonly Subject[],
): Promise<Map<ResourceKey, Seen>> {
  const idOf = (key: ResourceKey) => all.get(key)?.binding?.id ?? all.get(key)?.desired?.id;
  const seen = await Promise.all(
    [...kinds.values()].map((kind) => {
      const own = subjects.filter((subject) => subject.kind === kind.name);
      return own.length === 0 ? new Map<ResourceKey, Seen>() : kind.observe(read, own, idOf);
    }),
  );
  return new Map(seen.flatMap((each) => [...each]));
}

/**
 * The server types that the spec names, with prices and images. The other types of bound servers come with prices
 * alone.
 */
async function readCatalogue({
  desired,
  bindings,
  catalogueRead,
  profile,
}: ObserveInput): Promise<Catalogue> {
  const wanted = new Set(
    desired.resources
      .filter(({ kind, managed }) => factsOf(kind).container && managed)
      .flatMap(({ value }) => value.server_type ?? [])
      .map(String),
  );
  const priced = profile.prices !== undefined;
  const bought = new Set([...bindings.values()].flatMap((each) => typeOf(each, priced)).map(String));
  if (wanted.size + bought.size === 0) return { types: [], pricing: new Map(), images: new Map() };
  const types = await catalogueRead.serverTypes();
  const used = types.filter(({ id, name }) => wanted.has(name) || wanted.has(String(id)));
  const asked = types.filter((type) => used.includes(type) || bought.has(String(type.id)));
  const [pricing, images] = await Promise.all([
    Promise.all(asked.map(async ({ id }) => [id, await catalogueRead.pricing(id)] as const)),
    Promise.all(used.map(async ({ id }) => [id, await catalogueRead.images(id)] as const)),
  ]);
  return { types, pricing: new Map(pricing), images: new Map(images) };
}

/** A price list has a price for every type. The catalogue has prices for packages only. */
function typeOf(binding: Binding, all: boolean): readonly number[] {
  if (!factsOf(binding.kind).container) return [];
  const { typeId, gpuPackage } = appliedServer(binding);
  return typeId === undefined || (gpuPackage === undefined && !all) ? [] : [typeId];
}

/**
 * Shares reads between callers that may use the same answer. A caller names a time, and gets an answer whose request
 * *started* at that time or later. An answer under another token may be from another project, so the cache does not
 * use that answer any more.
 */
export interface ReadCache {
  /**
   * A port whose answers come only from requests that started at `time` or later, on the monotonic clock. `inside`: the
   * port for new requests about one server; requests that many callers share go through the port of the cache.
   */
  since(time: number, inside?: ReadPort): ReadPort;
  /** Drops the answers that a write has made untrue. */
  forget(stale: StaleReads): void;
  /** Keeps only the types on sale, and the answers about the inside of servers. Lists are cheap, and other programs change lists the most. */
  forgetLists(): void;
  /** Drops the answers about one server. */
  forgetServer(id: string): void;
  /** The kept answers about servers, the oldest first. */
  aboutServers(): readonly KeptAnswer[];
  /**
   * Sends the request of a kept answer again, through `port`. Returns whether the new answer differs. If the answer
   * was forgotten or replaced meanwhile, returns `false`.
   */
  refresh(name: string, port: ReadPort): Promise<boolean>;
}

/** An answer about the inside of a server in the cache, for a caller that refreshes the oldest answers first. */
export interface KeptAnswer {
  readonly name: string;
  /** The server's live id. */
  readonly server: string;
  /** When it was asked for, wall ms. */
  readonly startedAt: number;
}

interface Entry {
  /** On the monotonic clock, and wall ms. */
  readonly startedAt: number;
  readonly wallAt: number;
  readonly token: string;
  readonly answer: Promise<unknown>;
  readonly ask: Ask;
}

type Ask = (port: ReadPort) => Promise<unknown>;

const ofServer: ReadonlySet<string> = new Set(serverReads);
const serverOf = /^server (\d+) /;

/** The types on sale change rarely, so a run reads them once. */
const keptList: ReadName = 'serverTypes';

/** The name of a kept answer: `ips`, `findIp 5001`, `server 2001 findFirewall`. */
function nameOf(read: string, id?: string | number): string {
  if (id === undefined) return read;
  return ofServer.has(read) ? `server ${id} ${read}` : `${read} ${id}`;
}

/** `tokenNow` names the token that requests go out under. */
export function createReadCache(read: ReadPort, clock: Clock, tokenNow: () => string): ReadCache {
  const entries = new Map<string, Entry>();

  function shared(name: string, time: number, ask: Ask, port: ReadPort): Promise<unknown> {
    const entry = entries.get(name);
    const token = tokenNow();
    if (entry !== undefined && entry.startedAt >= time && entry.token === token) return entry.answer;
    const answer = ask(port);
    const fresh = { startedAt: clock.monotonic(), wallAt: clock.now(), token, answer, ask };
    entries.set(name, fresh);
    answer.catch(() => {
      if (entries.get(name) === fresh) entries.delete(name);
    });
    return answer;
  }

  function forgetServer(id: string): void {
    for (const name of entries.keys()) {
      if (name.startsWith(`server ${id} `)) entries.delete(name);
    }
  }

  const uncached = { findTask: read.findTask, apiNow: read.apiNow, now: read.now };
  /** The cache has an undocumented read only if the port has this read. */
  const cached = Object.keys(read).filter((each) => !(each in uncached)) as ReadName[];
  const asking =
    (method: ReadName, id: never): Ask =>
    (port) =>
      port[method]?.(id) ?? Promise.resolve(undefined);

  return {
    since: (time, inside = read) => {
      const shares = cached.map((method) => {
        const port = ofServer.has(method) ? inside : read;
        const answer = (id: never) => shared(nameOf(method, id), time, asking(method, id), port);
        return [method, answer] as const;
      });
      return { ...Object.fromEntries(shares), ...uncached } as unknown as ReadPort;
    },
    forgetLists() {
      for (const name of entries.keys()) {
        if (!serverOf.test(name) && name !== keptList) entries.delete(name);
      }
    },
    forget({ lists = [], server, inside = [] }) {
      const all = new Set<string>(lists);
      const its = new Set(inside.map((each) => nameOf(each, server)));
      for (const name of entries.keys()) {
        if (all.has(name.split(' ', 1)[0] ?? '') || its.has(name)) entries.delete(name);
      }
      if (server !== undefined && inside.length === 0) forgetServer(String(server));
    },
    forgetServer,
    aboutServers: () =>
      [...entries]
        .flatMap(([name, { wallAt }]) => {
          const server = serverOf.exec(name)?.[1];
          return server === undefined ? [] : [{ name, server, startedAt: wallAt }];
        })
        .sort((a, b) => a.startedAt - b.startedAt),
    async refresh(name, port) {
      const entry = entries.get(name);
      if (entry === undefined) return false;
      const now = { startedAt: clock.monotonic(), wallAt: clock.now(), token: tokenNow() };
      const fresh = await entry.ask(port);
      if (entries.get(name) !== entry) return false;
      const differs = !equal(fresh, await entry.answer);
      // Check the entry again: a caller may have replaced the old answer while this call waited for it.
      if (entries.get(name) !== entry) return false;
      // If a part of a server is gone, the server is gone. The other kept answers would still show the server.
      const [, server] = serverOf.exec(name) ?? [];
      if (differs && fresh === undefined && server !== undefined) forgetServer(server);
      else entries.set(name, { ...entry, ...now, answer: Promise.resolve(fresh) });
      return differs;
    },
  };
}
