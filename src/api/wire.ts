import { z } from 'zod';
import { given } from '../core/json.ts';
import type {
  Backup,
  BackupPolicy,
  Firewall,
  GpuPackage,
  ImageEntry,
  Ip,
  IpId,
  Iso,
  IsoId,
  Network,
  NetworkId,
  NetworkInterface,
  NetworkInterfaceId,
  Project,
  ProjectId,
  Server,
  ServerId,
  ServerType,
  ServerTypeId,
  ServerTypePricing,
  Task,
  TaskId,
} from '../core/resources.ts';
import { isIpv4, isPlainId } from '../core/text.ts';
import { excerptOf, isRecord } from './answer.ts';

/**
 * How the API's answers are read. Every field that the document shows must have its documented type,
 * unknown fields are ignored, and fields that the document leaves open are
 * read tolerantly. A mismatch is an error with its path. No row is dropped, because a
 * list with a missing row would mean a deleted resource.
 *
 * @source API §2
 */

/** Brands exist in the types alone. */
const numberId = <Id extends number>() => z.int() as unknown as z.ZodType<Id>;
/** Text ids; a number in their place is the same id. @assumption A65 */
const textId = <Id extends string>() =>
  z.union([
    z.string().refine(isPlainId, 'this text cannot be an id'),
    z.int().transform(String),
  ]) as unknown as z.ZodType<Id>;
/** Commands that an operator copies contain the address, so it must be an address. */
const ipv4 = z.string().refine(isIpv4, 'this text is not an IPv4 address');
/** A field that may be missing or null, and is this value then. */
const optional = <T extends z.ZodType, Fallback>(schema: T, fallback: Fallback) =>
  schema.nullish().transform((value) => value ?? fallback);
const nullable = <T extends z.ZodType>(schema: T) => optional(schema, null);
/** A timestamp stays the text it is. */
const timestamp = z.string().min(1);

/** The status is any text, because only `Active` is documented. @assumption A20 */
export const projectSchema: z.ZodType<Project> = z.object({
  id: numberId<ProjectId>(),
  name: z.string(),
  status: z.string(),
});

/** A row without a valid IPv4 address or without `server_id` makes the whole answer unreadable. */
export const ipSchema: z.ZodType<Ip> =
  // `server_id` is asked for even as null: without it an attached address would read as free.
  z.object({
    id: numberId<IpId>(),
    address: ipv4,
    server_id: numberId<ServerId>().nullable(),
    primary: z.boolean(),
  });

/** The disc in the drive: an id, an object with one, or null; in another form it is not shown. @assumption A50 */
const shownIso = z
  .union([textId<IsoId>(), z.null(), z.object({ id: textId<IsoId>() }).transform(({ id }) => id)])
  .optional()
  .catch(undefined);

/** A size in a form of its own is not understood, so it is not shown. */
const shownSize = z.int().min(1).optional().catch(undefined);

/** Sizes and drive are optional: only a profile shows them. @assumption A48 A50 */
export const serverSchema: z.ZodType<Server> = z
  .object({
    id: numberId<ServerId>(),
    name: z.string(),
    status: z.string(),
    cores: shownSize,
    memory_mb: shownSize,
    disk_gb: shownSize,
    plan_id: shownSize,
    iso_id: shownIso,
    iso: shownIso,
  })
  .transform(({ cores, memory_mb, disk_gb, plan_id, iso, iso_id = iso, ...shown }) => ({
    ...shown,
    ...given({ iso: iso_id, cores, memory_mb, disk_gb, plan_id }),
  }));

/** `server_count` may be missing or `null`, and is then `null`. @assumption A47 */
export const networkSchema: z.ZodType<Network> = z.object({
  id: numberId<NetworkId>(),
  name: z.string(),
  cidr: z.string(),
  is_default: z.boolean(),
  server_count: nullable(z.int()),
});

/** An address of a network interface, as text or in an object; in another form it is not shown. @assumption A53 */
const interfaceAddress = z
  .union([z.string().min(1), z.object({ address: z.string().min(1) }).transform(({ address }) => address)])
  .optional()
  .catch(undefined);

/** Keeps the IPv4 addresses without their prefix, and leaves out addresses in another form. @assumption A53 */
export const networkInterfaceSchema: z.ZodType<NetworkInterface> = z
  .object({
    id: textId<NetworkInterfaceId>(),
    public: z.boolean(),
    network_id: nullable(numberId<NetworkId>()),
    ips: z.array(interfaceAddress).optional().catch(undefined),
  })
  .transform(({ ips = [], ...card }) => ({
    ...card,
    addresses: ips.flatMap((each) => each?.split('/')[0] ?? []).filter(isIpv4),
  }));

/** Keeps every field of a rule, because a write replaces the whole rule. @assumption A32 */
export const firewallSchema: z.ZodType<Firewall> = z.object({
  enabled: z.boolean(),
  policy_in: z.string(),
  policy_out: nullable(z.string()),
  rules: z.array(z.looseObject({})),
});

/** The status is any text: values other than `creating` and `available` are not shown. @source API §2 */
export const backupSchema: z.ZodType<Backup> = z.object({
  id: textId(),
  server_id: numberId<ServerId>(),
  status: z.string(),
  size_bytes: nullable(z.int()),
  created_at: timestamp,
});

/** The values of `days` are not checked, so that an unknown day does not make the policy unreadable. */
export const backupPolicySchema: z.ZodType<BackupPolicy> = z.object({
  enabled: z.boolean(),
  days: z.array(z.string()),
  hour: z.int(),
  minute: z.int(),
  keep: z.int(),
  next_run: nullable(timestamp),
  last_run: nullable(timestamp),
});

