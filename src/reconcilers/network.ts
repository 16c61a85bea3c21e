import { z } from 'zod';
import { bindingBy } from '../core/desired.ts';
import { given } from '../core/json.ts';
import type { Diff, ResourceKind, Subject, World } from '../core/kind.ts';
import { command, edit, type Remedy } from '../core/remedy.ts';
import type { Network } from '../core/resources.ts';
import { grouped } from '../core/world.ts';
import { diffLeaving, interfacesLeaving, obstacleOf } from './network/in-use.ts';
import {
  asAnother,
  freeingName,
  nameExists,
  nameTaken,
  renaming,
  takenName,
  withNameOf,
} from './unique-names.ts';
import {
  blocking,
  cutShort,
  diffExistence,
  doneIf,
  fromNothing,
  incomplete,
  integerIdIn,
  lostOf,
  mayBeRefused,
  newValues,
  notDone,
  recordedIds,
  unchanged,
  unclear,
} from './verdicts.ts';

/** A private network: created without an id in the answer, replaced when its cidr changes. */
type NetworkEntry = Readonly<z.infer<typeof networkSchema>> & { readonly name: string };

interface NetworkObserved {
  readonly id: string | undefined;
  readonly live: Network | undefined;
  readonly sameName: readonly Network[];
}

/** @source API §4: letters, digits, space, underscore, dot, hyphen; 1 to 30 after trimming */
export const networkNamePattern = /^[A-Za-z0-9 _.-]{1,30}$/;

/** The API's pattern; numbers may still be too large. @source API §4 */
const cidrPattern = /^\d{1,3}(\.\d{1,3}){3}\/\d{1,2}$/;

const neededToCreate = ['cidr'];

const text = z.string().trim();
const nameForm = '1 to 30 letters, digits, spaces, underscores, dots or hyphens';

export const networkSchema = z.strictObject({
  name: text
    .regex(networkNamePattern, `a network name is ${nameForm}`)
    .optional()
    .describe('Name in the API. Default: the name of the entry.'),
  cidr: text
    .regex(cidrPattern, 'a cidr is written like 10.20.0.0/24')
    .optional()
    .describe('Subnet. A change is a replacement.'),
});

