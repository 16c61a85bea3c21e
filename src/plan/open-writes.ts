import { bindingBy, type DesiredResource, fieldOf } from '../core/desired.ts';
import { partsOf } from '../core/intent.ts';
import { digestOf } from '../core/json.ts';
import { type ResourceKey, retiringKey } from '../core/keys.ts';
import type { World } from '../core/kind.ts';
import { factsOf } from '../core/kind-facts.ts';
import type { Blocked, Operation } from '../core/plan.ts';
import { command, edit, outside, type Remedy, setting } from '../core/remedy.ts';
import type { Ip } from '../core/resources.ts';
import type { Intent } from '../core/state.ts';

/** The writes that are not settled, except for refusals of an entry that the spec has changed since. */
export function openWrites(intents: readonly Intent[], world: World): ReadonlyMap<ResourceKey, Intent> {
  return new Map(
    intents.filter((intent) => !isOvertaken(intent, world)).map((intent) => [intent.key, intent]),
  );
}

/** An earlier run has sent the write of the operation, which the next apply finishes. */
export function isBegun(
  { key, verb }: Pick<Operation, 'key' | 'verb'>,
  inFlight: ReadonlyMap<ResourceKey, Intent>,
): boolean {
  const open = inFlight.get(key);
  return open?.verb === verb && open.phase !== 'blocked';
}

/** The API refused the entry, and the spec has another entry now. */
export function isOvertaken(intent: Intent, world: World): boolean {
  if (intent.phase !== 'blocked' || intent.blocked.until !== 'file') return false;
  return isEdited(intent, world);
}

/** The spec has another entry than the one that asked for the write, or none. */
export function isEdited({ key, basis }: Pick<Intent, 'key' | 'basis'>, { subjects }: World): boolean {
  return digestOf(subjects.get(key)?.desired?.value ?? null) !== basis;
}

/** The facts about an open write that the write itself does not hold. */
interface Beside {
  readonly world: World;
  /** The objection that another user has created the resource of the write. */
  readonly taken: Blocked | undefined;
  /** Whether the owner of an address is known. */
  readonly isKnown: (ip: Ip) => boolean;
}

/** A write that an operator must settle. */
export function blockedIntent(intent: Intent, { world, taken, isKnown }: Beside): Blocked[] {
  if (intent.phase !== 'blocked') return [];
  const { key, verb, blocked } = intent;
  // With candidates, the reason names them already.
  const by = taken === undefined || blocked.candidates.length > 0 ? [] : [taken.reason];
  const free = blocked.until === 'file' ? [] : cameFree(intent, world.ips, isKnown);
  const reason = [blocked.reason, ...by];
  const remedies = [
    ...waysOut(intent, { taken: taken !== undefined, world }),
    ...releasing(free),
    ...alone(intent, world),
  ];
  return [{ key, verb, code: blocked.code, reason: reason.join('; '), remedies }];
}

/**
 * The server that an open creation replaces, and that the entry now protects. The guards judge its deletion only once it
 * retires, at the end of the creation.
 */
export function protectedOld({ key, phase, replaces }: Intent, { subjects }: World): Blocked[] {
  const { binding, desired } = subjects.get(key) ?? {};
  const isKept = phase !== 'blocked' && desired?.protect === true;
  if (!isKept || replaces === undefined || binding?.id !== replaces) return [];
  const retiring = retiringKey(key, replaces);
  const reason = `${retiring} retires once the open creation of ${key} has ended, and the entry has \`protect: true\``;
  const remedies = [
    edit(key, { set: { protect: false }, next: [command('apply')], when: 'to have it deleted' }),
    command('apply', [], {
      next: [command('forget', [retiring])],
      when: 'to keep it, no longer managed and still billed',
    }),
  ];
  return [{ key: retiring, verb: 'delete', code: 'protected', reason, remedies }];
}

/** Free addresses that appeared since a write, and that no key of this state is bound to. */
export function releasing(addresses: readonly string[]): readonly Remedy[] {
  if (addresses.length === 0) return [];
  const text = `delete ${addresses.join(', ')} in the client area`;
  return [
    outside(text, {
      about: addresses,
      when: `if not needed: free, and billed since this write`,
    }),
  ];
}

/** The addresses that a created server may have left, which is gone now. No other output names their origin. */
export function cameFree(
  { kind, verb, preimage }: Intent,
  ips: readonly Ip[],
  isKnown: (ip: Ip) => boolean,
): readonly string[] {
  const { ips: before } = preimage;
  if (!factsOf(kind).container || verb !== 'create' || before === undefined) return [];
  return ips
    .filter((ip) => ip.server_id === null && !before.includes(ip.id) && !isKnown(ip))
    .map(({ address }) => address);
}

