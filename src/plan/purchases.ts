import { type KindName, nounOf, type ResourceKey, topLevelKey } from '../core/keys.ts';
import type { Diff, Subject, World } from '../core/kind.ts';
import { outside, run, setting } from '../core/remedy.ts';
import type { Intent } from '../core/state.ts';
import type { Draft } from './draft.ts';
import type { Facts, GuardInput, Objection, Purchase } from './objections.ts';
import { described, hasComeSince, ignoring, isNone, strangersFor } from './strangers.ts';

/** What is held against a purchase now: what is there may be just that. */
export function boughtAlready(draft: Draft, input: Purchase): Objection | undefined {
  return unmanaged(draft, input, { matches: new Map() }) ?? unlistedServers(draft, input);
}

/** What is there and nobody has vouched for may be what this file describes: bought before, or by another copy of the state. */
export function unmanaged(
  { subject, diff }: Draft,
  { world, strangers: found }: Purchase,
  { matches }: Pick<Facts, 'matches'>,
): Objection | undefined {
  if (!isPurchase(subject, diff)) return undefined;
  const strangers = strangersFor(subject.kind, found);
  if (isNone(strangers) || world.settings.unmanaged === 'ignore') return undefined;
  const { key, kind } = subject;
  // A state that has seen the project before has no server that shows by nothing but a free address.
  if (found.since === 'settled' && kind === 'server' && strangers.servers.length === 0) return undefined;
  const id = matches.get(key);
  const address = kind === 'ip' ? world.ip(id ?? '')?.address : undefined;
  const what = described(strangers);
  const one = kind === 'ip' ? 'one of them: its id, or the address itself' : 'one of them';
  return {
    verb: 'create',
    code: 'unmanaged_resources',
    reason:
      found.since === 'new'
        ? `the local state is new, and the project already has ${what}, which may be what this file describes${unseen(subject, world)}`
        : `${what} came without this state's doing: if another copy of it bought that, this would be bought twice`,
    remedies: [
      run('adopt', [key, id ?? 'ID'], { when: `if it is ${address ?? (id === undefined ? one : 'this')}` }),
      { ...ignoring(strangers), when: "if nothing of it is this file's" },
      setting('unmanaged', 'ignore'),
    ],
  };
}

/** The file has said that it is not managed, and says so no more: what the key stood for is there, and billed. */
export function letGoBefore(
  { subject: { key, binding, kind }, diff }: Draft,
  { world, strangers }: Purchase,
): Objection | undefined {
  const name = strangers.vouched?.letGo?.[key];
  const isNew = diff.verdict.verdict === 'create' && binding === undefined;
  if (!isNew || name === undefined || world.settings.unmanaged === 'ignore') return undefined;
  const [id = '', address] = kind === 'server_image' ? [name] : name.split(' ');
  const another =
    kind === 'server_image'
      ? outside('add a new entry under `server_images`', { when: 'to have another image taken' })
      : run('ignore', [address ?? id], { when: 'to have another one made' });
  if (kind === 'ip' && world.ip(id)?.address !== address) return undefined;
  return {
    verb: 'create',
    code: 'let_go_before',
    reason: `${key} stood for ${nounOf(kind)} ${address ?? id} before it was not managed any more, and that stays billed: this would be another one beside it`,
    remedies: [run('adopt', [key, id], { when: 'to have it managed again' }), another],
  };
}

/** Servers of which nothing but a count is to be seen may be what this file describes as well. @assumption A8 */
export function unlistedServers(
  { subject, diff }: Draft,
  { world, strangers }: Purchase,
): Objection | undefined {
  if (!isPurchase(subject, diff) || subject.kind !== 'server' || strangers.since !== 'new') return undefined;
  const found = strangers.unlisted;
  if (found === undefined || world.settings.unmanaged === 'ignore') return undefined;
  const { network, servers } = found;
  const { public_ipv4: address } = (subject.desired?.value ?? {}) as { readonly public_ipv4?: unknown };
  const hidden =
    address === undefined
      ? ''
      : ': an address may have been taken from it since, or the list of addresses may lack it';
  const which =
    servers === 1 ? 'server that no address shows, which' : 'servers that no address shows, one of which';
  return {
    verb: 'create',
    code: 'unlisted_servers',
    reason: `the local state is new, and network ${network} counts ${servers} ${which} may be what this file describes${hidden}`,
    remedies: [
      run('adopt', [subject.key, 'ID'], { when: 'if it is one of them: the client area shows its id' }),
      run('ignore', ['ID'], { when: 'if this file does not manage it' }),
      setting('unmanaged', 'ignore'),
    ],
  };
}

