import equal from 'fast-deep-equal';
import type { PriceSource } from '../../core/catalogue.ts';
import type { BlockCode } from '../../core/codes.ts';
import type { DesiredResource } from '../../core/desired.ts';
import { type Json, member } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Price, World } from '../../core/kind.ts';
import type { Change } from '../../core/plan.ts';
import { edit, type Remedy } from '../../core/remedy.ts';
import type { GpuPackage, ImageEntry, Server, ServerType } from '../../core/resources.ts';
import { findType, packageOf, priceOfSize, type Recorded } from '../prices.ts';
import type { ServerEntry } from './entry.ts';

/** The reason why a server cannot be created from its entry. */
export interface BodyProblem {
  readonly code: BlockCode;
  readonly reason: string;
  readonly remedies: (key: ResourceKey) => readonly Remedy[];
}

/** `POST /servers` without the address. */
export type ServerBody = Readonly<Record<string, unknown>>;

interface Resolved {
  readonly body: ServerBody;
  readonly warnings: readonly string[];
  readonly price: Price;
  /** Of the packages that the entry names. */
  readonly dearest?: Price;
}

/**
 * The body of a creation: type and image found in the catalogue, the sizing checked
 * against the type's pricing mode, the first GPU package that is sold and not exhausted.
 *
 * @source API §4 POST /servers body
 */
export function resolveBody(
  entry: ServerEntry,
  world: World,
  exhausted: readonly string[],
): Resolved | { readonly problem: BodyProblem } {
  const type = findType(entry.server_type, world.catalogue.types);
  if (type === undefined) return { problem: typeNotFound(entry, world.catalogue.types) };
  const image = findImage(entry.image ?? '', world.catalogue.images.get(type.id) ?? []);
  if ('problem' in image) return image;
  const sizing = modeProblem(entry, type) ?? planProblem(entry, type, world);
  if (sizing !== undefined) return { problem: sizing };
  const packages = world.catalogue.pricing.get(type.id)?.gpu_packages ?? [];
  const chosen = choosePackage(entry, packages, exhausted, type);
  if ('problem' in chosen) return chosen;
  return {
    body: {
      name: entry.name,
      server_type_id: type.id,
      image: image.id,
      cores: entry.cores,
      memory_mb: entry.memory_mb,
      disk_gb: entry.disk_gb,
      plan_id: entry.plan_id,
      gpu_package: chosen.package?.key,
      ssh_keys: entry.ssh_keys,
      gpus: entry.gpus,
      disk_type: entry.disk_type,
    },
    warnings: chosen.warnings,
    price: priceOf(type, chosen.package, entry, world),
    ...dearest(entry, packages),
  };
}

/**
 * Compares declared fields with the last applied fields, because no read shows them. Equal notation
 * is equal; otherwise both are compared as resolved (a name and its id are the same).
 * A server that this state did not create was never applied: the fields that its entry left out are
 * unknown, and not compared. If the spec changes a value that was only believed, the value is
 * corrected, and the server remains the same. `notes` name values that the catalogue no longer has.
 *
 * @param harmless fields whose change needs no replacement: shown by a read, or changed in place
 */
export function diffFields(
  entry: ServerEntry,
  applied: Json,
  world: World,
  harmless: (field: string) => boolean,
): { readonly changes: Change[]; readonly notes: readonly string[] } {
  const before = member(applied, 'entry') as ServerEntry | null | undefined;
  if (before === undefined || before === null) return { changes: [], notes: [] };
  const body = member(applied, 'body') ?? undefined;
  const changes = comparable.flatMap((field): Change[] => {
    const [from, to] = [before[field], entry[field]];
    if (to === undefined || equal(from, to)) return [];
    if (body === undefined && from === undefined) return [];
    if (body === undefined && !knownOf(applied).includes(field) && !harmless(field)) return [];
    const same =
      body === undefined
        ? equal(resolved(field, from, entry, world), resolved(field, to, entry, world))
        : isApplied(field, to, body, entry, world);
    if (same) return [];
    const sent = { server_type: member(body, 'server_type_id'), image: member(body, 'image') };
    const ids = {
      from: member(sent, field) ?? resolved(field, from, before, world),
      to: resolved(field, to, entry, world),
    };
    return [withIds({ path: field, from: from ?? null, to }, ids)];
  });
  return { changes, notes: withdrawn(entry, body, world) };
}

