import { serverObject } from '../core/claims.ts';
import { nounOf, type ResourceKey } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import type { Blocked, Verb } from '../core/plan.ts';
import { edit, type Remedy, run, setting } from '../core/remedy.ts';
import { restoring } from '../core/restoring.ts';
import type { Draft } from './draft.ts';
import { movedBack } from './moved-back.ts';
import { movedFromUnknown } from './moved-from.ts';
import type { Facts, Guard, GuardInput, Objection } from './objections.ts';
import {
  besideUnresolved,
  isPurchase,
  releasedBefore,
  takenBefore,
  unlistedServers,
  unmanaged,
} from './purchases.ts';
import { refusedInside } from './refused-inside.ts';
import { matches } from './unmanaged.ts';

/**
 * The reasons to block an operation that is possible, the most fundamental first.
 * The first guard that objects gives the reason.
 */
const guards: readonly Guard[] = [
  suspended,
  attached,
  protect,
  boundElsewhere,
  namedElsewhere,
  prune,
  replacement,
  refusedInside,
  unmanaged,
  releasedBefore,
  unlistedServers,
  takenBefore,
  besideUnresolved,
];

/** The objections to the drafts, except for the caps, which count the remaining drafts. */
export function guard(drafts: readonly Draft[], input: GuardInput): ReadonlyMap<Draft, Blocked> {
  const objections = new Map<Draft, Blocked>();
  const buyers = drafts
    .filter(({ subject, diff }) => isPurchase(subject, diff))
    .map(({ subject }) => subject);
  const facts = {
    matches: matches(buyers, input.register, input.world),
    named: namedByEntries(input.world),
  };
  const add = (draft: Draft, objection: Objection | undefined) => {
    if (objection !== undefined && !objections.has(draft)) {
      objections.set(draft, { key: draft.subject.key, ...objection });
    }
  };
  const movedFrom = movedFromUnknown(input.world);
  const back = movedBack(input.world);
  for (const draft of drafts) {
    add(draft, movedFrom(draft) ?? back(draft) ?? refused(draft));
    for (const each of guards) add(draft, each(draft, input, facts));
  }
  return objections;
}

/** The objection of the kind itself: the operation is not possible. */
function refused({ diff: { verdict } }: Draft): Objection | undefined {
  if (verdict.verdict !== 'blocked') return undefined;
  const { verb, code, reason, remedies } = verdict;
  return { verb, code, reason, remedies };
}

function suspended({ diff }: Draft, { world, now }: GuardInput): Objection | undefined {
  const { suspend } = world.settings;
  const verb = verbOf(diff.verdict.verdict);
  if (suspend === null || verb === undefined) return undefined;
  if (suspend.until !== undefined && Date.parse(suspend.until) <= now) return undefined;
  return {
    verb,
    code: 'suspended',
    reason: `settings.suspend: ${suspend.reason}${suspend.until === undefined ? '' : ` (until ${suspend.until})`}`,
    remedies: [edit('settings', { remove: ['suspend'] })],
  };
}

function protect({ subject, diff }: Draft, { world, destroy }: GuardInput): Objection | undefined {
  const { verdict } = diff;
  if (verdict.verdict !== 'delete' && verdict.verdict !== 'replace') return undefined;
  // The value in the file counts; the last value counts only for an entry that has left the file. A part of a server
  // uses the value of the server's entry.
  const server = subject.parent && world.subjects.get(subject.parent)?.desired;
  if (!(server ?? subject.desired ?? subject.binding)?.protect) return undefined;
  if (server !== undefined && subject.desired === undefined) {
    return {
      verb: 'delete',
      code: 'protected',
      reason: `${subject.parent} is protected, and so is every resource inside it`,
      remedies: [edit(subject.parent ?? subject.key, { set: { protect: false } })],
    };
  }
  return {
    verb: verdict.verdict === 'delete' ? 'delete' : 'update',
    code: 'protected',
    reason:
      verdict.verdict === 'delete'
        ? `${subject.key} is protected, ${destroy ? 'from destroy as well' : 'also after it has left the file'}`
        : `${verdict.reason}, and ${subject.key} is protected`,
    remedies:
      verdict.verdict === 'delete'
        ? unprotecting(subject, world, destroy)
        : [
            edit(subject.parent ?? subject.key, { set: { protect: false } }),
            restoring(verdict.changes, subject.key),
          ],
  };
}

/**
 * The safe way to delete a protected resource. The state keeps the protection until an apply has recorded its end.
 * With `--target` that apply does nothing else: an apply without a target creates again the resources that a destroy
 * has deleted.
 */
function unprotecting({ key, parent }: Subject, { settings }: World, destroy: boolean): readonly Remedy[] {
  const owner = parent ?? key;
  const set = { protect: false };
  const record = run('apply', ['--target', owner]);
  if (destroy) return [edit(owner, { set, next: [record, run('destroy')] })];
  const prune = settings.prune ? [] : [edit('settings', { set: { prune: true } })];
  const next = [record, edit(owner, { entry: 'remove' }), ...prune, run('apply')];
  return [edit(owner, { entry: 'restore', set, next, when: 'to have it deleted' }), keeping(key)];
}

function keeping(key: ResourceKey, when = 'to keep it as an unmanaged resource'): Remedy {
  return run('forget', [key], { when });
}

