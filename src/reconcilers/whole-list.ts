import type { Evidence } from '../core/evidence.ts';
import type { ReadPort } from '../core/ports.ts';
import type { Ip } from '../core/resources.ts';

/** The number of missing ids that are read one by one: more reads would cost more than they prove. */
const mostLooks = 5;

/**
 * A list that lacks an existing resource proves no absence. The function reads the ids that the
 * list should contain; `undefined`: no read contradicts the list.
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
    const reason = `the list of ${noun} is incomplete: it lacks ${id}, which exists`;
    return { verdict: 'unclear', reason, candidates: [] };
  }
  return undefined;
}

/** Whether the list of addresses lacks an address that exists. */
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