const readyWords = [
  'available',
  'ready',
  'completed',
  'complete',
  'done',
  'downloaded',
  'succeeded',
  'success',
  'ok',
  'active',
];
const failedWords = ['failed', 'failure', 'error'];
const pendingWords = [
  'pending',
  'queued',
  'creating',
  'downloading',
  'running',
  'in_progress',
  'processing',
  'importing',
  'new',
];

/** @assumption A24 names of the status and of the reason */
export const isoSchema: z.ZodType<Iso> = z
  .looseObject({ id: textId<IsoId>(), name: z.string() })
  .transform((iso) => ({
    id: iso.id,
    name: iso.name,
    // `download_status` is the more certain of the two: if both exist, a plain `status` may describe something else.
    download: downloadOf(iso.download_status ?? iso.status),
    reason: firstText(iso.error, iso.failure_reason, iso.reason),
  }));

function downloadOf(status: unknown): Iso['download'] {
  if (typeof status !== 'string') return 'unknown';
  const word = status.trim().toLowerCase();
  if (readyWords.includes(word)) return 'ready';
  if (failedWords.includes(word)) return 'failed';
  return pendingWords.includes(word) ? 'pending' : 'unknown';
}

/** The first of the values that is a text, or an error object with one; `null` without any. */
function firstText(...values: readonly unknown[]): string | null {
  for (const value of values) {
    const { detail, message, title, code } = isRecord(value) ? value : {};
    const text = [value, detail, message, title, code].find((each) => typeof each === 'string');
    if (text !== undefined && text.trim() !== '') return excerptOf(text);
  }
  return null;
}

const taskStatuses = ['pending', 'running', 'succeeded', 'failed'] as const;

/**
 * `is_terminal` decides whether the task has ended, and the status with which result. If the two contradict each other,
 * the answer is ignored.
 */
export const taskSchema: z.ZodType<Task> = z
  .looseObject({
    id: textId<TaskId>(),
    status: z.string(),
    is_terminal: z.boolean(),
  })
  .transform((task, context) => {
    const known = taskStatuses.find((each) => each === task.status);
    const ended = known === 'succeeded' || known === 'failed';
    if (task.is_terminal && !ended) {
      const message = `${JSON.stringify(excerptOf(task.status))} is not a documented status of an ended task`;
      context.issues.push({ code: 'custom', message, input: task.status, path: ['status'] });
      return z.NEVER;
    }
    return {
      id: task.id,
      // A task that is not terminal counts as running, for any other status.
      status: task.is_terminal || known === 'pending' ? (known ?? 'running') : 'running',
      is_terminal: task.is_terminal,
      detail: firstText(task.error, task.detail, task.message, task.reason),
    };
  });

/** `gpu` is `false` where it is missing. `pricing_mode` is any text. */
export const serverTypeSchema: z.ZodType<ServerType> = z.object({
  id: numberId<ServerTypeId>(),
  name: z.string(),
  pricing_mode: z.string(),
  gpu: optional(z.boolean(), false),
});

/**
 * Decimal text. A number arrives here as its digits in the answer (see `parseKeepingDecimals`).
 * A value that is no decimal number is an unknown price, which is never counted as zero.
 */
const price = z
  .unknown()
  .optional()
  .transform((value) =>
    typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value.trim()) ? value.trim() : null,
  );

const gpuPackageSchema: z.ZodType<GpuPackage> = z.object({
  key: z.string(),
  name: optional(z.string(), ''),
  price,
  backup_price: price,
});

const planSchema = z.object({
  id: z.int(),
  name: z.string().catch(''),
  disk_gb: z.number().optional().catch(undefined),
});

/** @source API §2: `gpu_packages` is for `fixed` types. @assumption A54 `plans` */
export const pricingSchema: z.ZodType<ServerTypePricing> = z.object({
  gpu_packages: optional(z.array(gpuPackageSchema), []),
  plans: z.array(planSchema).optional().catch(undefined),
});

/** An id is opaque text, or the id of an ISO. @source API §2 */
export const imageEntrySchema: z.ZodType<ImageEntry> = z.object({
  id: textId(),
  name: z.string(),
  type: z.string(),
});

/** The members of an object that hold money. */
const moneyFields: ReadonlySet<string> = new Set(['price', 'backup_price']);

/**
 * `JSON.parse` that returns money as the text it has in the answer: `12.10` stays `"12.10"`,
 * and no binary fraction ever represents a price.
 */
export function parseKeepingDecimals(text: string): unknown {
  // An escape can hide the name of a field. Without a reviver, the rest takes a fifth of the time.
  if (!text.includes('price') && !text.includes('\\')) return JSON.parse(text);
  const parse = JSON.parse as (
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ) => unknown;
  return parse(text, (key, value, { source }) => {
    if (typeof value !== 'number' || !moneyFields.has(key)) return value;
    if (source !== undefined && /^-?\d+(\.\d+)?$/.test(source)) return source;
    // The one other form that JSON knows has an exponent.
    return value.toLocaleString('en-US', { useGrouping: false, maximumFractionDigits: 20 });
  });
}

/** The payload under `data`, or the first error with its path, such as `data.3.cidr: expected string`. */
export function readData<T>(
  body: unknown,
  schema: z.ZodType<T>,
): { readonly data: T } | { readonly mismatch: string } {
  const envelope = anyObject.safeParse(body);
  if (!envelope.success) return { mismatch: mismatchOf(envelope.error, []) };
  const result = schema.safeParse(envelope.data.data);
  return result.success ? { data: result.data } : { mismatch: mismatchOf(result.error, ['data']) };
}

const anyObject = z.looseObject({});

function mismatchOf({ issues }: z.ZodError, base: readonly string[]): string {
  return issues
    .slice(0, 3)
    .map(({ path, message }) => `${[...base, ...path].join('.') || 'body'}: ${message}`)
    .join('; ');
}
