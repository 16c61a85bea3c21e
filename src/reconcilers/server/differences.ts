import equal from 'fast-deep-equal';
import { member } from '../../core/json.ts';
import type { Change } from '../../core/plan.ts';
import { renaming } from '../unique-names.ts';
import { addressOf } from './address.ts';
import { diffFields, droppedFields } from './body.ts';
import type { ServerEntry, ServerObserved } from './entry.ts';
import { type Existing, holdsNamed } from './existing.ts';
import { canResize, diffDoubted, diffShown, isSize } from './resize.ts';

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
  readonly doubted: readonly Change[];
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
  const { changes, notes } = diffFields(entry, subject.binding?.applied ?? null, world, harmless);
  const { asked: renamed, along } = diffName(subject);
  const doubted = without(diffDoubted(entry, subject), changes);
  const edited = [...changes, ...(resizable ? doubted : [])];
  const asked = [...renamed, ...edited.flatMap((change) => asShown(change, live))];
  return {
    asked,
    along: [...along, ...droppedFields(entry, subject.binding?.applied ?? null)],
    moved: without(diffShown(entry, live.shown), asked),
    doubted: resizable ? [] : doubted.flatMap((change) => asShown(change, live)),
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
  const sent = member(member(subject.binding?.applied, 'body'), 'name');
  return typeof sent === 'string' ? renaming(subject, sent) : { asked: [], along: [] };
}

/**
 * The address counts, not the notation that asked for it: `{new: true}` and
 * `{reuse: true}` both mean any address, and a server that holds the named address needs no change. For a server from
 * outside this state, the addresses that it holds count, and not its previous entry.
 */
function diffAddress(existing: Existing): Change[] {
  const { subject, entry, live } = existing;
  const applied = subject.binding?.applied ?? null;
  const before = member(applied, 'entry') as ServerEntry | null | undefined;
  if (before === undefined || before === null) return [];
  const [from, to] = [addressOf(before), addressOf(entry)];
  const some = (address: string | undefined) => address === 'new' || address === 'reuse';
  if (from === to || (some(from) && some(to)) || holdsNamed(existing)) return [];
  const holds = live.addresses.length > 0;
  if (member(applied, 'body') == null && (some(to) ? holds : to === undefined && !holds)) return [];
  return [{ path: 'public_ipv4', from: from ?? null, to: to ?? null }];
}