/** Keys whose creation is unconfirmed. */
export function unconfirmedCreations(inFlight: ReadonlyMap<ResourceKey, Intent>): ReadonlySet<ResourceKey> {
  const open = [...inFlight.values()].filter(
    (each) => each.verb === 'create' && partsOf(each).unconfirmed !== undefined,
  );
  return new Set(open.map(({ key }) => key));
}

interface Known {
  readonly taken?: boolean;
  readonly world?: World;
}

/** The way out if the API refuses a second server as long as the replaced server exists. */
export function makingRoom(key: ResourceKey): Remedy {
  const when = 'if the API refuses the new server only because the old one exists';
  return edit(key, { set: { replace: { order: 'delete_first' } }, when });
}

/** The remedies of a blocked write, each with its condition. */
export function waysOut(intent: Intent, { taken = false, world }: Known = {}): readonly Remedy[] {
  const { key, kind, verb, recovers = key } = intent;
  const { candidates: seen = [], until } = partsOf(intent).blocked ?? {};
  // The operator may have given a candidate to another entry since.
  const candidates = seen.filter((id) => [key, recovers].includes(world?.keyOf({ kind, id }) ?? key));
  const say = (answer: 'absent' | 'retry' | 'abandon', when: string) =>
    command('resolve', [key, `--${answer}`], { when });
  // A deletion has no entry to correct. If its resource still exists, the deletion is given up and requested again.
  if (verb === 'delete') {
    return [
      say('absent', 'if the client area does not show the resource'),
      say('abandon', 'if the resource still exists'),
    ];
  }
  const refused = until === 'file';
  const addresses = (id: string) =>
    (world?.addressesOf({ kind, id }) ?? []).map(({ address }) => address).join(', ');
  const adoptable = verb === 'create' && (!refused || taken);
  const desired = world?.subjects.get(recovers)?.desired;
  // The candidates may belong to another user, and the resource itself may have become visible since.
  const other = candidates.length === 0 ? 'the resource exists' : `${key} is another resource`;
  // The next apply asks the key again about an edited entry, but neither an earlier key nor that of a replacement.
  const isAskedAgain = verb === 'create' && recovers === key && intent.replaces === undefined;
  const isConflict = isAskedAgain && partsOf(intent).blocked?.code === 'key_conflict';
  const reverted = outside('write the values with which the resource was created', {
    when: 'if the entry was edited since',
    next: [command('apply')],
  });
  return [
    ...(refused ? [correction(desired, partsOf(intent).blocked?.parameters)] : []),
    ...(refused && intent.replaces !== undefined ? [makingRoom(key)] : []),
    ...(adoptable
      ? [
          ...candidates.map((id) =>
            adoption(intent, id, { world, when: `if ${addresses(id) || id} is ${key}: see the client area` }),
          ),
          adoption(intent, 'ID', { world, when: `if ${other}: the client area shows its id` }),
        ]
      : []),
    ...(isConflict ? [reverted] : []),
    refused || verb === 'update'
      ? say('retry', refused ? 'to send the same write again' : 'if the write had no effect')
      : say('absent', absentWhen[verb]),
  ];
}

/** The operator says which resource a creation made. */
export function adoption(
  { key, recovers = key }: Intent,
  id: string,
  { world, when }: { readonly world: World | undefined; readonly when: string },
): Remedy {
  // A key of the line is asked for the entry that has another key by now.
  return bindingBy(
    world?.subjects.get(recovers)?.desired,
    command('resolve', [key, '--adopt', id], { when }),
  );
}

/**
 * The fields that a refusal names, each with its position; the position of the entry if the refusal names none of its
 * fields.
 */
export function correction(desired: DesiredResource | undefined, parameters: readonly string[] = []): Remedy {
  if (desired === undefined) return outside('correct the entry in the spec');
  const named = parameters.flatMap((each) => fieldOf(desired, each) ?? []);
  const places = new Map(named.map(({ name, position }) => [name, position]));
  const positions = places.size === 0 ? [desired.position] : [...places.values()];
  return edit(desired.key, {
    choose: Object.fromEntries([...places.keys()].map((name) => [name, []])),
    at: positions.map(({ file, line, column }) => `${file}:${line}:${column}`),
  });
}

const absentWhen = {
  create: 'only if the client area does not show the resource; otherwise the next apply creates a duplicate',
  adopt: 'if the resource does not exist',
};

/** One candidate is proof if only vdcsync creates resources in the project. */
function alone(intent: Intent, { settings }: World): readonly Remedy[] {
  const { blocked } = partsOf(intent);
  const one =
    intent.verb === 'create' && blocked?.code === 'outcome_unknown' && blocked.candidates.length === 1;
  if (!one || settings.exclusive) return [];
  return [setting('exclusive', true, 'if only vdcsync creates resources in this project')];
}
