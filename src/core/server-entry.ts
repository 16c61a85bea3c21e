import type { EntryFields, WantedAddress } from './desired.ts';
import { type ResourceKey, topLevelKey } from './keys.ts';

/** The address that the entry asks for; no fields where it asks for none. */
export function wantedAddress(entry: EntryFields | undefined): WantedAddress {
  return entry?.public_ipv4 ?? {};
}

/** The key of the address that the entry names. */
export function namedAddress(entry: EntryFields | undefined): ResourceKey | undefined {
  const { ip } = wantedAddress(entry);
  return ip === undefined ? undefined : topLevelKey('ips', ip);
}
