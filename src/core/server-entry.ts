import { type ResourceKey, topLevelKey } from './keys.ts';

/** The address that an entry of a server asks for. */
export interface WantedAddress {
  /** The name of an entry under `ips`. */
  readonly ip?: string;
  readonly new?: true;
  readonly reuse?: true;
}

/** The fields of a server's entry that other resources depend on. */
interface ServerEntry {
  readonly name?: string;
  readonly public_ipv4?: WantedAddress;
  readonly keep_ip?: boolean;
}

/** The entry of a server, or of the server that a resource is inside. */
export function serverEntry(value: unknown): ServerEntry {
  return (value ?? {}) as ServerEntry;
}

/** The address that the entry asks for; no fields where it asks for none. */
export function wantedAddress(value: unknown): WantedAddress {
  return serverEntry(value).public_ipv4 ?? {};
}

/** The key of the address that the entry names. */
export function namedAddress(value: unknown): ResourceKey | undefined {
  const { ip } = wantedAddress(value);
  return ip === undefined ? undefined : topLevelKey('ips', ip);
}