/** No key is bound to the server of the address, or a list is out of date: in both cases the address is in use. */
function attached({ subject, diff }: Draft, { world }: GuardInput): Objection | undefined {
  const { key, kind, parent, binding } = subject;
  if (kind !== 'ip' || parent === undefined || diff.verdict.verdict !== 'delete') return undefined;
  const live = world.ip(binding?.id ?? '');
  const holder = live?.server_id ?? null;
  if (holder === null || world.keyOf(serverObject(holder)) !== undefined) return undefined;
  return {
    verb: 'delete',
    code: 'ip_in_use',
    reason: `${live?.address} is attached to server ${holder}, which is not being deleted`,
    remedies: [
      run('apply', [], { when: 'once it is detached' }),
      keeping(key, 'to leave it unmanaged and billed'),
    ],
  };
}

function namedByEntries(world: World): ReadonlyMap<string, ResourceKey> {
  const entries = [...world.subjects.values()].filter(
    ({ desired, parent, kind }) => desired !== undefined && (parent === undefined || kind === 'ip'),
  );
  return new Map(
    entries.flatMap(({ key, kind, desired, binding }) =>
      [desired?.id, binding?.id].flatMap((id) => (id === undefined ? [] : [[`${kind} ${id}`, key] as const])),
    ),
  );
}

/**
 * One entry cannot adopt the resource of another entry. An address that was created with a server may get its own
 * entry.
 */
function boundElsewhere({ subject, diff }: Draft, { world }: GuardInput): Objection | undefined {
  const { verdict } = diff;
  if (verdict.verdict !== 'adopt' || subject.parent !== undefined) return undefined;
  const { key, kind } = subject;
  const owner = world
    .subjectsOf(kind)
    .find((each) => each.key !== key && each.binding?.id === verdict.target && each.parent === undefined);
  if (owner?.desired === undefined) return undefined;
  return {
    verb: 'adopt',
    code: 'bound_already',
    reason: `${nounOf(kind)} ${verdict.target} is bound to ${owner.key}, which is in the file as well`,
    remedies: [
      edit(key, { remove: ['id'] }),
      edit(owner.key, { entry: 'remove', next: [edit(key, { set: { moved: { from: owner.key } } })] }),
    ],
  };
}

/** A resource that another entry names by its id is not deleted because its previous key has left the file. */
function namedElsewhere(
  { subject, diff }: Draft,
  _input: GuardInput,
  { named }: Facts,
): Objection | undefined {
  const id = subject.binding?.id;
  if (diff.verdict.verdict !== 'delete' || id === undefined || subject.desired !== undefined)
    return undefined;
  const other = named.get(`${subject.kind} ${id}`);
  if (other === undefined) return undefined;
  return {
    verb: 'delete',
    code: 'named_elsewhere',
    reason: `${other} names ${subject.kind} ${id} as well`,
    remedies: [run('apply')],
  };
}

function prune(draft: Draft, { world, destroy }: GuardInput): Objection | undefined {
  const { subject, diff } = draft;
  if (diff.verdict.verdict !== 'delete' || subject.desired !== undefined) return undefined;
  if (world.settings.prune || destroy || diff.verdict.byFile) return undefined;
  return {
    verb: 'delete',
    code: 'prune_disabled',
    reason: `${subject.key} is not in the file any more, and settings.prune is false; ${impactOf(draft, world)}`,
    remedies: [
      setting('prune', true, 'to have it deleted'),
      keeping(subject.key),
      edit(subject.key, { entry: 'restore' }),
    ],
  };
}

function replacement({ subject, diff }: Draft): Objection | undefined {
  const { verdict } = diff;
  if (verdict.verdict !== 'replace') return undefined;
  const undo = restoring(verdict.changes, subject.key);
  const id = subject.desired?.id;
  if (verdict.allowed && id === undefined) return undefined;
  const allow = verdict.allowed ? {} : { set: { replace: 'allowed' } };
  return {
    verb: 'update',
    code: 'replace_not_allowed',
    reason: `${verdict.reason}: it would be deleted and made again${id === undefined ? '' : `, and a resource that the file binds by id is never created`}`,
    remedies: [edit(subject.key, { ...allow, ...(id === undefined ? {} : { remove: ['id'] }) }), undo],
  };
}

/** The impact of a deletion, so that the operator knows it before permitting it. @source API §1.4, §1.5 */
export function impactOf({ subject, diff }: Draft, world: World): string {
  const { kind, binding } = subject;
  const id = binding?.id ?? '';
  const held = kind === 'server' ? world.ipsOf(id).map(({ address }) => address) : [];
  const address = kind === 'ip' ? world.ip(id)?.address : undefined;
  const what = `${nounOf(kind)} ${address ?? id}${held.length === 0 ? '' : ` (${held.join(', ')})`}`;
  const disks = kind === 'server' ? ', with all that is on its disks' : '';
  const stays = (diff.leftBilled ?? []).map((text) => `; ${text}`).join('');
  return `${what} would be ${kind === 'ip' ? 'released' : 'deleted'}${disks}${stays}`;
}

function verbOf(verdict: string): Verb | undefined {
  if (verdict === 'replace') return 'update';
  return verdict === 'create' || verdict === 'update' || verdict === 'delete' ? verdict : undefined;
}
