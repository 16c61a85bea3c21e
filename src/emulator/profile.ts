import { parse } from 'yaml';
import { DOCUMENTED_LIMITS, type Limits } from './limits.ts';
import { EmulatorInputError } from './readings.ts';

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

/**
 * Reads a profile from YAML or JSON. Keys that only a client needs are let pass.
 * Throws `EmulatorInputError` naming the key.
 */
export function loadProfile(text: string): Profile {
  const document = parseText(text, 'profile');
  if (document === null) return DEFAULT_PROFILE;
  const profile = map(document, 'profile');
  return { limits: readLimits(profile.limits), operations: readOperations(profile.operations) };
}

/** YAML (and so JSON) without aliases. Throws `EmulatorInputError` with line and column. */
export function parseText(text: string, what: string): unknown {
  try {
    return parse(text, { maxAliasCount: 0, merge: false }) ?? null;
  } catch (error) {
    throw new EmulatorInputError(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Milliseconds of `60s`, `1m`, `500ms`, `2h`, or of a plain number of seconds. */
export function parseDuration(value: unknown, at: string): number {
  const parts = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(String(value).trim());
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[parts?.[2] ?? 's'] ?? 1000;
  const ms = Math.round(Number(parts?.[1]) * unit);
  if (parts === null || !(ms > 0))
    throw new EmulatorInputError(`${at}: must be a duration such as 60s, not ${JSON.stringify(value)}`);
  return ms;
}

function readLimits(value: unknown): Limits {
  if (value === undefined || value === null) return DOCUMENTED_LIMITS;
  const limits = map(value, 'profile.limits');
  const count = (name: 'reads' | 'writes') => {
    const given = limits[name] ?? DOCUMENTED_LIMITS[name];
    if (Number.isSafeInteger(given) && (given as number) > 0) return given as number;
    throw new EmulatorInputError(
      `profile.limits.${name}: must be a whole number from 1, not ${JSON.stringify(given)}`,
    );
  };
  const windowMs =
    limits.window === undefined
      ? DOCUMENTED_LIMITS.windowMs
      : parseDuration(limits.window, 'profile.limits.window');
  return { windowMs, reads: count('reads'), writes: count('writes') };
}

function readOperations(value: unknown): Profile['operations'] {
  if (value === undefined || value === null) return TABLED_OPERATIONS;
  const named = Object.fromEntries(
    Object.entries(map(value, 'profile.operations')).flatMap(([name, entry]) => {
      const at = `profile.operations.${name}`;
      // A client may know operations that the emulator cannot play: those answer 404 here.
      const known = Object.hasOwn(KNOWN_OPERATIONS, name) ? KNOWN_OPERATIONS[name] : undefined;
      if (known === undefined || entry === false) return [];
      const given = entry === true || entry === null ? {} : map(entry, at);
      const method = given.method === undefined ? known.method : given.method;
      const path = given.path === undefined ? known.path : given.path;
      if (method !== undefined && !/^(GET|POST|PUT|PATCH|DELETE)$/.test(String(method))) {
        throw new EmulatorInputError(`${at}.method: must be GET, POST, PUT, PATCH or DELETE`);
      }
      if (path !== undefined && !(typeof path === 'string' && path.startsWith('/'))) {
        throw new EmulatorInputError(`${at}.path: must start with / and follow the version segment`);
      }
      const body = given.body === undefined ? known.body : given.body;
      return [
        [
          name,
          {
            ...(method === undefined ? {} : { method: String(method) }),
            ...(path === undefined ? {} : { path }),
            ...(body === undefined ? {} : { body }),
          },
        ],
      ];
    }),
  );
  return { ...TABLED_OPERATIONS, ...named };
}

function map(value: unknown, at: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new EmulatorInputError(`${at}: must be a map, not ${JSON.stringify(value)}`);
}
