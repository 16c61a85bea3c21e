import { appliedServer } from '../core/applied.ts';
import { isBare } from '../core/desired.ts';
import { nounOf } from '../core/keys.ts';
import { factsOf } from '../core/kind-facts.ts';
import { run, setting } from '../core/remedy.ts';
import type { Draft } from './draft.ts';
import type { GuardInput, Objection } from './objections.ts';
import { adoptedById, ignoringAll, mayDuplicate } from './purchases.ts';
import { isNone } from './unmanaged.ts';

/**
 * The name of the entry is free, and the state is new, or may be an old copy: an earlier state may have created the
 * resource under another name, and no idempotency key shows that any more.
 */
export function perhapsEarlier(
  { subject, kind, diff }: Draft,
  { world, register }: GuardInput,
): Objection | undefined {
  if (diff.verdict.verdict !== 'create' || world.settings.unmanaged === 'ignore') return undefined;
  if (!register.isNew && isNone(register.unmanaged)) return undefined;
  const earlier = kind.creation?.unmanaged?.(subject, world).find(({ alike }) => alike);
  if (earlier === undefined) return undefined;
  const { id } = earlier;
  const { key } = subject;
  const what = `${nounOf(subject.kind)} ${world.nameOf({ kind: subject.kind, id })}`;
  return {
    reason: `the state ${register.isNew ? 'is new' : 'may be an old copy'}, and the project already has unmanaged ${what}, which may be ${key} under an earlier name: a creation could be a duplicate`,
    remedies: [
      run('adopt', [key, id], { when: `if ${what} belongs to this spec` }),
      setting('unmanaged', 'ignore', ignoringAll),
    ],
  };
}

/** A server that only the count of a network shows may also be the one that this spec describes. @assumption A8 */
export function unlistedServers(draft: Draft, input: GuardInput): Objection | undefined {
  const { subject } = draft;
  const { unlisted: found, isNew } = input.register;
  if (found === undefined || !isNew || !factsOf(subject.kind).container) return undefined;
  if (!mayDuplicate(draft, input)) return undefined;
  const { network, servers } = found;
  const address = subject.desired?.value.public_ipv4;
  const hidden =
    address === undefined
      ? ''
      : '. Its address may have been detached, or be missing in the list of addresses';
  const which =
    servers === 1 ? 'server without a known address. It' : 'servers without a known address. One of them';
  return {
    reason: `the state is new, and network ${network} counts ${servers} ${which} may be ${subject.key}${hidden}`,
    remedies: [
      run('adopt', [subject.key, 'ID'], {
        when: `if ${subject.key} already exists: ID is its id in the client area`,
      }),
      run('ignore', ['ID'], { when: 'if that server does not belong to this spec' }),
      setting('unmanaged', 'ignore', ignoringAll),
    ],
  };
}

/**
 * A new state found a server under an idempotency key, and another key of that entry was used too: another server may
 * exist, which may be the one that this spec describes.
 */
export function besideFound(
  { subject: { key, kind, desired }, diff }: Draft,
  { register, world }: GuardInput,
): Objection | undefined {
  if (diff.verdict.verdict !== 'create' || desired === undefined || !isBare(desired)) return undefined;
  const bound = world
    .serverSubjects()
    .flatMap(({ binding }) => (binding?.recovered === 'another' ? [binding] : []));
  const claimed = register.claims.flatMap(({ id, holder }) =>
    holder.is === 'found' && holder.recovered === 'another'
      ? [{ key: holder.askedFor ?? holder.key, id }]
      : [],
  );
  // The creation asks the keys of its own entry.
  const found = [...bound, ...claimed].find((each) => each.key !== key);
  if (found === undefined) return undefined;
  return {
    reason: `${found.key} is server ${found.id}, and an earlier state used another idempotency key of ${found.key} too: another server may exist, and may be ${key}`,
    remedies: [
      adoptedById(key, kind),
      run('adopt', [found.key, 'ID'], {
        when: `if server ${found.id} is ${key}, and server ID is ${found.key}`,
        next: [run('adopt', [key, found.id])],
      }),
      run('adopt', [found.key, found.id], { when: `if no server of the client area is ${key}` }),
    ],
  };
}

/**
 * If this state did not create the server, an image of the server may be older than this state,
 * and no list shows images. @assumption A51
 */
export function takenBefore(
  { subject: { key, desired }, kind, diff }: Draft,
  { world, register }: GuardInput,
): Objection | undefined {
  if (!factsOf(kind.name).unlisted || diff.verdict.verdict !== 'create' || !register.isNew) return undefined;
  const [from] = (desired && kind.entry.references?.(desired.value)) ?? [];
  const server = from && world.subjects.get(from.key);
  if (server?.binding === undefined || world.settings.unmanaged === 'ignore') return undefined;
  if (appliedServer(server.binding).isCreated) return undefined;
  return {
    reason: `the state is new, and ${server.key} is older. The image may be older too: no list shows images`,
    remedies: [
      run('adopt', [key, 'ID'], { when: 'if the client area shows the image' }),
      setting('unmanaged', 'ignore', 'to take a new image'),
    ],
  };
}
