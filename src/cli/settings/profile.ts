import * as z from 'zod';
import { ConfigError, type Diagnostic, formatDiagnostic } from '../../core/errors.ts';
import {
  type ApiProfile,
  documentedProfile,
  type PriceList,
  presumedCall,
  undocumentedOperations,
} from '../../core/profile.ts';
import { printable } from '../../core/text.ts';
import { parseDuration } from '../../core/time.ts';
import { operatorsSpec } from '../../spec/environment.ts';
import { checkSchema, find, type Located, type Report } from '../../spec/located.ts';
import { readYaml } from '../../spec/yaml-tree.ts';

const duration = durationOf(1, 'must be a duration over zero such as 60s or 1m');
const count = z.int().min(1);

const writes = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;
const anyMethod: readonly string[] = ['GET', ...writes];

const template = z
  .strictObject({
    method: z.enum(['GET', ...writes]).optional(),
    path: z
      .string()
      .regex(/^\/[^?#\s]*$/, { error: 'must start with / and hold no query' })
      .optional()
      .describe('Path below the base URL. {id}, {server_id} and similar names are replaced by values.'),
    body: z
      .unknown()
      .optional()
      .describe(
        'Sent unchanged, except that "{name}" as a complete value is replaced by the value of that name.',
      ),
  })
  .describe('Method, path and body of the operation. A missing field has its default.');

/** A number of the file is the decimal in its text, as far as a number can hold the decimal exactly. */
const price = z
  .union([
    z.string().regex(/^\d+(\.\d+)?$/, { error: 'must be an amount such as 3.50' }),
    z.number().min(0).max(1e9),
  ])
  .transform((amount) => String(amount))
  .describe('Monthly.');

/** The content of a price list. Every key is optional. A price that it does not name stays unknown. */
export const pricesSchema = z
  .strictObject({
    currency: z.string().min(1).optional().describe('Shown after amounts.'),
    address: price.optional(),
    network_interface: price.optional(),
    servers: z
      .record(
        z.string(),
        z.strictObject({
          base: price.optional(),
          core: price.optional(),
          memory_gb: price.optional(),
          disk_gb: price.optional(),
          plans: z.record(z.string(), price).optional().describe('By plan id.'),
        }),
      )
      .optional()
      .describe('By name or id of the server type.'),
  })
  .describe(
    'Prices that the catalogue of the API does not give. The catalogue contains the prices of graphics card packages.',
  );

/** The content of an API profile file. Every key is optional. */
export const profileSchema = z
  .strictObject({
    limits: z
      .strictObject({
        window: duration.optional().describe('Length of the window. Default 60s.'),
        reads: count.optional().describe('Reads allowed in one window. Default 60.'),
        writes: count.optional().describe('Writes allowed in one window. Default 20.'),
      })
      .optional()
      .describe('The request limits of this deployment.'),
    time_scale: z
      .number()
      .positive()
      .max(100_000)
      .optional()
      .describe(
        'How many times faster than real time the API runs, such as `emulator --speed N`. Default 1.',
      ),
    operations: z
      .partialRecord(z.enum(undocumentedOperations), template)
      .optional()
      .describe('Undocumented operations that the operator has confirmed. vdcsync never sends others.'),
    prices: pricesSchema.optional(),
  })
  .describe('Settings of one deployment of the API: limits, time scale, confirmed undocumented operations.');

/**
 * Reads an API profile.
 *
 * @throws ConfigError with one `file:line:col: message` a line, for every error at once.
 */
export function loadProfile(text: string, file: string): ApiProfile {
  return profileFrom(readDocument(text, file, 'the API profile', profileSchema, checkOperations));
}

/** Reads a price list, as strictly. @throws ConfigError */
export function loadPrices(text: string, file: string): PriceList {
  return readDocument(text, file, 'the price list', pricesSchema);
}

/** Reads a YAML file of the operator's. @throws ConfigError with one `file:line:col: message` a line. */
export function readDocument<Schema extends z.ZodType>(
  text: string,
  file: string,
  what: string,
  schema: Schema,
  check?: (root: Located, report: Report) => void,
): z.output<Schema> {
  const problems: Diagnostic[] = [];
  const report: Report = (position, message) => problems.push({ position, message: printable(message) });
  const root = readYaml(file, isEmpty(text) ? '{}' : text, { environment: {}, trust: operatorsSpec }, report);
  const checked = root && checkSchema(schema, root, what, report);
  if (root !== undefined) check?.(root, report);
  if (checked?.ok && problems.length === 0) return checked.value;
  problems.sort(({ position: a }, { position: b }) => a.line - b.line || a.column - b.column);
  throw new ConfigError(`${what} cannot be used:\n${problems.map(formatDiagnostic).join('\n')}`);
}

/** A duration in milliseconds. */
export function durationOf(leastMs: number, error: string) {
  return z
    .string()
    .refine((text) => (parseDuration(text) ?? -1) >= leastMs, { error })
    .transform((text) => parseDuration(text) ?? 0);
}

/** Every key is optional, so a profile may be empty, or have only comments. */
function isEmpty(text: string): boolean {
  return text.split('\n').every((line) => /^\s*(#.*|---)?$/.test(line));
}

/** Refuses operations that would go to the wrong place, or mean another operation. */
function checkOperations(root: Located, report: Report): void {
  for (const [name, here] of find(root, ['operations'])?.fields ?? []) {
    const body = placeholders(JSON.stringify(find(here, ['body'])?.value ?? null));
    if (name === 'named_address' && !body.includes('ip_id')) {
      report(here.position, '`body` must contain the address: `body: {ip_id: "{ip_id}"}`');
    }
    const call = presumedCall(name);
    if (call !== undefined) checkCall(call, name, here, body, report);
  }
}

function checkCall(
  call: NonNullable<ReturnType<typeof presumedCall>>,
  name: string,
  here: Located,
  inBody: string[],
  report: Report,
) {
  const methods: readonly string[] = call.method === 'GET' ? ['GET'] : writes;
  const ids = call.ids ?? placeholders(call.path);
  const [method, path] = [find(here, ['method']), find(here, ['path'])];
  if (
    typeof method?.value === 'string' &&
    anyMethod.includes(method.value) &&
    !methods.includes(method.value)
  ) {
    report(method.position, `\`${name}\` is called with ${methods.join(', ')}, not ${method.value}`);
  }
  if (typeof path?.value !== 'string') return;
  // Ids in the path may have names of their own, and are taken in order; elsewhere they go by name.
  const inPath = placeholders(path.value);
  const given = [...inPath, ...inBody];
  if (inPath.length === ids.length) return;
  if (inPath.length < ids.length && ids.every((id) => given.includes(id))) return;
  const needed = ids.length === 0 ? 'no id' : ids.map((id) => `{${id}}`).join(' and ');
  report(path.position, `the path of \`${name}\` takes ${needed}, and ${path.shown} does not`);
}

function placeholders(text: string): string[] {
  return [...text.matchAll(/\{([a-z_][a-z0-9_]*)\}/gi)].map(([, name = '']) => name);
}

function profileFrom({
  limits = {},
  time_scale,
  operations = {},
  prices,
}: z.output<typeof profileSchema>): ApiProfile {
  return {
    limits: {
      windowMs: limits.window ?? documentedProfile.limits.windowMs,
      reads: limits.reads ?? documentedProfile.limits.reads,
      writes: limits.writes ?? documentedProfile.limits.writes,
    },
    timeScale: time_scale ?? documentedProfile.timeScale,
    operations,
    ...(prices === undefined ? {} : { prices }),
  };
}
