import { appliedServer } from '../core/applied.ts';
import type { Catalogue } from '../core/catalogue.ts';
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
import type { ReadPort } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { Project } from '../core/resources.ts';
import type { Binding, StateInfo } from '../core/state.ts';
import { createWorld } from '../core/world.ts';

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
 * on no list, so no list is read for it.
 */
export async function observeOne(
  { read, kinds }: ObserveInput,
  before: World,
  key: ResourceKey,
): Promise<Observations> {
  const subject = before.subjects.get(key);
  const alone = subject?.parent !== undefined;
  const ips = alone ? before.ips : await read.ips();
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

export function worldOf({ desired, profile, proofChecks, read }: ObserveInput, parts: Parts): World {
  const { project, ips, networks, servers, catalogue, subjects, observed } = parts;
  const { settings } = desired;
  const [apiNow, now] = [read.apiNow(), read.now()];
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
