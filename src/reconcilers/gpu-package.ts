import type { AppliedValues, PriceSource } from '../core/catalogue.ts';
import { member } from '../core/json.ts';
import type { Subject } from '../core/kind.ts';
import type { GpuPackage, ServerType } from '../core/resources.ts';

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
