import type { ServerId } from '../../core/resources.ts';

/** What an operator names of others': servers by id, addresses as they are. */
export function namedOf(names: readonly string[]) {
  const isAddress = (name: string) => name.includes('.');
  return {
    servers: names.filter((name) => !isAddress(name)).map((name) => Number(name) as ServerId),
    addresses: names.filter(isAddress),
  };
}
