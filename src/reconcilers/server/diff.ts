import { childKey, type ResourceKey, topLevelKey } from '../../core/keys.ts';
import type { Diff, Subject, World } from '../../core/kind.ts';
import type { Change, Verb, Warning } from '../../core/plan.ts';
import { poolDoubts } from '../address-pool.ts';
import { blocked, fromNothing, incomplete, member, toNothing, unchanged } from '../existence.ts';
import { addressAlongside, addressOf, addressProblem } from './address.ts';
import { type Problem, priceApplied, resolveBody, type Sent, unproven } from './body.ts';
import { type Differences, differencesOf, type Existing, holdsNamed } from './differences.ts';
import type { ServerEntry, ServerObserved } from './entry.ts';
import { diffSize, isSize } from './resize.ts';
import { corrected, liveWarnings } from './warnings.ts';

export const neededToCreate = ['server_type', 'image'] as const;

/** A server that is not there: resolved against the catalogue, or told why it cannot be. */
export function diffCreate(subject: Subject<ServerEntry>, entry: ServerEntry, world: World): Diff {
  const resolved = resolveBody(entry, world, []);
  if ('problem' in resolved) return impossible('create', subject.key, resolved.problem);
  const address = addressProblem(subject.key, entry, world);
  if (address !== undefined) return impossible('create', subject.key, address);
  const changes = fromNothing({
    ...resolved.body,
    // All of them: which one it is to be is found out when it is asked for.
    gpu_package: entry.gpu_package,
    public_ipv4: addressOf(entry),
  });
  return {
    verdict: {
      verdict: 'create',
      changes,
      ...(subject.binding === undefined
        ? {}
        : { lost: `server ${subject.binding.id} does not exist any more` }),
    },
    warnings: [
      ...resolved.warnings.map(
        (message): Warning => ({ code: 'gpu_package_not_sold', key: subject.key, message }),
      ),
      ...poolDoubts(subject, entry, world),
    ],
    price: resolved.price,
    ...(resolved.dearest === undefined ? {} : { dearest: resolved.dearest }),
    ...addressAlongside(subject.key, entry, world),
    consequences: standsOpen(subject, entry, world),
  };
}

/** Nothing filters what comes in where the file says nothing of it. @source API §4: a new server's firewall is disabled */
function standsOpen({ key }: Subject, entry: ServerEntry, world: World): Warning[] {
  const filtered = world
    .childrenOf(key)
    .some(({ kind, desired }) => kind === 'firewall' && desired !== undefined);
  if (entry.public_ipv4 === undefined || filtered) return [];
  const message =
    'it gets a public address and has no `firewall` in the file: all its ports are open to everybody';
  return [{ code: 'no_firewall', key, message }];
}

function impossible(verb: Verb, key: ResourceKey, { code, reason, remedies }: Problem): Diff {
  return blocked(verb, code, reason, remedies(key));
}

/** A server that is there: compared by what was last applied, as no read shows it. */
export function diffLive(existing: Existing): Diff {
  const differences = differencesOf(existing);
  const diff = judge(existing, differences);
  return { ...diff, warnings: [...liveWarnings(existing, differences), ...(diff.warnings ?? [])] };
}

/** Nothing, another size in place, or another server. */
function judge(existing: Existing, differences: Differences): Diff {
  const { subject, entry, live, world } = existing;
  const { asked, moved, address, resizable } = differences;
  const all = [...asked, ...(resizable ? moved : []), ...address];
  if (all.length === 0) return { ...unchanged, warnings: corrected(existing) };
  const isFixed = all.some((each) => !(resizable && isSize(each)));
  if (!isFixed) return diffSize(subject, entry, { asked, moved }, live, world);
  return incomplete(subject, all, neededToCreate) ?? diffReplace(existing, differences, all);
}

/** The new server is resolved as one that is not there yet is. */
function diffReplace(
  existing: Existing,
  { along, resizable }: Differences,
  changes: readonly Change[],
): Diff {
  const { subject, entry, live, world } = existing;
  const resolved = resolveBody(entry, world, []);
  if ('problem' in resolved) return impossible('update', subject.key, resolved.problem);
  const problem = addressProblem(subject.key, entry, world);
  if (problem !== undefined) return impossible('update', subject.key, problem);
  const fixed = changes.filter((each) => !(resizable && isSize(each)));
  const isServed = holdsNamed(existing) && !changes.some(({ path }) => path === 'server_type');
  const stays = whatStays(subject, live, world);
  return {
    verdict: {
      verdict: 'replace',
      changes: [...along, ...changes],
      reason: `${fixed.map(({ path }) => path).join(', ')} cannot be changed in place`,
      allowed: entry.replace === 'allowed',
    },
    warnings: isServed ? [] : poolDoubts(subject, entry, world),
    ...stays,
    consequences: [...stays.consequences, ...mayBeRefused(subject, resolved.body, world)],
    price: resolved.price,
    ...(resolved.dearest === undefined ? {} : { dearest: resolved.dearest }),
    ...addressAlongside(subject.key, entry, world),
    freed: priceApplied(subject, live.shown, world),
  };
}