/**
 * Of a server that this state did not make an image may have been taken before this state was
 * born, and no list shows images. @assumption A51
 */
export function takenBefore(
  { subject, diff }: Draft,
  { world, strangers }: GuardInput,
): Objection | undefined {
  const { key, kind, desired } = subject;
  if (kind !== 'server_image' || diff.verdict.verdict !== 'create' || strangers.since !== 'new')
    return undefined;
  const { server: name } = desired?.value as { readonly server?: string };
  const server = name === undefined ? undefined : world.subjects.get(topLevelKey('servers', name));
  const made = (server?.binding?.applied as { readonly body?: unknown } | null | undefined)?.body;
  if (server?.binding === undefined || made != null || world.settings.unmanaged === 'ignore')
    return undefined;
  return {
    verb: 'create',
    code: 'image_taken_before',
    reason: `the local state is new, ${server.key} was there before it, and so may be the image: no list shows images`,
    remedies: [
      run('adopt', [key, 'ID'], { when: 'if the client area shows it' }),
      setting('unmanaged', 'ignore', 'to have one taken'),
    ],
  };
}

/** A creation that takes what is free could take what an unresolved one has made. */
export function besideUnresolved(
  { subject: { key }, diff: { verdict } }: Draft,
  { kinds, world, openIntents }: GuardInput,
): Objection | undefined {
  const makes = verdict.verdict === 'create' || verdict.verdict === 'replace';
  if (!makes || openIntents.some((each) => each.key === key)) return undefined;
  const blocked = openIntents.filter(({ phase }) => phase === 'blocked');
  const other = confusableWith(key, blocked, { world, kinds });
  if (other === undefined) return undefined;
  return {
    verb: verdict.verdict === 'create' ? 'create' : 'update',
    code: 'unresolved_create',
    reason: `it is not known whether ${other.key} was created`,
    remedies: [outside(`settle ${other.key} first`, { next: [run('apply')] })],
  };
}

/** The unconfirmed creation with which a creation of the key could be confused. */
export function confusableWith(
  key: ResourceKey,
  open: readonly Intent[],
  known: Pick<GuardInput, 'kinds' | 'world'>,
): Intent | undefined {
  return open.find((each) => each.ambiguous && each.verb === 'create' && isConfusable(each, key, known));
}

/**
 * Whether one of the two creations takes whatever is free in the list in which both show. What came since the open one, and
 * no read settles, may be the other's as well.
 */
function isConfusable(
  open: Pick<Intent, 'key' | 'kind' | 'phase' | 'preimage'>,
  key: ResourceKey,
  { kinds, world }: Pick<GuardInput, 'kinds' | 'world'>,
): boolean {
  const subject = world.subjects.get(key);
  if (subject === undefined) return false;
  const listOf = (name: KindName) => kinds.get(name)?.seenAmong ?? name;
  if (listOf(open.kind) !== listOf(subject.kind)) return false;
  if (open.phase === 'blocked' && hasComeSince(open, world)) return true;
  const takes = kinds.get(subject.kind)?.takesFree?.(subject, world);
  // Nothing of it is there, and it is sent again once what is there has been taken.
  if (takes === 'shown' && open.kind === listOf(subject.kind) && open.phase === 'waiting') return false;
  const other = world.subjects.get(open.key);
  return takes !== undefined || (other && kinds.get(open.kind)?.takesFree?.(other, world)) !== undefined;
}

export function isPurchase({ kind }: Subject, { verdict }: Diff): boolean {
  return verdict.verdict === 'create' && (kind === 'server' || kind === 'ip');
}

/** @source API §4: servers cannot be listed */
function unseen({ kind, desired }: Subject, { servers }: World): string {
  const entry = desired?.value as { readonly public_ipv4?: unknown } | undefined;
  if (kind !== 'server' || servers !== undefined || entry?.public_ipv4 !== undefined) return '';
  return '; a server without a public address is not to be seen, but with list_servers in the API profile';
}
