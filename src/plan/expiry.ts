import { expiryOf } from '../core/calendar.ts';
import type { ExpiredEntry } from '../core/desired.ts';
import { moment } from '../core/duration.ts';
import { type ResourceKey, retiredFrom } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import type { Warning } from '../core/plan.ts';
import { edit, type Remedy } from '../core/remedy.ts';

const dayMs = 24 * 3_600_000;
const weekMs = 7 * dayMs;

type Whose = Pick<Subject, 'key' | 'parent'>;

/** The expired entry of the resource, or of the server that the resource is in. */
export function expiredEntry({ key, parent = key }: Whose, { expiry }: World): ExpiredEntry | undefined {
  return expiry?.expired?.find((each) => each.key === (retiredFrom(parent) ?? parent));
}

/** Why the spec no longer asks for the resource. */
export function whyLeft(subject: Whose, world: World): string {
  const { at } = expiredEntry(subject, world) ?? {};
  return at === undefined ? 'has left the spec' : `expired at ${at}`;
}

/** The edit after which the entry does not expire. */
export function lasting({ key, of }: Pick<ExpiredEntry, 'key' | 'of'>, when: string): Remedy {
  return edit(of === 'project' ? 'project' : key, { remove: ['expires'], when });
}

/** Entries that have expired, or that expire within a week. The text changes a week before, a day before and at the end. */
export function expiryWarnings(world: World, now: number): Warning[] {
  const { subjects, expiry = {} } = world;
  const { expired = [] } = expiry;
  const isBound = (key: ResourceKey) => subjects.get(key)?.binding !== undefined;
  const over = expired.map(({ key, at, of }): Warning => {
    const message = isBound(key)
      ? `expired at ${at}: vdcsync handles the resource as if its entry had left the spec`
      : `expired at ${at}, and no resource is bound to it: remove the entry from the spec`;
    const ways = isBound(key) ? [lasting({ key, of }, 'to keep the resource')] : [];
    return { code: 'expired', key, message, remedies: ways };
  });
  const soon = [...subjects.values()].flatMap(({ key, parent, desired }): Warning[] => {
    const end = desired === undefined || parent !== undefined ? undefined : expiryOf(desired, expiry);
    const leftMs = end === undefined ? Infinity : Date.parse(end.at) - now;
    if (end === undefined || leftMs > weekMs) return [];
    const message = `expires in less than ${leftMs > dayMs ? 'a week' : 'a day'}, at ${moment(Date.parse(end.at))}. vdcsync then handles the resource as if its entry had left the spec`;
    return [
      { code: 'expires_soon', key, message, remedies: [lasting({ key, ...end }, 'to keep the resource')] },
    ];
  });
  return [...over, ...soon];
}
