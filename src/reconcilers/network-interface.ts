import { z } from 'zod';
import { networkObject } from '../core/claims.ts';
import { given, member } from '../core/json.ts';
import { type ResourceKey, topLevelKey } from '../core/keys.ts';
import type { Diff, ResourceKind, Subject, World } from '../core/kind.ts';
import type { Preimage } from '../core/preimage.ts';
import type { NetworkInterface, ServerId } from '../core/resources.ts';
import { priceOfInterface } from './prices.ts';
import {
  done,
  doneIf,
  fromNothing,
  idIn,
  notDone,
  observeInside,
  recordedIds,
  serverOf,
  toNothing,
  unchanged,
} from './verdicts.ts';

/**
 * A server's network interface in a network. Any network interface in that network satisfies the entry; a missing
 * one is added. Removing one is not documented, so a second one would remain permanently.
 * If the profile enables `remove_network_interface`, a network interface of this spec is removed once the
 * spec no longer names its network. @assumption A27
 */
type NetworkInterfaceEntry = { readonly network: ResourceKey };

interface NetworkInterfaceObserved {
  readonly id: string | undefined;
  readonly interfaces: readonly NetworkInterface[];
}

interface NetworkInterfaceBefore extends Preimage {
  /** The ids of the network interfaces of the server. */
  readonly interfaces?: readonly string[];
}

export const networkInterfacesSchema = z
  .array(z.string().min(1))
  .describe('Names of entries under networks.');

export const networkInterface: ResourceKind<
  NetworkInterfaceEntry,
  NetworkInterfaceObserved,
  NetworkInterfaceBefore
> = {
  name: 'network_interface',
  entry: {
    schema: networkInterfacesSchema,
    children: (field) =>
      (field as readonly string[]).map((name, at) => ({
        suffix: `network_interfaces.${name}`,
        value: { network: topLevelKey('networks', name) },
        path: [at],
      })),
    references: ({ network }) => [{ path: [], key: network }],
  },
  billing: {
    /** @assumption A44 */
    billed: true,
    recordedPrice: (_binding, prices) => priceOfInterface(prices),
    priceNow({ desired, binding }, observed, world) {
      const network = desired && world.idOf(desired.value.network);
      const there = observed?.interfaces.some(
        ({ id, network_id }) => id === binding?.id || String(network_id) === network,
      );
      return there ? priceOfInterface(world) : undefined;
    },
  },
  timing: { deadlineMs: 10 * 60_000, showsWithinMs: 10 * 60_000, urgency: 3 },

  observe: (read, subjects, idOf) =>
    observeInside(subjects, idOf, async (server, { binding, desired }) => {
      const interfaces = await read.findNetworkInterfaces(server);
      // The API reuses ids of network interfaces: the network distinguishes one from a later one with the same id.
      const network = desired === undefined ? binding?.identity.network_id : idOf(desired.value.network);
      const isIn = (networkInterface: NetworkInterface) =>
        network === undefined || String(networkInterface.network_id) === network;
      const live = interfaces?.find((each) => each.id === binding?.id && isIn(each));
      return interfaces && { id: live?.id, interfaces };
    }),

  diff(subject, observed, world) {
    const { binding, desired } = subject;
    const removable = world.profile.operations.remove_network_interface !== undefined;
    if (desired === undefined && removable) return diffLeaving(subject, observed, world);
    if (desired === undefined || !desired.managed) return unchanged;
    const networkId = world.idOf(desired.value.network);
    const there = observed?.interfaces.find(
      ({ network_id }) => network_id !== null && String(network_id) === networkId,
    );
    if (there !== undefined) {
      // Only a bound network interface can be removed later.
      if (binding !== undefined || !removable) return unchanged;
      const reason = `network interface ${there.id} is in that network`;
      return { verdict: { verdict: 'adopt', target: there.id, reason } };
    }
    const changes = fromNothing({ network: desired.value.network });
    const lost =
      observed === undefined || binding === undefined || observed.id !== undefined
        ? {}
        : { lost: `the server no longer has network interface ${binding.id}` };
    return { verdict: { verdict: 'create', changes, ...lost }, price: priceOfInterface(world) };
  },

  writes: {
    request({ subject, world, operation }) {
      const server_id = serverOf(subject, world);
      if (operation.verb === 'delete') {
        return { name: 'remove_network_interface', path: { server_id, id: operation.target ?? '' } };
      }
      const network_id = Number(subject.desired && world.idOf(subject.desired.value.network));
      return { name: 'add_network_interface', path: { server_id }, body: { network_id } };
    },

    stale: ({ name, path }) => ({
      lists: name === 'remove_network_interface' ? ['networks'] : [],
      server: path.server_id,
      inside: ['findNetworkInterfaces'],
    }),

    preimage: async ({ observed }) => ({ interfaces: (observed?.interfaces ?? []).map(({ id }) => id) }),

    accept: (answer) => given({ id: idIn(answer.data) }),

    async evidence(intent, read) {
      const server = Number(intent.request.path.server_id) as ServerId;
      const interfaces = (await read.findNetworkInterfaces(server)) ?? [];
      if (intent.verb === 'delete') {
        const id = String(intent.request.path.id);
        return doneIf(!interfaces.some((each) => each.id === id), id);
      }
      const before = recordedIds(intent.preimage.interfaces);
      const network = member(intent.request.body, 'network_id');
      const networkInterface = interfaces.find(
        ({ id, network_id }) => id === intent.answer?.id || (network_id === network && !before.has(id)),
      );
      return networkInterface === undefined ? notDone : done(networkInterface.id);
    },
  },

  bind({ subject, request, world }) {
    const { desired, binding } = subject;
    const network = desired === undefined ? binding?.identity.network_id : world.idOf(desired.value.network);
    const id = member(request?.body, 'network_id') ?? network;
    return { identity: id === undefined ? {} : { network_id: String(id) }, applied: null, keep: false };
  },
};

/** A network interface that the spec added and no longer names. */
function diffLeaving(
  { binding }: Subject<NetworkInterfaceEntry>,
  observed: NetworkInterfaceObserved | undefined,
  world: World,
): Diff {
  if (binding === undefined || observed === undefined) return unchanged;
  const networkInterface = observed.interfaces.find(({ id }) => id === binding.id);
  if (networkInterface === undefined) {
    const reason = `the server no longer has network interface ${binding.id}`;
    return { verdict: { verdict: 'release', gone: true, reason } };
  }
  if (networkInterface.public || String(networkInterface.network_id) !== binding.identity.network_id)
    return unchanged;
  const name =
    world.keyOf(networkObject(String(networkInterface.network_id))) ?? String(networkInterface.network_id);
  return {
    verdict: { verdict: 'delete', changes: toNothing({ network: name }) },
    freed: priceOfInterface(world),
  };
}
