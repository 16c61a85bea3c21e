import equal from 'fast-deep-equal';
import { namedAddress } from '../../core/desired.ts';
import { member } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Subject, World } from '../../core/kind.ts';
import type { Change } from '../../core/plan.ts';
import { command, edit, outside, settleFirst } from '../../core/remedy.ts';
import { namedNow } from '../../core/restoring.ts';
import { holderOf } from '../address-pool.ts';
import { renaming } from '../unique-names.ts';
import { addressOf } from './address.ts';
import { diffFields, droppedFields, recordOf } from './applied-fields.ts';
import type { BodyProblem } from './body.ts';
import type { ServerObserved } from './entry.ts';
import { type Existing, fieldsToReplace, holdsNamed } from './existing.ts';
import { canResize, diffShown, diffUnconfirmed, isSize } from './resize.ts';

/** The differences between the server and the spec. */
export interface Differences {
  /** By an edit of the spec. */
  readonly asked: readonly Change[];
  /**
   * A name that comes only from the key, and fields that the entry leaves out: a new server would differ in them, but
   * they are no reason for a replacement.
   */
  readonly along: readonly Change[];
  /** Sizes that differ in the API's reads, without an edit of the spec. */
  readonly moved: readonly Change[];
  /** Sizes of a resize that was given up, and that the profile no longer permits. */
  readonly unconfirmed: readonly Change[];
  readonly address: readonly Change[];
  /** Applied values that the catalogue no longer has. */
  readonly notes: readonly string[];
  /** Sizes are changed in place. */
  readonly resizable: boolean;
}

export function differencesOf(existing: Existing): Differences {
  const { subject, entry, live, world } = existing;
  const resizable = canResize(entry, world);
  const harmless = (path: string) =>
    member(live.shown, path) !== undefined || (resizable && isSize({ path }));
  const { changes, notes } = diffFields(entry, recordOf(subject.binding), world, harmless);
  const { asked: renamed, along } = diffName(subject);
  const unconfirmed = without(diffUnconfirmed(entry, subject), changes);
  const edited = [...changes, ...(resizable ? unconfirmed : [])];
  const asked = [...renamed, ...edited.flatMap((change) => asShown(change, live))];
  return {
    asked,
    along: [...along, ...droppedFields(entry, recordOf(subject.binding))],
    moved: without(diffShown(entry, live.shown), asked),
    unconfirmed: resizable ? [] : unconfirmed.flatMap((change) => asShown(change, live)),
    address: diffAddress(existing),
    notes,
    resizable,
  };
}

function without(changes: readonly Change[], others: readonly Change[]): readonly Change[] {
  return changes.filter(({ path }) => !others.some((other) => other.path === path));
}

/** A value from a read takes precedence over the last applied value. */
function asShown(change: Change, { shown }: ServerObserved): Change[] {
  const from = member(shown, change.path);
  if (from === undefined) return [change];
  const { from_id: _id, ...rest } = change;
  return equal(from, change.to) ? [] : [{ ...rest, from }];
}

/** A server from outside this state may have any name: the name of its entry is only for this spec. */
function diffName(subject: Existing['subject']) {
  const sent = recordOf(subject.binding).body?.name;
  return typeof sent === 'string' ? renaming(subject, sent) : { asked: [], along: [] };
}

/**
 * The address counts, not the notation that asked for it: `{new: true}` and
 * `{reuse: true}` both mean any address, and a server that holds the named address needs no change. For a server from
 * outside this state, the addresses that it holds count, and not its previous entry.
 */
function diffAddress(existing: Existing): Change[] {
  const { subject, entry, live, world } = existing;
  const { entry: before, body } = recordOf(subject.binding);
  if (before == null) return [];
  const [was, to] = [addressOf(before), addressOf(entry)];
  const named = namedAddress(before);
  const from = (named && namedNow(named, world.subjects)?.key) ?? was;
  const some = (address: string | undefined) => address === 'new' || address === 'reuse';
  if (from === to || (some(from) && some(to)) || holdsNamed(existing)) return [];
  const holds = live.addresses.length > 0;
  if (body == null && (some(to) ? holds : to === undefined && !holds)) return [];
  return [{ path: 'public_ipv4', from: from ?? null, to: to ?? null }];
}

/**
 * The problem of a server that waits for an address which another server of the spec holds, while that server waits for
 * the address of this one, possibly through further servers. The API attaches free addresses only, and frees an address
 * only with its server, so one of the servers needs another address for a while. Its key has the remedy for all of them.
 *
 * @source API §3 rule 2, §4 POST /servers body
 */
export function exchangeProblem(key: ResourceKey, world: World): BodyProblem | undefined {
  const servers = circleOf(key, world);
  if (servers === undefined) return undefined;
  const [first = key, ...others] = [...servers].sort();
  const all = [first, ...others].join(' and ');
  if (key !== first) {
    const reason = `${all} exchange their addresses: see ${first}`;
    return { code: 'dependency_blocked', reason, remedies: () => settleFirst(first) };
  }
  const wanted = world.subjects.get(key)?.desired?.value.public_ipv4;
  const lacking = (each: ResourceKey) => fieldsToReplace(world.subjects.get(each) as Subject);
  return {
    code: 'address_in_use',
    reason: `${all} exchange their addresses, and the API attaches only free addresses, to new servers`,
    remedies: () => [
      outside(`exchange the addresses of ${all} in the client area`, { when: 'to keep the servers' }),
      edit(first, {
        set: { public_ipv4: { new: true }, ...lacking(first) },
        when: 'to replace the servers, and lose the data on their disks',
        next: [
          ...others.flatMap((each) => {
            const set = lacking(each);
            return Object.keys(set).length === 0 ? [] : [edit(each, { set })];
          }),
          outside('run `vdcsync apply` until it converges'),
          edit(first, { set: { public_ipv4: wanted } }),
          command('apply'),
        ],
      }),
    ],
  };
}

/** The servers from this one on, each of which waits for the address of the next one, and the last for that of this one. */
function circleOf(key: ResourceKey, world: World): readonly ResourceKey[] | undefined {
  const servers = [key];
  for (;;) {
    const next = holderOfWanted(servers.at(-1) as ResourceKey, world);
    if (next === key) return servers.length > 1 ? servers : undefined;
    if (next === undefined || servers.includes(next)) return undefined;
    servers.push(next);
  }
}

function holderOfWanted(key: ResourceKey, world: World): ResourceKey | undefined {
  const wanted = namedAddress(world.subjects.get(key)?.desired?.value);
  return wanted && holderOf(wanted, world);
}
