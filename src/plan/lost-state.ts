import { appliedServer } from '../core/applied.ts';
import { isUnidentified } from '../core/claims.ts';
import { isBare } from '../core/desired.ts';
import { nounOf, type ResourceKey } from '../core/keys.ts';
import type { World } from '../core/kind.ts';
import { factsOf } from '../core/kind-facts.ts';
import type { Warning } from '../core/plan.ts';
import { command, type Remedy, setting, settleFirst } from '../core/remedy.ts';
import type { Draft } from './draft.ts';
import type { GuardInput, Objection } from './objections.ts';
import { adoptedById, ignoringAll, isConflict, mayDuplicate } from './purchases.ts';
import { isSecondHalf } from './replacements.ts';
import type { Register } from './unmanaged.ts';

/**
 * The name of the entry is free: an earlier state may have created the resource under another name, and no idempotency
 * key shows that any more.
 */
export function perhapsEarlier({ subject, kind, diff }: Draft, input: GuardInput): Objection | undefined {
  const { world, register } = input;
  if (diff.verdict.verdict !== 'create' || world.settings.unmanaged === 'ignore') return undefined;
  if (isSecondHalf(input, subject.key)) return undefined;
  const earlier = kind.creation?.unmanaged?.(subject, world).find(({ alike }) => alike);
  if (earlier === undefined) return undefined;
  const { id } = earlier;
  const { key } = subject;
  const what = `${nounOf(subject.kind)} ${world.nameOf({ kind: subject.kind, id })}`;
  return {
    reason: `the state ${register.isNew ? 'is new' : 'may be an old copy'}, and the project already has unmanaged ${what}, which may be ${key} under an earlier name: a creation could be a duplicate`,
    remedies: [
      command('adopt', [key, id], { when: `if ${what} belongs to this spec` }),
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
      command('adopt', [subject.key, 'ID'], {
        when: `if ${subject.key} already exists: ID is its id in the client area`,
      }),
      command('ignore', ['ID'], { when: 'if that server does not belong to this spec' }),
      setting('unmanaged', 'ignore', ignoringAll),
    ],
  };
}

/** An unidentified server may be the one that the entry describes. The creation itself asks the key of its own entry. */
export function besideUnidentified(
  { subject: { key, kind, desired }, diff }: Draft,
  input: GuardInput,
): Objection | undefined {
  const { register, world } = input;
  if (diff.verdict.verdict !== 'create' || desired === undefined || !isBare(desired)) return undefined;
  if (isSecondHalf(input, key)) return undefined;
  // The key of the lost resource is not the one of an unidentified server before it.
  const isLost = diff.verdict.lost !== undefined;
  const used = unidentifiedKeys(register, world).find((each) => each !== key || isLost);
  if (used === undefined) return undefined;
  const shown = world
    .serverSubjects()
    .find((each) => each.desired && register.line(each.desired).has(used) && world.isThere(each.key));
  const { binding } = shown ?? {};
  return {
    reason: `${unidentifiedText(used)}. It may exist, and may be ${key}`,
    remedies: [
      adoptedById(key, kind),
      ...(binding === undefined
        ? []
        : [
            command('adopt', [binding.key, 'ID'], {
              when: `if server ${binding.id} is ${key}, and server ID is ${binding.key}`,
              next: [command('adopt', [key, binding.id])],
            }),
          ]),
      noOther(used),
    ],
  };
}

/**
 * Another state has used the key of another entry, or has reserved it: that entry's resource is not known, and may be
 * this one.
 */
export function besideConflict(
  { subject: { key, kind, parent }, diff: { verdict } }: Draft,
  { openIntents }: GuardInput,
): Objection | undefined {
  // The resource of an entry is inside no server.
  const isDeleted = verdict.verdict === 'delete' || verdict.verdict === 'replace';
  if (parent !== undefined || !isDeleted) return undefined;
  const other = openIntents.find(
    (each) => each.kind === kind && each.verb === 'create' && each.key !== key && isConflict(each),
  );
  if (other === undefined) return undefined;
  const reason = `the resource of ${other.key} is not known, and may be the one of ${key}`;
  return { reason, remedies: settleFirst(other.key) };
}

/** The keys of the servers that neither an answer nor a read shows. */
function unidentifiedKeys({ claims }: Register, world: World): readonly ResourceKey[] {
  // A list of servers shows each of them.
  if (world.listsServers()) return [];
  return claims.filter(isUnidentified).map(({ holder }) => holder.key);
}

function unidentifiedText(key: ResourceKey): string {
  return `an earlier state used an idempotency key of ${key} for a server that no read shows`;
}

function noOther(key: ResourceKey): Remedy {
  return command('resolve', [key, '--absent'], {
    when: 'if the client area shows no other server of this spec',
  });
}

/** The servers of a lost state that may be billed, and that only the client area shows. */
export function unidentifiedWarnings(register: Register, world: World): Warning[] {
  return unidentifiedKeys(register, world).map((key) => ({
    code: 'unlisted_servers',
    key,
    message: `${unidentifiedText(key)}. If it exists, it is billed`,
    remedies: [
      command('adopt', ['KEY', 'ID'], { when: 'if the client area shows it, and KEY is its entry' }),
      command('ignore', ['ID'], { when: 'if it does not belong to this spec', next: [noOther(key)] }),
      noOther(key),
    ],
  }));
}

/**
 * If this state did not create the server, an image of the server may be older than this state,
 * and no list shows images. @assumption A51
 */
export function takenBefore(
  { subject: { key, desired }, kind, diff }: Draft,
  input: GuardInput,
): Objection | undefined {
  const { world, register } = input;
  if (!factsOf(kind.name).unlisted || diff.verdict.verdict !== 'create' || !register.isNew) return undefined;
  if (isSecondHalf(input, key)) return undefined;
  const [from] = (desired && kind.entry.references?.(desired.value)) ?? [];
  const server = from && world.subjects.get(from.key);
  if (server?.binding === undefined || world.settings.unmanaged === 'ignore') return undefined;
  if (appliedServer(server.binding).isCreated) return undefined;
  return {
    reason: `the state is new, and ${server.key} is older. The image may be older too: no list shows images`,
    remedies: [
      command('adopt', [key, 'ID'], { when: 'if the client area shows the image' }),
      setting('unmanaged', 'ignore', 'to take a new image'),
    ],
  };
}
