import type { ServerId } from '../../core/resources.ts';

/** Splits the names of unmanaged objects: a server by its id, an address by its text. */
export function namedOf(names: readonly string[]) {
  const isAddress = (name: string) => name.includes('.');
  return {
    servers: names.filter((name) => !isAddress(name)).map((name) => Number(name) as ServerId),
    addresses: names.filter(isAddress),
  };
}