/** Applied fields that the entry leaves out: a new server would not get them. */
export function droppedFields(entry: ServerEntry, applied: Json): readonly Change[] {
  const before = member(applied, 'entry') as ServerEntry | null | undefined;
  const isKnown = (field: Comparable) => member(applied, 'body') != null || knownOf(applied).includes(field);
  return comparable.flatMap((path) => {
    const from = before?.[path];
    return from === undefined || entry[path] !== undefined || !isKnown(path)
      ? []
      : [{ path, from, to: null }];
  });
}

/** Names the ids behind the values of a type or image, where these values are names. */
export function withIds(change: Change, ids: Readonly<Record<'from' | 'to', unknown>>): Change {
  if (change.path !== 'server_type' && change.path !== 'image') return change;
  const behind = (side: 'from' | 'to') => {
    const id = ids[side] as string | number | undefined;
    return id === undefined || change[side] === null || String(id) === String(change[side])
      ? {}
      : { [`${side}_id`]: id };
  };
  return { ...change, ...behind('from'), ...behind('to') };
}

/** Fields of a server from outside this state that an operator has confirmed, or this state has sent. */
export function knownOf(applied: Json): readonly string[] {
  return (member(applied, 'known') ?? []) as readonly string[];
}

const comparable = [
  'server_type',
  'image',
  'cores',
  'memory_mb',
  'disk_gb',
  'plan_id',
  'gpu_package',
  'ssh_keys',
  'gpus',
  'disk_type',
] as const;
type Comparable = (typeof comparable)[number];

/** The fields of the entry that only the creation of the server decides. */
export function madeOf(entry: ServerEntry): readonly Comparable[] {
  return comparable.filter((field) => entry[field] !== undefined);
}

/** Whether the entry differs from the entry at the creation or adoption of the server, even in notation alone. */
export function isEdited({ value, named }: DesiredResource<ServerEntry>, applied: Json): boolean {
  const before = member(applied, 'entry') as ServerEntry | null | undefined;
  const fields = [...comparable, 'public_ipv4', ...(named === false ? [] : (['name'] as const))] as const;
  return before != null && fields.some((field) => !equal(before[field], value[field]));
}

/** Whether a declared value, in any notation, equals the value that the server was created with. */
function isApplied(field: Comparable, to: unknown, body: unknown, entry: ServerEntry, world: World): boolean {
  switch (field) {
    case 'server_type':
      return resolved(field, to, entry, world) === member(body, 'server_type_id');
    case 'gpu_package':
      return [to].flat().includes(member(body, 'gpu_package'));
    default:
      return equal(resolved(field, member(body, field), entry, world), resolved(field, to, entry, world));
  }
}

/** Names become ids if the catalogue has them; all other values remain unchanged. */
function resolved(field: Comparable, value: unknown, entry: ServerEntry, world: World): unknown {
  const { types, images } = world.catalogue;
  if (field === 'server_type') return findType(value, types)?.id ?? value;
  if (field === 'ssh_keys') return Array.isArray(value) ? [...value].sort() : [];
  if (field !== 'image') return value;
  const type = findType(entry.server_type, types);
  const found = type && findImage(String(value), images.get(type.id) ?? []);
  return found !== undefined && 'id' in found ? found.id : value;
}

function withdrawn(entry: ServerEntry, body: unknown, world: World): string[] {
  const bought = member(body, 'gpu_package');
  const pricing = world.catalogue.pricing.get(member(body, 'server_type_id') as number);
  if (entry.gpu_package === undefined || bought === undefined || pricing === undefined) return [];
  return pricing.gpu_packages.some(({ key }) => key === bought)
    ? []
    : [`package ${bought} is no longer sold: vdcsync could not create this server again`];
}

function typeNotFound(entry: ServerEntry, types: readonly ServerType[]): BodyProblem {
  return {
    code: 'server_type_not_found',
    reason: `the project's catalogue has no server type ${entry.server_type}`,
    remedies: choosing(
      'server_type',
      types.map(({ id, name }) => `${name} (id ${id})`),
    ),
  };
}