export const network: ResourceKind<NetworkEntry, NetworkObserved> = {
  name: 'network',
  entry: {
    schema: networkSchema,
    section: {
      description: 'Private networks by name.',
      example: { default: { managed: false }, backend: { cidr: '10.20.0.0/24' } },
      names: {
        pattern: /^[A-Za-z0-9_.-]([A-Za-z0-9 _.-]{0,28}[A-Za-z0-9_.-])?$/,
        text: `${nameForm}, and no space at either end`,
      },
      sameName: 'but a project allows each network name once',
      subnet: 'cidr',
    },
    neededToCreate,
    check: ({ name, cidr }) => {
      const reason = `"${name}" cannot be a network's name: ${nameForm}`;
      const problem = cidr === undefined ? undefined : cidrProblem(cidr);
      return [
        ...(networkNamePattern.test(name.trim()) ? [] : [{ path: ['name'], message: reason }]),
        ...(problem === undefined ? [] : [{ path: ['cidr'], message: problem }]),
      ];
    },
    likeness: ({ desired, binding }) => {
      const cidr = desired?.value.cidr ?? binding?.identity.cidr;
      return cidr && normalCidr(cidr);
    },
  },
  /** @assumption A44 */
  billing: { billed: 'perhaps' },
  timing: { deadlineMs: 10 * 60_000, showsWithinMs: 10 * 60_000, urgency: 5 },

  async observe(read, subjects) {
    const networks = await read.networks();
    const byId = new Map(networks.map((each) => [String(each.id), each]));
    const byName = grouped(networks.map((each) => [each.name.trim(), each]));
    const observe = (each: Subject<NetworkEntry>) => observeOne(each, byId, withNameOf(each.desired, byName));
    return new Map(subjects.map((each) => [each.key, observe(each)]));
  },

  diff(subject, observed, world) {
    const { desired } = subject;
    const live = observed?.live;
    const short = notListed(subject, observed, world);
    if (short !== undefined) return short;
    const found = live && { id: String(live.id), identity: identityOf(live) };
    const shared = diffExistence(subject, 'network', found, neededToCreate);
    const { sameName = [] } = observed ?? {};
    const [first, another] = sameName;
    if (desired?.managed === false && desired.id === undefined && another !== undefined) {
      const ways = [first ?? another, another].map(({ id }) => edit(subject.key, { set: { id } }));
      return blocking('adopt', 'name_ambiguous', `several networks are named "${another.name}"`, ways);
    }
    if (shared !== undefined) return shared;
    if (desired === undefined) return live ? diffLeaving(subject, live, world, hasSubnetOf(live)) : unchanged;

    const entry = desired.value;
    if (live !== undefined) return diffLive(subject, live, observed, world);
    const taken = takenName(subject, sameName, world);
    // @assumption A16 The API may accept a second network of this name, and evidence could not distinguish the two.
    if (taken !== undefined) {
      const ways = waysWithTaken(subject, entry, taken);
      return nameExists(subject, taken, `id ${taken.id}, ${taken.cidr}`, { world, ways });
    }
    const changes = fromNothing({ name: entry.name, cidr: entry.cidr });
    return { verdict: { verdict: 'create', changes, ...lostOf(subject, 'network') } };
  },

  writes: {
    request({ subject, operation }) {
      if (operation.verb === 'delete')
        return { name: 'delete_network', path: { id: Number(operation.target) } };
      const { name = '', cidr = '' } = subject.desired?.value ?? {};
      return { name: 'create_network', path: {}, body: { name, cidr } };
    },

    stale: () => ({ lists: ['networks'] }),

    preimage: async ({ subject }, read) => {
      const networks = await read.networks();
      const { name = '', cidr = '' } = subject.desired?.value ?? {};
      const alike = networks.filter((each) => isSameNetwork(each, { name, cidr }));
      return { networks: networks.map(({ id }) => id), alike: alike.map(({ id }) => id) };
    },

    /** The answer to a creation may have `data` null, and then the list shows the id. @source API §3.5 @assumption A13 */
    accept: (answer) => given({ id: integerIdIn(answer.data) }),

    async evidence(intent, read, known) {
      const networks = await read.networks();
      if (intent.verb === 'delete') {
        const id = String(intent.request.path.id);
        return doneIf(
          networks.every((each) => String(each.id) !== id),
          id,
        );
      }
      const wanted = intent.request.body as { readonly name: string; readonly cidr: string };
      const made = intent.answer?.id;
      const before = recordedIds(intent.preimage.networks);
      // The network of an earlier state was there before this state read the list.
      const isEarlier = intent.answer?.to === 'unknown_send';
      const [ours, alike] = [known('network'), recordedIds(isEarlier ? [] : intent.preimage.alike)];
      const isNew = (id: string) => (made === undefined ? !alike.has(id) : id === made);
      const like = networks.filter((each) => isSameNetwork(each, wanted));
      const matches = like.filter(({ id }) => !ours.has(String(id)) && isNew(String(id)));
      const [match, another] = matches;
      if (match === undefined) {
        // There is no read by id for a bound network that was listed before and is not listed now.
        const listed = networks.map(({ id }) => id);
        const expected = intent.phase === 'accepted' ? [] : [...before].filter((id) => ours.has(id));
        return (await cutShort('networks', listed, expected, async () => true)) ?? notDone;
      }
      if (another !== undefined)
        return unclear(`${matches.length} new networks have that name and cidr`, matches);
      // The document refers to the list for the id, by name and subnet. After a failed task the network may be
      // unmanaged, and a network that is bound is deleted with its entry. @source API §3.5
      const certain = intent.answer?.end !== 'failed' || made !== undefined;
      return { verdict: 'done', id: String(match.id), certain, called: `"${match.name}", ${match.cidr}` };
    },
  },

  bind({ subject, request, world, id }) {
    const live = world.networks.find((each) => String(each.id) === id);
    const sent = request?.body as { readonly name: string; readonly cidr: string } | undefined;
    const name = sent?.name ?? live?.name ?? subject.desired?.value.name ?? '';
    const cidr = sent?.cidr ?? live?.cidr ?? subject.desired?.value.cidr ?? '';
    return { identity: { name: name.trim(), cidr: normalCidr(cidr) }, applied: null, keep: false };
  },

  creation: {
    /** Two networks of a project rarely have the same subnet. */
    unmanaged({ kind, desired }, { networks, keyOf }) {
      const wanted = normalCidr(desired?.value.cidr ?? '');
      return networks
        .filter(({ id, is_default }) => !is_default && keyOf({ kind, id: String(id) }) === undefined)
        .map(({ id, cidr }) => ({ id: String(id), alike: normalCidr(cidr) === wanted }));
    },
  },

  order: {
    /** The API refuses the deletion, with any code, while servers are in the network. @source API §3.1 @assumption A11 */
    goneBefore(subject, verb, world) {
      if (verb === 'create') return freeingName(subject, world);
      const id = world.idOf(subject.key);
      if (id === undefined) return [];
      return world.serversIn(id).flatMap((server) => interfacesLeaving(server, id, world) ?? server);
    },
  },
};

/**
 * A list is incomplete if it lacks the default network, or a network in which a server has a network interface.
 *
 * @source API §2
 * @assumption A8
 */
function notListed(
  { key, binding, desired }: Subject,
  observed: NetworkObserved | undefined,
  world: World,
): Diff | undefined {
  if (binding === undefined || desired?.managed === false || observed?.live !== undefined) return undefined;
  const whole = world.networks.some((each) => each.is_default) && world.serversIn(binding.id).length === 0;
  if (whole) return undefined;
  const message = `the list of networks lacks ${binding.id}, but the list is incomplete: vdcsync assumes that the network exists`;
  return { ...unchanged, warnings: [{ code: 'network_not_listed', key, message }] };
}

