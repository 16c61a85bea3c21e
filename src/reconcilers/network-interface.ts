import { z } from 'zod';
import type { ResourceKey } from '../core/keys.ts';
import { topLevelKey } from '../core/keys.ts';
import type { ResourceKind } from '../core/kind.ts';
import type { NetworkInterface, ServerId } from '../core/resources.ts';
import { fromNothing, idIn, member, recordedIds, unchanged } from './existence.ts';

/**
 * A server's card in a network. Any card in that network satisfies the entry; a missing
 * one is added, and none is ever removed: the removal is not documented, so a second
 * card would be there for good. @assumption A27
 */
export interface NetworkInterfaceEntry {
  readonly network: ResourceKey;
}

interface NetworkInterfaceObserved {
  readonly id: string | undefined;
  readonly cards: readonly NetworkInterface[];
}

export const networkInterface: ResourceKind<NetworkInterfaceEntry, NetworkInterfaceObserved> = {
  name: 'network_interface',
  placement: { of: 'servers', field: 'network_interfaces' },
  schema: z.array(z.string().min(1)).describe('Names of entries under networks.'),
  neededToCreate: [],
  /** @assumption A44 */
  billed: true,
  deadlineMs: 10 * 60_000,
  urgency: 2,

  children: (field) =>
    (field as readonly string[]).map((name, at) => ({
      suffix: `network_interfaces.${name}`,
      value: { network: topLevelKey('networks', name) },
      path: [at],
    })),
  check: () => [],
  references: ({ network }) => [{ path: [], key: network }],

  async observe(read, subjects, idOf) {
    const seen = await Promise.all(
      subjects.map(async ({ key, parent, binding }) => {
        const server = parent === undefined ? undefined : idOf(parent);
        if (server === undefined) return undefined;
        const cards = await read.findNetworkInterfaces(Number(server) as ServerId);
        const live = cards?.find(({ id }) => id === binding?.id);
        return cards && ([key, { id: live?.id, cards }] as const);
      }),
    );
    return new Map(seen.filter((each) => each !== undefined));
  },

  diff({ binding, desired }, observed, world) {
    if (desired === undefined || !desired.managed) return unchanged;
    const networkId = world.idOf(desired.value.network);
    const there = observed?.cards.some(
      ({ network_id }) => network_id !== null && String(network_id) === networkId,
    );
    if (there) return unchanged;
    const changes = fromNothing({ network: desired.value.network });
    const lost =
      observed === undefined || binding === undefined || observed.id !== undefined
        ? {}
        : { lost: `card ${binding.id} is not on its server any more` };
    return {
      verdict: { verdict: 'create', changes, ...lost },
      price: { unknown: 'the price of a card is not shown' },
    };
  },

  write: ({ subject, world }) => ({
    name: 'add_network_interface',
    path: { server_id: Number(subject.parent && world.idOf(subject.parent)) },
    body: { network_id: Number(subject.desired && world.idOf(subject.desired.value.network)) },
  }),

  preimage: async ({ observed }) => ({ cards: (observed?.cards ?? []).map(({ id }) => id) }),

  accept: (answer) => {
    const id = idIn(answer.data);
    return id === undefined ? {} : { id };
  },

  async evidence(intent, read) {
    const server = Number(intent.request.path.server_id) as ServerId;
    const cards = (await read.findNetworkInterfaces(server)) ?? [];
    const before = recordedIds(intent.preimage, 'cards');
    const network = member(intent.request.body, 'network_id');
    const card = cards.find(
      ({ id, network_id }) => id === intent.resourceId || (network_id === network && !before.has(id)),
    );
    return card === undefined ? { verdict: 'not_done' } : { verdict: 'done', id: card.id, certain: true };
  },

  bind: () => ({ identity: {}, applied: null, keep: false }),
};
