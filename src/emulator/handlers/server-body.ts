import type { Context, Fields } from '../call.ts';
import { SIZE_BOUNDS } from '../catalogue.ts';
import { type InvalidParam, invalid, Refusal } from '../problem.ts';
import { bindTemplate, namedAddressTemplate } from '../template.ts';
import { flag, integer, list, object, readBody, text } from '../validate.ts';
import type { GpuPackage, Server, ServerType } from '../world.ts';
import { findType } from './server-types.ts';

/** `public_ipv4` of the body: absent, `{new: true}`, `{reuse: true}`, or a named address. `@source API §4` */
export type PublicAddress =
  | { kind: 'none' }
  | { kind: 'new' }
  | { kind: 'reuse' }
  | { kind: 'named'; ipId: number };

/** A server-creation body that has passed every check that needs no spending. */
interface WantedServer {
  name: string;
  type: ServerType;
  image: string;
  sizes: Pick<Server, 'cores' | 'memoryMb' | 'diskGb' | 'planId'>;
  sold: GpuPackage | null;
  address: PublicAddress;
  sshKeys: number[];
}

/** `@source API §4 POST /servers body` */
export function readServerBody(context: Context, body: Fields): WantedServer {
  const type = findType(context, body.server_type_id as number);
  const checks = checksOf(context, type, body);
  return {
    name: body.name as string,
    type,
    ...checks.size(),
    image: checks.image(),
    address: checks.address(),
    sshKeys: checks.sshKeys(),
  };
}

/** The checks of a body that need its server type, in their order. */
function checksOf(context: Context, type: ServerType, body: Fields) {
  return {
    size: () =>
      type.pricingMode === 'fixed'
        ? { sold: readPackage(context, type, body), sizes: NO_SIZES }
        : { sold: null, sizes: readSizes(context, type, body) },
    image: () => readImage(context, type, (body.image as string).trim()),
    address: () => readAddress(context, body.public_ipv4),
    sshKeys: () => readSshKeys(context, (body.ssh_keys as number[] | undefined) ?? []),
  };
}

/** The fields of the body, checked without any context: the names are known and the types are right. */
export function readServerFields(context: Context): Fields {
  const { normalise } = context.readings;
  // Only the profile shows the named form.
  const isNamedShown = namedAddressTemplate(context.settings.profile) !== null;
  try {
    return readBody(context.body, isNamedShown ? WITH_NAMED_ADDRESS : SERVER, normalise);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw besideUnknown(context, error);
  }
}

/** The refusal of a body, with the further faults that it names if a field is unknown. `@assumption A73` */
function besideUnknown(context: Context, refusal: Refusal): Refusal {
  const fields = SERVER.shape;
  const named = refusal.details.invalidParams ?? [];
  const isUnknown = ({ name }: { name: string }) => !Object.hasOwn(fields, name.split('.')[0] ?? name);
  if (named.length === 0 || !named.some(isUnknown)) return refusal;
  const body = Object.fromEntries(
    Object.entries(context.body as object).filter(([name]) => Object.hasOwn(fields, name)),
  );
  switch (context.readings.besideUnknownField) {
    case 'forms':
      return refusal;
    case 'nothing':
      return invalid(...named.filter(isUnknown));
    case 'limits':
      return invalid(...named, ...beyondLimits(body));
    case 'everything':
      return named.every(isUnknown) ? withChecks(context, body, named) : refusal;
  }
}

/** Values beyond the range of their field. */
function beyondLimits(body: Fields): InvalidParam[] {
  return SIZES.filter((name) => Number(body[name]) > 1_000_000).map((name) => ({
    name,
    reason: 'must be at most 1000000',
  }));
}

/** One refusal with all faults of the body without the unknown field. A refusal with its own code comes alone. */
function withChecks(context: Context, body: Fields, named: InvalidParam[]): Refusal {
  const params = [...named];
  try {
    const type = findType(context, body.server_type_id as number);
    for (const check of Object.values(checksOf(context, type, body))) params.push(...faultsOf(check));
    return invalid(...params);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error;
  }
}

/** The fields that the check refuses. */
function faultsOf(check: () => unknown): InvalidParam[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'invalid_request') throw error;
    return error.details.invalidParams ?? [];
  }
}

const SERVER = object({
  name: text(1, 255),
  server_type_id: integer(1),
  image: text(1),
  cores: integer(1).optional(),
  memory_mb: integer(1).optional(),
  disk_gb: integer(1).optional(),
  plan_id: integer(1).optional(),
  gpu_package: text(1).optional(),
  ssh_keys: list(integer(1)).optional(),
  gpus: integer(0).optional(),
  disk_type: text(1).optional(),
  public_ipv4: object({ new: flag.optional(), reuse: flag.optional() }).optional(),
});
const WITH_NAMED_ADDRESS = SERVER.extend({ public_ipv4: object({}).loose().optional() });

const SIZES = ['cores', 'memory_mb', 'disk_gb'] as const;
const NO_SIZES = { cores: null, memoryMb: null, diskGb: null, planId: null };