/** Ids come before names, and images that a server can be created from come before the project's own ISOs. */
function findImage(
  wanted: string,
  images: readonly ImageEntry[],
): { readonly id: string } | { readonly problem: BodyProblem } {
  const usable = images.filter(({ type }) => type !== 'useriso');
  const remedies = choosing(
    'image',
    usable.map(({ name }) => name),
  );
  const byId = images.find(({ id }) => id === wanted);
  const [byName, another] = usable.filter(({ name }) => name === wanted);
  const found = byId ?? byName ?? images.find(({ name }) => name === wanted);
  if (found === undefined) {
    const reason = `the server type has no image ${wanted}`;
    return { problem: { code: 'image_not_found', reason, remedies } };
  }
  if (found.type === 'useriso') {
    const reason = `${wanted} is an ISO of the project, and a server cannot be created from an ISO`;
    return { problem: { code: 'image_not_supported', reason, remedies } };
  }
  if (byId === undefined && another !== undefined) {
    const reason = `several images are named ${wanted}`;
    const ids = [found.id, another.id];
    const remedies = (key: ResourceKey) => ids.map((image) => edit(key, { set: { image } }));
    return { problem: { code: 'image_ambiguous', reason, remedies } };
  }
  return { id: found.id };
}

/** @source API §4 rules for packaged graphics-card types */
export function modeProblem(entry: ServerEntry, type: ServerType): BodyProblem | undefined {
  const packaged = type.pricing_mode === 'fixed' && type.gpu;
  if (packaged && entry.gpu_package === undefined) {
    return {
      code: 'gpu_package_required',
      reason: `${type.name} is sold in packages`,
      remedies: choosing('gpu_package'),
    };
  }
  const wrong = (
    [
      ['gpu_package', packaged],
      ['plan_id', type.pricing_mode === 'plans'],
      ['cores', type.pricing_mode === 'sliders'],
      ['memory_mb', type.pricing_mode === 'sliders'],
      ['disk_gb', type.pricing_mode === 'sliders'],
    ] as const
  ).find(([field, fits]) => entry[field] !== undefined && !fits);
  const mode = type.pricing_mode;
  if (wrong === undefined || !Object.hasOwn(sizing, mode)) return undefined;
  return {
    code: 'sizing_mode_mismatch',
    reason: `server type ${type.name} is sized by ${mode}, and does not take ${wrong[0]}`,
    remedies: (key) => [edit(key, { choose: sizing[mode as keyof typeof sizing], remove: [wrong[0]] })],
  };
}

/** @assumption A54 */
export function planProblem(
  { plan_id: wanted }: ServerEntry,
  type: ServerType,
  world: World,
): BodyProblem | undefined {
  const plans = plansOf(type.id, world);
  if (wanted === undefined || plans.length === 0 || plans.some(({ id }) => id === wanted)) return undefined;
  return {
    code: 'plan_not_found',
    reason: `${type.name} has no plan ${wanted}`,
    remedies: choosing(
      'plan_id',
      plans.map(({ id, name }) => (name === '' ? `${id}` : `${id} (${name})`)),
    ),
  };
}

export function plansOf(type: unknown, { catalogue }: World) {
  return catalogue.pricing.get(type as number)?.plans ?? [];
}

/**
 * Fields of a creation that no read can check before the write, and that differ from the fields that the API last
 * accepted for this very server. Each accepted SSH key counts as proven, also without the others.
 */
export function unproven(body: ServerBody, applied: Json, world: World): string[] {
  const accepted = member(applied, 'body');
  const sameType = member(accepted, 'server_type_id') === body.server_type_id;
  const listed = plansOf(body.server_type_id, world).length > 0;
  return uncheckable.filter((field) => {
    const [before, now] = [member(accepted, field), body[field]];
    if (now === undefined || (field === 'plan_id' && listed)) return false;
    if (field === 'ssh_keys') return (now as readonly unknown[]).some((id) => ![before].flat().includes(id));
    return !equal(before, now) || (field !== 'name' && !sameType);
  });
}

