import { parse } from 'yaml';
import * as z from 'zod';
import { EmulatorInputError } from './readings.ts';
import { refusal } from './words.ts';

/** Requests per window and token. `@source API §8` */
interface Limits {
  readonly windowMs: number;
  readonly reads: number;
  readonly writes: number;
}

const DOCUMENTED_LIMITS: Limits = { windowMs: 60_000, reads: 60, writes: 20 };

/** The parts of an API profile that the emulator needs: its limits and the undocumented operations it serves. */
export interface Profile {
  readonly limits: Limits;
  readonly operations: Readonly<Record<string, ProfileOperation>>;
}

/** Where an undocumented operation is served. `{name}` in path and body is a placeholder for a value. */
export interface ProfileOperation {
  readonly method?: string;
  readonly path?: string;
  readonly body?: unknown;
}

/** The undocumented operations that the emulator can serve, each with its default path. */
export const KNOWN_OPERATIONS: Readonly<Record<string, ProfileOperation>> = {
  list_servers: { method: 'GET', path: '/servers' },
  read_server: { method: 'GET', path: '/servers/{id}' },
  remove_network_interface: { method: 'DELETE', path: '/servers/{server_id}/network-interfaces/{id}' },
  update_backup_policy: { method: 'PUT', path: '/servers/{server_id}/backup-policy' },
  insert_iso: { method: 'PUT', path: '/servers/{server_id}/iso', body: { iso_id: '{iso_id}' } },
  eject_iso: { method: 'DELETE', path: '/servers/{server_id}/iso' },
  take_server_image: {
    method: 'POST',
    path: '/server-images',
    body: { server_id: '{server_id}', name: '{name}' },
  },
  delete_backup: { method: 'DELETE', path: '/servers/{server_id}/backups/{id}' },
  resize_server: { method: 'PUT', path: '/servers/{server_id}/resources' },
  named_address: { body: { ip_id: '{ip_id}' } },
};

/**
 * The document's table holds these with method and path, and leaves only the payload open: they are served in
 * any case, with this payload unless the profile gives another. `@source API §4` `@assumption A30`
 */
const TABLED_OPERATIONS: Profile['operations'] = {
  insert_iso: KNOWN_OPERATIONS.insert_iso ?? {},
  take_server_image: KNOWN_OPERATIONS.take_server_image ?? {},
};

/** The documented limits, and no operation beyond the document's table. */
export const DEFAULT_PROFILE: Profile = { limits: DOCUMENTED_LIMITS, operations: TABLED_OPERATIONS };

const windowSchema = z.unknown().transform((value, context) => {
  const ms = durationMs(value);
  if (ms !== undefined) return ms;
  context.addIssue(`must be a duration such as 60s, not ${JSON.stringify(value)}`);
  return z.NEVER;
});

/** The keys that only a client needs are let pass. */
const profileSchema = z.object({
  limits: z
    .object({
      window: windowSchema.exactOptional(),
      reads: z.int().min(1).nullish(),
      writes: z.int().min(1).nullish(),
    })
    .nullish(),
  operations: z.record(z.string(), z.unknown()).nullish(),
});

const operationSchema = z.object({
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']).exactOptional(),
  path: z.string().startsWith('/', 'must start with / and follow the version segment').exactOptional(),
  body: z.unknown().exactOptional(),
});

/** Reads a profile from YAML or JSON. Throws `EmulatorInputError` naming the key. */
export function loadProfile(text: string): Profile {
  const document = parseText(text, 'profile');
  if (document === null) return DEFAULT_PROFILE;
  const profile = profileSchema.safeParse(document);
  if (!profile.success) throw refusal(profile.error, 'profile');
  const { limits, operations } = profile.data;
  const named = Object.entries(operations ?? {}).flatMap(([name, entry]) => {
    // A client may know operations that the emulator cannot play: those answer 404 here.
    const known = Object.hasOwn(KNOWN_OPERATIONS, name) ? KNOWN_OPERATIONS[name] : undefined;
    if (known === undefined || entry === false) return [];
    const given = operationSchema.safeParse(entry === true || entry === null ? {} : entry);
    if (!given.success) throw refusal(given.error, `profile.operations.${name}`, ['operations', name]);
    return [[name, { ...known, ...given.data }]];
  });
  return {
    limits: {
      windowMs: limits?.window ?? DOCUMENTED_LIMITS.windowMs,
      reads: limits?.reads ?? DOCUMENTED_LIMITS.reads,
      writes: limits?.writes ?? DOCUMENTED_LIMITS.writes,
    },
    operations: { ...TABLED_OPERATIONS, ...Object.fromEntries(named) },
  };
}

/** YAML (and so JSON) without aliases. Throws `EmulatorInputError` with line and column. */
export function parseText(text: string, what: string): unknown {
  try {
    return parse(text, { maxAliasCount: 0, merge: false }) ?? null;
  } catch (error) {
    throw new EmulatorInputError(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Milliseconds of `60s`, `1m`, `500ms`, `2h`, or of a plain number of seconds; `undefined` for any other text. */
export function durationMs(value: unknown): number | undefined {
  const parts = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(String(value).trim());
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[parts?.[2] ?? 's'] ?? 1000;
  const ms = Math.round(Number(parts?.[1]) * unit);
  return ms > 0 ? ms : undefined;
}