function observeOne(
  { desired, binding }: Subject<NetworkEntry>,
  byId: ReadonlyMap<string, Network>,
  sameName: readonly Network[],
): NetworkObserved {
  const named = desired?.managed === false && sameName.length === 1 ? sameName[0] : undefined;
  const id = binding?.id ?? desired?.id;
  const live = id === undefined ? named : byId.get(id);
  return { id: live && String(live.id), live, sameName };
}

function hasSubnetOf(live: Network) {
  return ({ cidr }: { readonly cidr?: unknown }) => normalCidr(String(cidr ?? '')) === normalCidr(live.cidr);
}

/** Adopting a network with another subnet leads to its replacement, so that remedy comes last. */
function waysWithTaken(
  subject: Subject<NetworkEntry>,
  { cidr }: NetworkEntry,
  taken: Network,
): readonly Remedy[] {
  const { key, desired } = subject;
  const adopt = (when: string) => bindingBy(desired, command('adopt', [key, taken.id], { when }));
  const others = [
    edit(key, { set: { managed: false }, when: 'to use that network unchanged' }),
    asAnother(subject, taken, 'to create another network'),
  ];
  if (cidr === undefined || normalCidr(cidr) === normalCidr(taken.cidr))
    return [adopt('if that network belongs to this spec'), ...others];
  return [
    ...others,
    adopt(`if that network belongs to this spec: the next apply then replaces it by a network with ${cidr}`),
  ];
}

function diffLive(
  subject: Subject<NetworkEntry>,
  live: Network,
  observed: NetworkObserved | undefined,
  world: World,
): Diff {
  const { cidr } = subject.desired?.value ?? {};
  const { asked, along } = renaming(subject, live.name);
  const changes = [
    ...asked,
    ...(cidr === undefined || normalCidr(cidr) === normalCidr(live.cidr)
      ? []
      : [{ path: 'cidr', from: live.cidr, to: cidr }]),
  ];
  if (changes.length === 0) return unchanged;
  if (live.is_default) {
    return blocking('update', 'default_network', 'vdcsync never changes the default network', [
      edit(subject.key, { set: { managed: false } }),
    ]);
  }
  const all = [...along, ...changes];
  const reason = `${changes.map(({ path }) => path).join(' and ')} cannot be changed in place`;
  const obstacle = obstacleOf(subject, live, changes, world);
  return (
    incomplete(subject, changes, ['cidr']) ??
    nameTaken(subject, observed, all, world) ?? {
      verdict: {
        verdict: 'replace',
        changes: all,
        reason,
        allowed: true,
        order: 'delete_first',
        ...obstacle,
      },
      consequences: mayBeRefused(subject, 'create_network', newValues(changes), world),
    }
  );
}

function identityOf(live: Network) {
  return { name: live.name.trim(), cidr: normalCidr(live.cidr) };
}

/** Without leading zeros and host bits. @assumption A19 */
export function normalCidr(cidr: string): string {
  const parsed = parseCidr(cidr);
  if (parsed === undefined) return cidr.trim();
  const { start, length } = parsed;
  return `${[24, 16, 8, 0].map((shift) => (start >>> shift) & 255).join('.')}/${length}`;
}

interface Named {
  readonly name: string;
  readonly cidr: string;
}

/** The name and the subnet identify a network. @source API §3 rule 5 */
function isSameNetwork(one: Named, other: Named): boolean {
  return one.name.trim() === other.name.trim() && normalCidr(one.cidr) === normalCidr(other.cidr);
}

/** The error in a subnet that an operator wrote, as text. */
export function cidrProblem(cidr: string): string | undefined {
  const parsed = parseCidr(cidr);
  if (parsed === undefined)
    return `"${cidr}" is not a subnet: write four numbers up to 255, a slash, and a length up to 32, such as 10.20.0.0/24`;
  return parsed.address === parsed.start
    ? undefined
    : `${cidr} is the address of a host, not of a subnet; did you mean ${normalCidr(cidr)}?`;
}

/** A subnet as numbers, with its first and its last address. */
export interface AddressRange {
  readonly start: number;
  readonly end: number;
}

export function parseCidr(
  cidr: string,
): (AddressRange & { readonly address: number; readonly length: number }) | undefined {
  const [dotted = '', bits = ''] = cidr.trim().split('/');
  const groups = dotted.split('.').map(Number);
  const length = Number(bits);
  if (!cidrPattern.test(cidr.trim()) || groups.some((group) => group > 255) || length > 32) return undefined;
  const size = 2 ** (32 - length);
  const address = groups.reduce((sum, group) => sum * 256 + group, 0);
  const start = address - (address % size);
  return { address, length, start, end: start + size - 1 };
}