const uncheckable = [
  'name',
  'cores',
  'memory_mb',
  'disk_gb',
  'plan_id',
  'ssh_keys',
  'gpus',
  'disk_type',
] as const;

/** Fields that size a server, by the pricing mode of its type. */
const sizing = {
  sliders: { cores: [], memory_mb: [], disk_gb: [] },
  plans: { plan_id: [] },
  fixed: { gpu_package: [] },
};

function choosing(field: string, among: readonly string[] = []): BodyProblem['remedies'] {
  return (key) => [edit(key, { choose: { [field]: among } })];
}

function choosePackage(
  entry: ServerEntry,
  sold: readonly GpuPackage[],
  exhausted: readonly string[],
  type: ServerType,
):
  | { readonly package: GpuPackage | undefined; readonly warnings: readonly string[] }
  | { readonly problem: BodyProblem } {
  if (entry.gpu_package === undefined) return { package: undefined, warnings: [] };
  const wanted = [entry.gpu_package].flat() as readonly string[];
  const keys = sold.map(({ key }) => key);
  const available = wanted.flatMap((key) => sold.filter((each) => each.key === key));
  if (available.length === 0) {
    return {
      problem: {
        code: 'gpu_package_not_found',
        reason: `${type.name} does not sell ${wanted.join(', ')}`,
        remedies: choosing('gpu_package', keys),
      },
    };
  }
  const missing = wanted.filter((key) => !keys.includes(key));
  return {
    package: available.find(({ key }) => !exhausted.includes(key)) ?? available[0],
    warnings: missing.map(
      (key) => `server type ${type.name} does not sell ${key}: vdcsync takes the next package of the list`,
    ),
  };
}

/** vdcsync buys the first package with free graphics cards, so the price may be that of any package. */
function dearest({ gpu_package }: ServerEntry, sold: readonly GpuPackage[]): Pick<Resolved, 'dearest'> {
  const wanted = [gpu_package].flat();
  const prices = sold.filter(({ key }) => wanted.includes(key)).flatMap(({ price }) => price ?? []);
  const most = prices.reduce((one, other) => (Number(other) > Number(one) ? other : one), prices[0] ?? '');
  return prices.length < 2 ? {} : { dearest: { known: most } };
}

/**
 * The price of an existing server, by the catalogue and the price list: by the sizes that reads show, else by the
 * request that created the server, and for an adopted server by the first entry in the spec. @assumption A39
 */
export function priceApplied(server: Recorded, shown: Server | undefined, world: PriceSource): Price {
  const body = member(server.binding?.applied, 'body');
  if (member(body, 'gpu_package') !== undefined) {
    const bought = packageOf(server, world);
    if (bought === undefined)
      return { unknown: 'only the catalogue of the API has the price of a graphics card package' };
    return bought.price == null ? { unknown: 'its price is not shown' } : { known: bought.price };
  }
  const made = madeAs(server, shown);
  return priceOfSize(typeOf(made, world), made, world);
}

/** The known fields of an existing server. */
export function madeAs({ binding, desired }: Recorded, shown: Server | undefined): Made {
  const said = { ...(desired?.value as object), ...(member(binding?.applied, 'entry') as object) };
  const seen = sizes.flatMap((size) => (shown?.[size] === undefined ? [] : [[size, shown[size]] as const]));
  return { ...((member(binding?.applied, 'body') as object) ?? said), ...Object.fromEntries(seen) };
}

export type Made = Partial<ServerEntry> & { readonly server_type_id?: number };

export function typeOf({ server_type_id, server_type }: Made, world: PriceSource): ServerType | undefined {
  return findType(server_type_id ?? server_type, world.catalogue.types);
}

/** The fields that the profile's `resize_server` can change in place. */
export const sizes = ['cores', 'memory_mb', 'disk_gb', 'plan_id'] as const;

/** @assumption A39 */
function priceOf(type: ServerType, chosen: GpuPackage | undefined, entry: ServerEntry, world: World): Price {
  return chosen?.price == null ? priceOfSize(type, entry, world) : { known: chosen.price };
}
