import type { AppliedValues, PriceSource } from '../core/catalogue.ts';
import { money, part, sumDecimals } from '../core/decimal.ts';
import { member } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Price, Subject, World } from '../core/kind.ts';
import type { ServerPrices } from '../core/profile.ts';
import type { GpuPackage, ServerType } from '../core/resources.ts';

/** The price of a size by the operator's own price list, or the reason why the price is unknown. @assumption A39 */
export function priceOfSize(type: ServerType | undefined, size: SizedServer, world: PriceSource): Price {
  const mode = type === undefined ? 'its type' : `${type.pricing_mode} types`;
  const list =
    type && (world.profile.prices?.servers?.[type.name] ?? world.profile.prices?.servers?.[String(type.id)]);
  if (list === undefined) return { unknown: `the price of ${mode} is not shown` };
  return size.plan_id === undefined ? bySliders(list, size) : byPlan(list, size.plan_id);
}

export interface SizedServer {
  readonly cores?: number | undefined;
  readonly memory_mb?: number | undefined;
  readonly disk_gb?: number | undefined;
  readonly plan_id?: number | undefined;
}

function byPlan({ plans }: ServerPrices, plan: number): Price {
  const price = plans?.[String(plan)];
  return price === undefined ? { unknown: `the price list has no plan ${plan}` } : { known: price };
}

function bySliders(list: ServerPrices, { cores, memory_mb, disk_gb }: SizedServer): Price {
  const { core, memory_gb, disk_gb: disk, base = '0' } = list;
  if (cores === undefined || memory_mb === undefined || disk_gb === undefined)
    return { unknown: 'its size is not known' };
  if (core === undefined || memory_gb === undefined || disk === undefined) {
    return { unknown: 'the price list lacks core, memory_gb or disk_gb of its type' };
  }
  const parts = [base, part(core, cores), part(memory_gb, memory_mb, 1024), part(disk, disk_gb)];
  return { known: money(sumDecimals(parts)) };
}

export const priceBySize: Price = { unknown: 'the price of a backup depends on its size' };

/** One price for all backups of a server in a package. @source API §1.5 */
export function flatPrice(
  server: ResourceKey | undefined,
  world: Pick<World, 'subjects' | 'catalogue'>,
): string | undefined {
  return server && (packageOf(world.subjects.get(server), world)?.backup_price ?? undefined);
}

/** The price of all backups of a server. */
export function priceOfBackups(server: ResourceKey | undefined, world: World): Price {
  const known = flatPrice(server, world);
  return known === undefined ? { unknown: 'the price of backups depends on their size' } : { known };
}

/** The price in the price list, if it has one. */
export function priceOfAddress(world: PriceSource): Price {
  const known = world.profile.prices?.address;
  return known === undefined ? { unknown: 'the price of an address is not shown' } : { known };
}

export function priceOfInterface(world: PriceSource): Price {
  const known = world.profile.prices?.network_interface;
  return known === undefined ? { unknown: 'the price of a network interface is not shown' } : { known };
}

/** The type an entry means, by name or id. */
export function findType(wanted: unknown, types: readonly ServerType[]): ServerType | undefined {
  return types.find(({ name }) => name === wanted) ?? types.find(({ id }) => String(id) === String(wanted));
}

/** The part of a subject that shows how a server was made. */
export type Recorded = Pick<Subject, 'desired'> & {
  readonly binding?: AppliedValues | undefined;
};

/** The package that a server was created from, or would be; `undefined` if it is not sold or there is none. */
export function packageOf(
  server: Recorded | undefined,
  world: Pick<PriceSource, 'catalogue'>,
): GpuPackage | undefined {
  const body = member(server?.binding?.applied, 'body');
  const entry = server?.desired?.value;
  const type =
    member(body, 'server_type_id') ?? findType(member(entry, 'server_type'), world.catalogue.types)?.id;
  const sold = world.catalogue.pricing.get(type as number)?.gpu_packages ?? [];
  const wanted = [member(body, 'gpu_package') ?? member(entry, 'gpu_package')].flat();
  return wanted.flatMap((key) => sold.find((each) => each.key === key) ?? [])[0];
}
