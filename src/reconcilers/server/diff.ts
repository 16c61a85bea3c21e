import { addressObject } from '../../core/claims.ts';
import { idInSpec, namedAddress } from '../../core/desired.ts';
import { childKey, type ResourceKey, retiredFrom } from '../../core/keys.ts';
import type { Diff, Subject, World } from '../../core/kind.ts';
import type { Change, Verb, Warning } from '../../core/plan.ts';
import { command, edit, outside } from '../../core/remedy.ts';
import { restoring } from '../../core/restoring.ts';
import { predecessorHolding } from '../../core/world.ts';
import { poolCautions } from '../address-pool.ts';
import {
  blocking,
  fromNothing,
  incomplete,
  lostOf,
  mayBeRefused,
  toNothing,
  unchanged,
} from '../verdicts.ts';
import { addressAlongside, addressOf, addressProblem, mayExchangeWarning } from './address.ts';
import { recordOf, unproven, withIds } from './applied-fields.ts';
import { type BodyProblem, priceApplied, resolveBody } from './body.ts';
import { type Differences, differencesOf, exchangeProblem } from './differences.ts';
import type { ServerEntry, ServerObserved } from './entry.ts';
import { type Existing, fieldsToReplace, holdsNamed, orderOf, permitted } from './existing.ts';
import { diffSize, isSize } from './resize.ts';
import { isInCreation, liveWarnings, uncheckedEdits } from './warnings.ts';

export const neededToCreate = ['server_type', 'image'] as const;

/** A server that does not exist: resolved against the catalogue, or blocked with a reason. */
export function diffCreate(subject: Subject<ServerEntry>, entry: ServerEntry, world: World): Diff {
  const resolved = resolveBody(entry, world, []);
  if ('problem' in resolved) return impossible('create', subject.key, resolved.problem);
  const address = addressProblem(subject.key, entry, world);
  if (address !== undefined) return impossible('create', subject.key, address);
  const { body, warnings: notSold, ...prices } = resolved;
  const { server_type_id: type, image, ...sizing } = body;
  const fields = fromNothing({
    name: entry.name,
    server_type: entry.server_type,
    image: entry.image,
    ...sizing,
    // All packages of the entry: the creation decides which one is bought.
    gpu_package: entry.gpu_package,
    public_ipv4: addressOf(entry),
  });
  const changes = fields.map((change) =>
    withIds(change, { from: undefined, to: change.path === 'image' ? image : type }),
  );
  const missing = notSold.map(
    (message) => ({ code: 'gpu_package_not_sold', key: subject.key, message }) as const,
  );
  const exchange = mayExchangeWarning(subject.key, entry, world);
  return {
    verdict: { verdict: 'create', changes, ...lostOf(subject, 'server') },
    warnings: [...missing, ...poolCautions(subject, entry, world)],
    ...prices,
    ...addressAlongside(subject.key, entry, world),
    ...(isUnfiltered(subject, entry, world)
      ? { traffic: unfilteredTraffic, consequences: [unfilteredWarning(subject.key), ...exchange] }
      : { consequences: exchange }),
  };
}

const unfilteredTraffic = { opened: ['everything'], closed: [], open: ['everything'] };

/**
 * Without a firewall in the spec, no rule filters incoming traffic. The traffic is in the operation, so that a policy
 * reads it there as for a firewall. @source API §4: a new server's firewall is disabled
 */
function isUnfiltered({ key }: Subject, entry: ServerEntry, world: World): boolean {
  const filtered = world
    .childrenOf(key)
    .some(({ kind, desired }) => kind === 'firewall' && desired !== undefined);
  return entry.public_ipv4 !== undefined && !filtered;
}

function unfilteredWarning(key: ResourceKey): Warning {
  const message = 'the server gets a public address and no firewall: all its ports are open to the internet';
  return { code: 'no_firewall', key, message };
}

function impossible(verb: Verb, key: ResourceKey, { code, reason, remedies }: BodyProblem): Diff {
  return blocking(verb, code, reason, remedies(key));
}

/** An existing server: compared with the last applied fields, because no read shows them. */
export function diffLive(existing: Existing): Diff {
  const differences = differencesOf(existing);
  const diff = judge(existing, differences);
  const warnings = [...liveWarnings(existing, differences), ...(diff.warnings ?? [])];
  return { ...diff, warnings, ...(isInCreation(existing) ? { pending: true } : {}) };
}

