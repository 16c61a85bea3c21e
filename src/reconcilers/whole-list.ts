import type { Evidence } from '../core/kind.ts';
import type { ReadPort } from '../core/ports.ts';
import type { Ip } from '../core/resources.ts';

/** Misses in a list that are looked at one by one: more would cost more than they tell. */
const mostLooks = 5;

/**
 * A list that lacks what is there does not prove that anything is not. What it should hold
 * is looked up by id; `undefined`: nothing speaks against it.
 *
 * @assumption A8
 */
export async function cutShort<Id extends number | string>(
  noun: string,
  listed: readonly Id[],
  expected: Iterable<string>,
  isThere: (id: string) => Promise<boolean>,
): Promise<Extract<Evidence, { verdict: 'unclear' }> | undefined> {
  const shown = new Set(listed.map(String));
  const missing = [...new Set(expected)].filter((id) => !shown.has(id)).slice(-mostLooks);
  for (const id of missing) {
    if (!(await isThere(id))) continue;
    const reason = `the list of ${noun} is not whole: it lacks ${id}, which is there`;
    return { verdict: 'unclear', reason, candidates: [] };
  }
  return undefined;
}

/** Whether the list of addresses lacks one that is there. */
export function cutShortIps(
  ips: readonly Ip[],
  before: ReadonlySet<string>,
  ours: ReadonlySet<string>,
  read: ReadPort,
) {
  const listed = ips.map(({ id }) => id);
  return cutShort(
    'addresses',
    listed,
    [...before, ...ours],
    async (id) => (await read.findIp(Number(id))) !== undefined,
  );
}