/** A server that has left the file. */
export function diffLeaving(subject: Subject<ServerEntry>, live: ServerObserved, world: World): Diff {
  const body = member(subject.binding?.applied, 'body');
  const addresses = live.addresses.map(({ address }) => address).join(', ');
  return {
    verdict: {
      verdict: 'delete',
      changes: toNothing({ name: member(body, 'name'), addresses: addresses === '' ? undefined : addresses }),
    },
    ...whatStays(subject, live, world),
    freed: priceApplied(subject, live.shown, world),
  };
}

/** Its backups, and addresses that no server holds afterwards. @source API §1.4, §1.5 */
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
  return {
    leftBilled: [
      ...(count === 0 ? [] : [`${backups} of ${key} ${stay} billed: ${backupsLeft(world)}`]),
      ...live.addresses
        .filter(world.isNobodys)
        .map(
          ({ address }) => `${address} stays billed: ${key} holds it, and nothing in the file stands for it`,
        ),
    ],
    consequences: live.addresses.flatMap(({ id, address }) => {
      const ip = world.keyOf('ip', String(id));
      if (ip === undefined || !isLeftIdle(ip, world)) return [];
      const message = `${ip} (${address}) is attached to nothing then, and stays billed as long as its entry is in the file`;
      return [{ code: 'address_left_idle', key, message }];
    }),
  };
}

/** The API's refusal of the new one would come when the old one is gone. @assumption A36 @assumption A54 */
function mayBeRefused({ key, binding }: Subject, body: Sent, world: World): Warning[] {
  const fields = unproven(body, binding?.applied ?? null, world);
  if (fields.length === 0) return [];
  const values = fields.map((field) => `${field} ${JSON.stringify(body[field])}`).join(', ');
  const message = `nothing shows beforehand whether the API takes ${values}, and server ${binding?.id} is deleted first: a refusal leaves neither; make one with that under a new key beside it before, or look it up in the client area`;
  return [{ code: 'replacement_unchecked', key, message }];
}

/** Of a server that is gone, and is not made again before an operator says so. @source API §1.4 */
export function addressLeft({ key, desired }: Subject<ServerEntry>, world: World): Warning[] {
  const wanted = desired?.value.public_ipv4;
  if (wanted === undefined || !('ip' in wanted)) return [];
  const ip = topLevelKey('ips', wanted.ip);
  const live = world.ip(world.idOf(ip) ?? '');
  if (live === undefined || live.server_id !== null) return [];
  const message = `${ip} (${live.address}) is attached to nothing, and stays billed as long as its entry is in the file`;
  return [{ code: 'address_left_idle', key, message }];
}

/** An address of the file that no server of it asks for. */
function isLeftIdle(ip: ResourceKey, world: World): boolean {
  const subject = world.subjects.get(ip);
  if (subject?.desired === undefined || subject.parent !== undefined) return false;
  return !world.subjectsOf('server').some(({ desired }) => {
    const wanted = (desired?.value as ServerEntry | undefined)?.public_ipv4;
    return wanted !== undefined && 'ip' in wanted && topLevelKey('ips', wanted.ip) === ip;
  });
}

/** Of a server that is not managed any more: nobody tells of them then. @source API §1.5 */
export function backupsReleased({ key }: Subject, world: World): readonly string[] {
  const ids = world
    .childrenOf(key)
    .flatMap(({ kind, binding }) => (kind === 'backup' ? (binding?.id ?? []) : []));
  return ids.length === 0 ? [] : [`backup ${ids.join(', ')} of ${key}, which is not managed, stays billed`];
}

/** What helps before the server goes, and after it. */
function backupsLeft({ profile }: World): string {
  const sooner =
    profile.operations.delete_backup === undefined
      ? ''
      : ' (a lower `backup.keep` deletes some while the server is there)';
  return `delete what is not needed in the client area${sooner}`;
}