/** The rules of packaged graphics-card types. `@source API §4` `@assumption A25` */
function readPackage(context: Context, type: ServerType, body: Fields): GpuPackage {
  const status = context.readings.unshownStatus;
  const refuse = (code: string, detail: string): never => {
    throw new Refusal(status, code, detail);
  };
  if (body.gpu_package === undefined) refuse('gpu_package_required', 'This server type is sold in packages.');
  const sized = [...SIZES, 'plan_id'].filter((name) => body[name] !== undefined);
  if (sized.length > 0) {
    throw new Refusal(422, 'resources_managed_by_package', 'The package sets the size.', {
      invalidParams: sized.map((name) => ({ name, reason: 'is set by the package' })),
    });
  }
  if (body.gpus !== undefined) refuse('gpus_not_supported', 'The package sets the number of graphics cards.');
  if (body.disk_type !== undefined) refuse('disk_type_not_supported', 'The package sets the disk.');
  const key = (body.gpu_package as string).trim();
  const sold = type.packages.find((candidate) => candidate.key === key && !candidate.withdrawn);
  return sold ?? refuse('gpu_package_not_found', `The package ${key} is not sold.`);
}

/** Slider types want the three sizes, plan types a plan, neither a package. `@assumption A31` */
function readSizes(context: Context, type: ServerType, body: Fields): WantedServer['sizes'] {
  const needed = type.pricingMode === 'sliders' ? SIZES : (['plan_id'] as const);
  const foreign = [...SIZES, 'plan_id', 'gpu_package'].filter(
    (name) => body[name] !== undefined && !(needed as readonly string[]).includes(name),
  );
  const missing = needed.filter((name) => body[name] === undefined);
  const out = SIZES.filter((name) => {
    const { min, max } = SIZE_BOUNDS[name];
    const value = body[name] as number | undefined;
    return context.readings.sizeBounds === 'on' && value !== undefined && (value < min || value > max);
  });
  const faults = [
    ...missing.map((name) => ({ name, reason: 'is required for this server type' })),
    ...foreign.map((name) => ({ name, reason: 'does not belong to this server type' })),
    ...out.map((name) => ({
      name,
      reason: `must be from ${SIZE_BOUNDS[name].min} to ${SIZE_BOUNDS[name].max}`,
    })),
  ];
  if (faults.length > 0) throw invalid(...faults);
  if (type.pricingMode === 'sliders') {
    return {
      cores: body.cores as number,
      memoryMb: body.memory_mb as number,
      diskGb: body.disk_gb as number,
      planId: null,
    };
  }
  const plan = type.plans.find((candidate) => candidate.id === body.plan_id);
  if (plan === undefined) throw invalid({ name: 'plan_id', reason: 'is not a plan of this server type' });
  return { cores: plan.cores, memoryMb: plan.memoryMb, diskGb: plan.diskGb, planId: plan.id };
}

/** An id of the type's image list. The list also shows the project's own ISOs, which are refused here. `@source API §2` */
function readImage(context: Context, type: ServerType, image: string): string {
  if (type.images.some((candidate) => candidate.id === image)) return image;
  if (context.project.isos.some((iso) => iso.id === image)) {
    throw new Refusal(422, 'image_not_supported', 'A server cannot be created from an ISO.');
  }
  throw invalid({ name: 'image', reason: "is not in the server type's image list" });
}

/** `@assumption A36` */
function readSshKeys(context: Context, ids: number[]): number[] {
  const unknown = ids.filter((id) => !context.world.account.sshKeys.some((key) => key.id === id));
  if (unknown.length === 0) return [...new Set(ids)];
  if (context.readings.unknownSshKey === '422 invalid_request') {
    throw invalid({ name: 'ssh_keys', reason: `there is no key ${unknown.join(', ')}` });
  }
  throw new Refusal(404, 'ssh_key_not_found', `There is no key ${unknown.join(', ')}.`);
}

/** Exactly one form, and its flag true. `@assumption A22` */
function readAddress(context: Context, value: unknown): PublicAddress {
  if (value === undefined) return { kind: context.readings.omittedIpv4 };
  const given = value as Record<string, unknown>;
  const names = Object.keys(given);
  if (names.length === 1 && given.new === true) return { kind: 'new' };
  if (names.length === 1 && given.reuse === true) return { kind: 'reuse' };
  const template = namedAddressTemplate(context.settings.profile);
  const flags = names.every((name) => name === 'new' || name === 'reuse');
  if (template !== null && !flags) {
    const { ip_id: ipId } = bindTemplate(template, given, 'public_ipv4');
    if (!Number.isSafeInteger(ipId))
      throw invalid({ name: 'public_ipv4', reason: 'must name an address by its id' });
    return { kind: 'named', ipId: ipId as number };
  }
  throw invalid({ name: 'public_ipv4', reason: 'must be {"new": true} or {"reuse": true}' });
}
