import type { Evidence } from '../core/evidence.ts';
import { member } from '../core/json.ts';
import type { ReadPort } from '../core/ports.ts';
import type { Ip } from '../core/resources.ts';

/** The reads do not show the effect. */
export const notDone = { verdict: 'not_done' } as const;

/** The reads show the effect, by an id. */
export function done(id: number | string) {
  return { verdict: 'done', id: String(id), certain: true } as const;
}

export function doneIf(isDone: boolean, id: number | string) {
  return isDone ? done(id) : notDone;
}

/** The reads permit no conclusion: an operator may choose one of these. */
export function unclear(reason: string, among: readonly { readonly id: number | string }[]) {
  return { verdict: 'unclear', reason, candidates: among.map(({ id }) => String(id)) } as const;
}

/** The number of missing ids that are read one by one: more reads would cost more than they prove. */
const mostSingleReads = 5;

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
  const missing = [...new Set(expected)].filter((id) => !shown.has(id)).slice(-mostSingleReads);
  for (const id of missing) {
    if (!(await isThere(id))) continue;
    return unclear(`the list of ${noun} is incomplete: it lacks ${id}, which exists`, []);
  }
  return undefined;
}

/** Whether the list of addresses lacks an address that exists. */
export function cutShortIps(
  ips: readonly Ip[],
  before: ReadonlySet<string>,
  managedIds: ReadonlySet<string>,
  read: ReadPort,
) {
  const listed = ips.map(({ id }) => id);
  return cutShort(
    'addresses',
    listed,
    [...before, ...managedIds],
    async (id) => (await read.findIp(Number(id))) !== undefined,
  );
}

/** An `id` of an answer's `data`, as text. */
export function idIn(data: unknown): string | undefined {
  const id = member(data, 'id');
  return typeof id === 'number' || (typeof id === 'string' && id !== '') ? String(id) : undefined;
}

/** The same for kinds whose ids are integers: any other value is no id. @source API §2 */
export function integerIdIn(data: unknown): string | undefined {
  const id = idIn(data);
  return id !== undefined && /^[1-9]\d{0,15}$/.test(id) ? id : undefined;
}

/** The ids of a recorded list, as text. */
export function recordedIds(list: readonly (number | string)[] = []): ReadonlySet<string> {
  return new Set(list.map(String));
}
