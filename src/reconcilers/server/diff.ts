import equal from 'fast-deep-equal';
import { childKey, type ResourceKey, topLevelKey } from '../../core/keys.ts';
import type { Diff, Subject, World } from '../../core/kind.ts';
import type { Change, Verb, Warning } from '../../core/plan.ts';
import { poolDoubts } from '../address-pool.ts';
import { blocked, fromNothing, incomplete, member, renaming, toNothing, unchanged } from '../existence.ts';
import { ownAddress } from '../own-address.ts';
import { addressAlongside, addressOf, addressProblem } from './address.ts';
import {
  diffFields,
  knownOf,
  madeOf,
  type Problem,
  priceApplied,
  resolveBody,
  type Sent,
  unproven,
} from './body.ts';
import type { ServerEntry, ServerObserved } from './entry.ts';
import { canResize, diffDoubted, diffShown, diffSize, isSize } from './resize.ts';

export const neededToCreate = ['server_type', 'image'] as const;

/** A server that is not there: resolved against the catalogue, or told why it cannot be. */
export function diffCreate(subject: Subject<ServerEntry>, entry: ServerEntry, world: World): Diff {
  const resolved = resolveBody(entry, world, []);
  if ('problem' in resolved) return impossible('create', resolved.problem);
  const address = addressProblem(subject.key, entry, world);
  if (address !== undefined) return impossible('create', address);
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
      ...resolved.warnings.map((message) => ({ code: 'gpu_package_not_sold', key: subject.key, message })),
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

function impossible(verb: Verb, { code, reason, resolve }: Problem): Diff {
  return blocked(verb, code, reason, resolve);
}

/** A server that is there: compared by what was last applied, as no read shows it. */
export function diffLive(
  subject: Subject<ServerEntry>,
  entry: ServerEntry,
  live: ServerObserved,
  world: World,
): Diff {
  const warnings = [
    ...surplusCards(subject, live, world),
    ...misattached(subject, entry, live, world),
    ...unasked(subject, live, world),
  ];
  const applied = subject.binding?.applied ?? null;
  const { asked, along } = diffName(subject);
  const resizable = canResize(entry, world);
  const harmless = (path: string) =>
    member(live.shown, path) !== undefined || (resizable && isSize({ path }));
  const { changes, notes } = diffFields(entry, applied, world, harmless);
  const doubted = diffDoubted(entry, subject).filter(
    ({ path }) => !changes.some((each) => each.path === path),
  );
  const edited = [...changes, ...(resizable ? doubted : [])];
  const fields = [...asked, ...edited.flatMap((change) => asShown(change, live))];
  warnings.push(...notes.map((message) => ({ code: 'catalogue_changed', key: subject.key, message })));
  const moved = diffShown(entry, live.shown).filter(({ path }) => !fields.some((each) => each.path === path));
  warnings.push(...shownOtherwise(subject, entry, live, resizable ? [] : moved));
  if (!resizable) warnings.push(...doubted.flatMap((change) => asShown(change, live)).map(mayBe(subject)));
  const address = diffAddress(entry, live, world, applied);
  const all = [...fields, ...(resizable ? moved : []), ...address];
  if (all.length === 0) return { ...unchanged, warnings: [...warnings, ...corrected(subject, entry, live)] };
  const fixed = all.filter((each) => !(resizable && isSize(each)));
  if (fixed.length === 0) {
    return { ...diffSize(subject, entry, { asked: fields, moved }, live, world), warnings };
  }
  const lacking = incomplete(subject, all, neededToCreate);
  if (lacking !== undefined) return { ...lacking, warnings };
  const resolved = resolveBody(entry, world, []);
  if ('problem' in resolved) return { ...impossible('update', resolved.problem), warnings };
  const problem = addressProblem(subject.key, entry, world);
  if (problem !== undefined) return { ...impossible('update', problem), warnings };
  const stays = whatStays(subject, live, world);
  const isServed = holdsNamed(entry, live, world) && !all.some(({ path }) => path === 'server_type');
  if (!isServed) warnings.push(...poolDoubts(subject, entry, world));
  const reason = `${fixed.map(({ path }) => path).join(', ')} cannot be changed in place`;
  return {
    verdict: {
      verdict: 'replace',
      changes: [...along, ...all],
      reason,
      allowed: entry.replace === 'allowed',
    },
    warnings,
    ...stays,
    consequences: [...stays.consequences, ...mayBeRefused(subject, resolved.body, world)],
    price: resolved.price,
    ...(resolved.dearest === undefined ? {} : { dearest: resolved.dearest }),
    ...addressAlongside(subject.key, entry, world),
    freed: priceApplied(subject, live.shown, world),
  };
}

/** A resize that the profile opened then, and does not open any more. */
function mayBe({ key }: Subject): (change: Change) => Warning {
  return ({ path, from, to }) => {
    const message = `${path} may be ${from}, not ${to}: nobody knows whether a resize that was given up was carried out; look in the client area`;
    return { code: 'server_differs', key, message };
  };
}

/** What is shown goes before what was last applied. */
function asShown(change: Change, { shown }: ServerObserved): Change[] {
  const from = member(shown, change.path);
  if (from === undefined) return [change];
  return equal(from, change.to) ? [] : [{ ...change, from }];
}

/** What somebody else made may be called anything: its entry's name is only what it goes by here. */
function diffName(subject: Subject<ServerEntry>) {
  const sent = member(member(subject.binding?.applied, 'body'), 'name');
  return typeof sent === 'string' ? renaming(subject, sent) : { asked: [], along: [] };
}

/** What the API shows of it, and neither the file nor the profile can change. */
function shownOtherwise(
  { key, binding, desired }: Subject,
  entry: ServerEntry,
  { shown }: ServerObserved,
  moved: readonly Change[],
): Warning[] {
  const warn = (message: string): Warning => ({ code: 'server_differs', key, message });
  const sent = member(member(binding?.applied, 'body'), 'name');
  const name = desired?.named === false ? sent : entry.name.trim();
  const renamed = sent !== undefined && shown !== undefined && shown.name.trim() !== name;
  return [
    ...(renamed
      ? [warn(`it is named "${shown.name}" in the project; giving it another name is not documented`)]
      : []),
    ...moved.map(({ path, from, to }) =>
      warn(
        `${path} is ${from}, not ${to}; a resize is not documented, and may be enabled in the API profile`,
      ),
    ),
  ];
}

/**
 * What an address is called matters, not the word it was asked for with: `{new: true}` and
 * `{reuse: true}` both mean some address, and a server that holds the named one has it. Of what
 * somebody else made, what it holds tells, and not what its entry said before.
 */
function diffAddress(entry: ServerEntry, live: ServerObserved, world: World, applied: unknown): Change[] {
  const before = member(applied, 'entry') as ServerEntry | null | undefined;
  if (before === undefined || before === null) return [];
  const [from, to] = [addressOf(before), addressOf(entry)];
  const some = (address: string | undefined) => address === 'new' || address === 'reuse';
  if (from === to || (some(from) && some(to)) || holdsNamed(entry, live, world)) return [];
  const holds = live.addresses.length > 0;
  if (member(applied, 'body') == null && (some(to) ? holds : to === undefined && !holds)) return [];
  return [{ path: 'public_ipv4', from: from ?? null, to: to ?? null }];
}

function holdsNamed({ public_ipv4: wanted }: ServerEntry, live: ServerObserved, world: World): boolean {
  if (wanted === undefined || !('ip' in wanted)) return false;
  const id = world.idOf(topLevelKey('ips', wanted.ip));
  return live.addresses.some((each) => String(each.id) === id);
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
      ...(count === 0 ? [] : [`${backups} of ${key} ${stay} billed: ${backupsLeft(world, live.id)}`]),
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

/** Of a server that is gone, and is not made again before a person says so. @source API §1.4 */
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
export function backupsLetGo({ key }: Subject, world: World): readonly string[] {
  const ids = world
    .childrenOf(key)
    .flatMap(({ kind, binding }) => (kind === 'backup' ? (binding?.id ?? []) : []));
  return ids.length === 0 ? [] : [`backup ${ids.join(', ')} of ${key}, which is not managed, stays billed`];
}

/** What helps before the server goes, and after it. */
function backupsLeft({ profile }: World, id: string | undefined): string {
  const sooner =
    profile.operations.delete_backup === undefined
      ? ''
      : ' (a lower `backup.keep` deletes some while the server is there)';
  return `delete what is not needed in the client area, then: vdcsync ignore ${id}${sooner}`;
}

/**
 * No documented read shows what a server was made of: of one that was adopted, the file is believed,
 * but for what the profile's reads do show. @assumption A48
 */
export function unseen(
  { desired, binding }: Subject<ServerEntry>,
  live: ServerObserved | undefined,
): ReturnType<typeof madeOf> {
  const ours = member(binding?.applied, 'body') != null;
  if (desired === undefined || ours) return [];
  return madeOf(desired.value).filter((field) => member(live?.shown, field) === undefined);
}

/** Told when it is adopted. */
export function unchecked(subject: Subject<ServerEntry>, live: ServerObserved): Warning[] {
  const known = knownOf(subject.binding?.applied ?? null);
  const fields = unseen(subject, live).filter((field) => !known.includes(field));
  if (fields.length === 0) return [];
  const what = fields.join(', ');
  const edits =
    subject.binding === undefined ? '' : `. Until that was said, no edit of ${what} makes it anew`;
  const hint = live.shown === undefined ? '. read_server in the API profile may show sizes' : '';
  const message = `nothing shows whether server ${live.id}, which this state did not make, has ${what} as the file says. If the client area shows that it has: vdcsync adopt ${subject.key} ${live.id}; else correct the entry, which may leave these out where it has an \`id:\`${edits}${hint}`;
  return [{ code: 'server_unchecked', key: subject.key, message }];
}

/** Where the file says something else of it than it did, and nobody has vouched for that by adopting it since. */
function corrected(subject: Subject<ServerEntry>, entry: ServerEntry, live: ServerObserved): Warning[] {
  const applied = subject.binding?.applied ?? null;
  const known = knownOf(applied);
  const isNew = (field: ReturnType<typeof madeOf>[number]) =>
    !known.includes(field) && !equal(member(member(applied, 'entry'), field), entry[field]);
  return unseen(subject, live).some(isNew) ? unchecked(subject, live) : [];
}

/** An address that came with the server though nothing asked for it is billed, so it is told. @assumption A22 */
function unasked(subject: Subject<ServerEntry>, live: ServerObserved, world: World): Warning[] {
  const own = ownAddress(subject, world);
  return live.addresses
    .filter((each) => world.isNobodys(each) && each.id !== own?.id)
    .map(({ id, address }) => ({
      code: 'address_not_as_declared',
      key: subject.key,
      message: `the server holds ${address}, which nothing in the file stands for; it is billed, also once the server has gone, unless an entry under \`ips\` takes it over by \`id: ${id}\``,
    }));
}

/**
 * Removing a card is undocumented, so one too many can only be told; even then only what this
 * file added is removed. A file that names no networks minds no card. @assumption A15
 */
function surplusCards(subject: Subject<ServerEntry>, live: ServerObserved, world: World): Warning[] {
  const cards = world.childrenOf(subject.key).filter(({ kind }) => kind === 'network_interface');
  if (!cards.some(({ desired }) => desired !== undefined)) return [];
  const wanted = new Set(
    cards.flatMap(({ desired }) =>
      desired === undefined ? [] : world.idOf((desired.value as { readonly network: never }).network),
    ),
  );
  // One that left the entry is told under its own key.
  const added = new Set(cards.flatMap(({ desired, binding }) => (desired ? [] : (binding?.id ?? []))));
  const why =
    world.profile.operations.remove_network_interface === undefined
      ? 'removing a card is not documented'
      : "nothing says that it is this file's: name its network in the file, apply, and take it out again";
  return (live.cards ?? [])
    .filter((card) => !card.public && card.network_id !== null && !wanted.has(String(card.network_id)))
    .filter(({ id }) => !added.has(id))
    .map((card) => ({
      code: 'surplus_network_interface',
      key: subject.key,
      message: `card ${card.id} is in network ${card.network_id}, which the file does not name; ${why}`,
    }));
}

/** A server that should hold an address of the file, and does not. */
function misattached(
  { key }: Subject<ServerEntry>,
  entry: ServerEntry,
  live: ServerObserved,
  world: World,
): Warning[] {
  const wanted = entry.public_ipv4;
  if (wanted === undefined || !('ip' in wanted) || holdsNamed(entry, live, world)) return [];
  const held = live.addresses.map(({ address }) => address).join(', ');
  const message = `the server holds ${held === '' ? 'no address' : held} instead of ips.${wanted.ip}; attaching an address to a server that exists is not documented`;
  return [{ code: 'address_not_as_declared', key, message }];
}