/** Unchanged, resized in place, or replaced. */
function judge(existing: Existing, differences: Differences): Diff {
  const { subject, entry, live, world } = existing;
  const { asked, moved, address, resizable } = differences;
  const all = [...asked, ...(resizable ? moved : []), ...address];
  if (all.length === 0) return { ...unchanged, warnings: uncheckedEdits(existing) };
  const isFixed = all.some((each) => !(resizable && isSize(each)));
  if (!isFixed) return diffSize(subject, entry, { asked, moved }, live, world);
  return incomplete(subject, all, neededToCreate) ?? diffReplace(existing, differences, all);
}

/** The new server is resolved like a server that does not exist yet. */
function diffReplace(
  existing: Existing,
  { along, resizable }: Differences,
  changes: readonly Change[],
): Diff {
  const { subject, entry, live, world } = existing;
  // The API attaches free addresses only: the server that this one has replaced is deleted first.
  const { desired } = subject;
  const isReplaceable =
    permitted(entry) !== undefined && idInSpec(desired) === undefined && desired?.protect !== true;
  const isHeld = predecessorHolding(subject, world) !== undefined;
  if (isHeld && isReplaceable) return unchanged;
  const resolved = resolveBody(entry, world, []);
  if ('problem' in resolved)
    return impossible('update', subject.key, needing(existing, resolved.problem, changes));
  const { body, warnings: _notSold, ...prices } = resolved;
  const exchange = exchangeProblem(subject.key, world);
  if (exchange !== undefined) return impossible('update', subject.key, exchange);
  const order = orderOf(existing);
  const problem =
    order === 'create_first' && holdsNamed(existing)
      ? attachedToOld(existing)
      : isHeld
        ? undefined
        : addressProblem(subject.key, entry, world);
  if (problem !== undefined) {
    const waits = problem.code === 'dependency_blocked' && permitted(entry) !== undefined;
    return impossible('update', subject.key, waits ? problem : needing(existing, problem, changes));
  }
  const fixed = changes.filter((each) => !(resizable && isSize(each)));
  const isServed = holdsNamed(existing) && !changes.some(({ path }) => path === 'server_type');
  const stays = whatStays(subject, live, world);
  const fields = unproven(body, recordOf(subject.binding), world);
  const toProve = Object.fromEntries(fields.map((field) => [field, body[field]]));
  return {
    verdict: {
      verdict: 'replace',
      changes: [...along, ...changes],
      reason: `${fixed.map(({ path }) => path).join(', ')} cannot be changed in place`,
      allowed: permitted(entry) !== undefined,
      order,
    },
    warnings: isServed ? [] : poolCautions(subject, entry, world),
    ...stays,
    consequences: [
      ...stays.consequences,
      ...(order === 'create_first'
        ? billedTwice(subject)
        : mayBeRefused(subject, 'create_server', toProve, world)),
    ],
    ...prices,
    ...addressAlongside(subject.key, entry, world),
    freed: priceApplied(subject, live.shown, world),
  };
}

/** The problem, with the edit that keeps the server, and the further edits that the replacement needs. */
function needing({ subject, world }: Existing, found: BodyProblem, changes: readonly Change[]): BodyProblem {
  const keeping = { ...restoring(changes, subject.key, world.subjects), when: 'to keep it unchanged' };
  const problem: BodyProblem = { ...found, remedies: (key) => [keeping, ...found.remedies(key)] };
  const edits = Object.entries(fieldsToReplace(subject)).map(([name, value]) => `\`${name}: ${value}\``);
  if (edits.length === 0) return problem;
  const also = `The server cannot be changed in place, and its replacement also needs ${edits.join(' and ')}`;
  return { ...problem, reason: `${problem.reason}. ${also}` };
}

/** A server that has left the spec, or that another server of its key has replaced. */
export function diffLeaving(subject: Subject<ServerEntry>, live: ServerObserved, world: World): Diff {
  const successor = retiredFrom(subject.key);
  const failed = subject.binding?.tainted;
  if (successor !== undefined && failed !== undefined) return leftByFailed(subject, successor, failed);
  const { body } = recordOf(subject.binding);
  const addresses = live.addresses.map(({ address }) => address).join(', ');
  return {
    verdict: {
      verdict: 'delete',
      changes: toNothing({ name: body?.name, addresses: addresses === '' ? undefined : addresses }),
    },
    ...whatStays(subject, live, world),
    freed: priceApplied(subject, live.shown, world),
  };
}

