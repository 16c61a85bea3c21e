import { LineCounter, parseDocument } from 'yaml';
import * as z from 'zod';
import { parseDuration } from '../core/duration.ts';
import { ConfigError, type Diagnostic, formatDiagnostic } from '../core/errors.ts';
import {
  type ApiProfile,
  documentedProfile,
  type PriceList,
  undocumentedOperations,
} from '../core/profile.ts';

const duration = z.string().refine((text) => (parseDuration(text) ?? 0) > 0, {
  error: 'must be a duration over zero such as 60s or 1m',
});
const count = z.int().min(1);

const template = z
  .strictObject({
    method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']).optional(),
    path: z
      .string()
      .regex(/^\/[^?#\s]*$/, { error: 'must start with / and hold no query' })
      .optional()
      .describe('Below the base URL; {id}, {server_id} and the like stand for values.'),
    body: z.unknown().optional().describe('Sent as it is; "{name}" as a whole value stands for that value.'),
  })
  .describe('How the operation is called, where it is not called as the name suggests.');

/** A number of the file is the decimal that stands there, as far as it can be one exactly. */
const price = z
  .union([
    z.string().regex(/^\d+(\.\d+)?$/, { error: 'must be an amount such as 3.50' }),
    z.number().min(0).max(1e9),
  ])
  .transform((amount) => String(amount))
  .describe('Monthly.');

/** What a price list holds. Every key is optional; what it does not name stays unknown. */
export const pricesSchema = z
  .strictObject({
    currency: z.string().min(1).optional().describe('Shown beside amounts.'),
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
  .describe('What the catalogue of the API does not price. Packages with graphics cards are in that.');

/** What an API profile file holds. Every key is optional. */
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
      .describe('Undocumented operations that the operator has confirmed. All others are never sent.'),
    prices: pricesSchema.optional(),
  })
  .describe(
    'What belongs to one deployment of the API: limits, time scale, confirmed undocumented operations.',
  );

/**
 * Reads an API profile.
 *
 * @throws ConfigError with one `file:line:col: message` a line, for every error at once.
 */
export function loadProfile(text: string, file: string): ApiProfile {
  return profileFrom(readDocument(text, file, profileSchema));
}

/** Reads a price list, as strictly. @throws ConfigError */
export function loadPrices(text: string, file: string): PriceList {
  return readDocument(text, file, pricesSchema);
}

function readDocument<Schema extends z.ZodType>(
  text: string,
  file: string,
  schema: Schema,
): z.output<Schema> {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, merge: false });
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
  if (document.errors.length > 0) {
    refuse(
      document.errors.map(({ pos, message }) => ({ position: at(pos[0]), message: firstLine(message) })),
    );
  }
  const content = plainContent(() => document.toJS({ maxAliasCount: 0 }), file) ?? {};
  const parsed = schema.safeParse(content);
  if (!parsed.success) {
    refuse(
      parsed.error.issues.flatMap(({ path, message, ...issue }) => {
        const keys = issue.code === 'unrecognized_keys' ? issue.keys : [undefined];
        return keys.map((key) => {
          const full = key === undefined ? path : [...path, key];
          const text = key === undefined ? message : `unknown field ${JSON.stringify(key)}${known(path)}`;
          return { position: at(offsetOf(document, full)), message: `${full.join('.')}: ${text}` };
        });
      }),
    );
  }
  return parsed.data;
}

function profileFrom({
  limits = {},
  time_scale,
  operations = {},
  prices,
}: z.output<typeof profileSchema>): ApiProfile {
  return {
    limits: {
      windowMs: parseDuration(limits.window ?? '') ?? documentedProfile.limits.windowMs,
      reads: limits.reads ?? documentedProfile.limits.reads,
      writes: limits.writes ?? documentedProfile.limits.writes,
    },
    timeScale: time_scale ?? documentedProfile.timeScale,
    operations,
    ...(prices === undefined ? {} : { prices }),
  };
}

function plainContent(read: () => unknown, file: string): unknown {
  try {
    return read();
  } catch {
    throw new ConfigError(`${file}:1:1: aliases are not allowed in a profile`);
  }
}

/** Where a path stands; where it has no node, its nearest parent that has one. */
function offsetOf(document: ReturnType<typeof parseDocument>, path: readonly PropertyKey[]): number {
  for (let length = path.length; length > 0; length -= 1) {
    const parent = document.getIn(path.slice(0, length - 1), true);
    const name = path[length - 1];
    const pairs = (parent as { items?: { key?: { value?: unknown; range?: number[] } }[] } | undefined)
      ?.items;
    const key = pairs?.find((pair) => pair.key?.value === name)?.key;
    if (key?.range?.[0] !== undefined) return key.range[0];
  }
  return 0;
}

function known(path: readonly PropertyKey[]): string {
  if (path.length === 0) return '; known: limits, time_scale, operations, prices';
  if (path[0] === 'operations' && path.length === 1) return `; known: ${undocumentedOperations.join(', ')}`;
  return '';
}

function firstLine(text: string): string {
  return text.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? text;
}

function refuse(diagnostics: readonly Diagnostic[]): never {
  throw new ConfigError(`the API profile cannot be used:\n${diagnostics.map(formatDiagnostic).join('\n')}`);
}
