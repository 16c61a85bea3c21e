import type { PriceSource } from '../../core/catalogue.ts';
import type { BlockCode } from '../../core/codes.ts';
import { member } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Price, World } from '../../core/kind.ts';
import { edit, type Remedy } from '../../core/remedy.ts';
import type { GpuPackage, ImageEntry, Server, ServerType } from '../../core/resources.ts';
import { findType, packageOf, priceOfSize, type Recorded } from '../prices.ts';
import { type ServerEntry, sliders } from './entry.ts';

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

function typeNotFound(entry: ServerEntry, types: readonly ServerType[]): BodyProblem {
  const reason = `the project's catalogue has no server type ${entry.server_type}`;
  const known = types.map(({ id, name }) => `${name} (id ${id})`);
  return { code: 'server_type_not_found', reason, remedies: choosing('server_type', known) };
}

/** Ids come before names, and images that a server can be created from come before the project's own ISOs. */
export function findImage(
  wanted: string,
  images: readonly ImageEntry[],
): { readonly id: string } | { readonly problem: BodyProblem } {
  const usable = images.filter(({ type }) => type !== 'useriso');
  const names = usable.map(({ name }) => name);
  const remedies = choosing('image', names);
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
    const reason = `${type.name} is sold in packages`;
    return { code: 'gpu_package_required', reason, remedies: choosing('gpu_package') };
  }
  const wrong = (
    [
      ['gpu_package', packaged],
      ['plan_id', type.pricing_mode === 'plans'],
      ...sliders.map((field) => [field, type.pricing_mode === 'sliders'] as const),
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
export function planProblem(entry: ServerEntry, type: ServerType, world: World): BodyProblem | undefined {
  const wanted = entry.plan_id;
  const plans = plansOf(type.id, world);
  if (wanted === undefined || plans.length === 0 || plans.some(({ id }) => id === wanted)) return undefined;
  const known = plans.map(({ id, name }) => (name === '' ? `${id}` : `${id} (${name})`));
  const reason = `${type.name} has no plan ${wanted}`;
  return { code: 'plan_not_found', reason, remedies: choosing('plan_id', known) };
}

export function plansOf(type: unknown, { catalogue }: World) {
  return catalogue.pricing.get(type as number)?.plans ?? [];
}

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
    const reason = `${type.name} does not sell ${wanted.join(', ')}`;
    return { problem: { code: 'gpu_package_not_found', reason, remedies: choosing('gpu_package', keys) } };
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
export const sizes = [...sliders, 'plan_id'] as const;

/** @assumption A39 */
function priceOf(type: ServerType, chosen: GpuPackage | undefined, entry: ServerEntry, world: World): Price {
  return chosen?.price == null ? priceOfSize(type, entry, world) : { known: chosen.price };
}