/** A failed creation left the server, and the server that it should have replaced still exists. */
function leftByFailed({ key, binding }: Subject, successor: ResourceKey, failed: string): Diff {
  const id = binding?.id ?? '';
  const reason = `a failed write left server ${id}, which may not work: ${failed}. ${successor} still has its old server`;
  return blocking('delete', 'tainted', reason, [
    outside(`delete server ${id} in the client area`, { about: [id] }),
    command('forget', [key], { when: 'to keep it, no longer managed and still billed' }),
  ]);
}

/** Its backups, and the addresses that are free afterwards, remain billed. @source API §1.4, §1.5 */
function whatStays(
  { key }: Subject,
  live: ServerObserved,
  world: World,
): Required<Pick<Diff, 'leftBilled' | 'consequences'>> {
  const seen = world.observed.get(childKey(key, 'backup')) as
    | { readonly backups: readonly unknown[] }
    | undefined;
  const count = live.backups ?? seen?.backups.length;
  const backups = count === 1 ? '1 backup' : `${count ?? 'any'} backups`;
  const stay = count === 1 ? 'stays' : 'stay';
  const unbound = live.addresses.filter(world.isUnbound);
  const undeclared = 'no entry of the spec declares it';
  return {
    leftBilled: [
      ...(count === 0 ? [] : [`${backups} of ${key} ${stay} billed: ${backupsLeft(world)}`]),
      ...unbound.map(({ address }) => `${address} stays billed: it is attached to ${key}, and ${undeclared}`),
    ],
    consequences: live.addresses.flatMap(({ id, address }) => {
      const ip = world.keyOf(addressObject(id));
      if (ip === undefined || !isLeftIdle(ip, world)) return [];
      const message = `${ip} (${address}) is detached then, and stays billed as long as its entry is in the spec`;
      return [{ code: 'address_left_idle', key, message }];
    }),
  };
}

/** The API attaches free addresses only. */
function attachedToOld({ subject: { binding }, entry }: Existing): BodyProblem {
  return {
    code: 'address_in_use',
    reason: `the entry asks for the new server first, and ${addressOf(entry)} is attached to the old server ${binding?.id} until its deletion`,
    remedies: (key) => [
      edit(key, { set: { replace: { order: 'delete_first' } } }),
      edit(key, { choose: { public_ipv4: [] }, when: 'to use another address' }),
    ],
  };
}

/** Between the creation of the new server and the deletion of the old one, minutes pass. */
function billedTwice({ key, binding }: Subject): Warning[] {
  const message = `server ${binding?.id} is deleted once the new server is complete: for these minutes, both are billed`;
  return [{ code: 'billed_twice', key, message }];
}

/** For a server that is gone, and whose creation waits for an operator. @source API §1.4 */
export function addressLeft({ key, desired }: Subject<ServerEntry>, world: World): Warning[] {
  const ip = namedAddress(desired?.value);
  const live = ip && world.ip(world.idOf(ip) ?? '');
  if (live === undefined || live.server_id !== null) return [];
  const message = `${ip} (${live.address}) is detached, and stays billed as long as its entry is in the spec`;
  return [{ code: 'address_left_idle', key, message }];
}

/** An address of the spec that none of its servers asks for. */
function isLeftIdle(ip: ResourceKey, world: World): boolean {
  const subject = world.subjects.get(ip);
  if (subject?.desired === undefined || subject.parent !== undefined) return false;
  return !world.serverSubjects().some(({ desired }) => namedAddress(desired?.value) === ip);
}

/** The backups of a server that is not managed any more: no later plan reports them. @source API §1.5 */
export function backupsReleased({ key }: Subject, world: World): readonly string[] {
  const ids = world
    .childrenOf(key)
    .flatMap(({ kind, binding }) => (kind === 'backup' ? (binding?.id ?? []) : []));
  return ids.length === 0 ? [] : [`backup ${ids.join(', ')} of ${key} is not managed, and stays billed`];
}

/** The remedies before and after the deletion of the server. */
function backupsLeft({ profile }: World): string {
  const text = 'delete unneeded backups in the client area';
  if (profile.operations.delete_backup === undefined) return text;
  return `${text}. A lower \`backup.keep\` deletes some of them while the server exists`;
}
