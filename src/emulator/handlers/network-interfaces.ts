import { addressIn } from '../addresses.ts';
import {
  type Context,
  findServer,
  type Reply,
  recordExecution,
  refuseDeleting,
  spend,
  startTask,
} from '../context.ts';
import { Refusal } from '../problem.ts';
import type { Route } from '../router.ts';
import { type FieldRules, readBody, readId } from '../validate.ts';
import { cardView } from '../views.ts';
import { seenCards } from '../visibility.ts';
import type { Card, Network, Server } from '../world.ts';
import { findNetwork } from './networks.ts';

/** The platform's own network, which no project lists. */
export const PUBLIC_NETWORK_ID = 1;

/** `@source API §4 /servers/{id}/network-interfaces` */
export const networkInterfaceRoutes: readonly Route[] = [
  {
    name: 'list_network_interfaces',
    method: 'GET',
    path: '/servers/{id}/network-interfaces',
    handle: (context) => {
      const server = findServer(context, readId(context.params.id ?? ''));
      const shown = seenCards(context.project, server, context.readings);
      return { status: 200, data: shown.map((card) => cardView(server, card, context.readings)) };
    },
  },
  {
    name: 'add_network_interface',
    method: 'POST',
    path: '/servers/{id}/network-interfaces',
    takesBody: true,
    spends: () => true,
    check: readInterface,
    handle: addNetworkInterface,
  },
];

/** Adds a network interface in the next slot of a server, and gives it an address of its network. */
export function plugCard(server: Server, network: Network): Card {
  const slot = server.nextCard;
  server.nextCard += 1;
  const card = {
    id: `net${slot}`,
    public: false,
    networkId: network.id,
    ips: [addressIn(network.cidr, 10 + (server.id % 200) + slot)],
    hidden: false,
  };
  server.cards.push(card);
  return card;
}

const INTERFACE: FieldRules = { network_id: { type: 'integer', required: true, least: 1 } };

function readInterface({ body }: Context): Record<string, unknown> {
  return readBody(body, INTERFACE);
}

/** `@assumption A27` `@assumption A44` */
function addNetworkInterface(context: Context): Reply {
  const serverId = readId(context.params.id ?? '');
  const body = readInterface(context);
  const server = findServer(context, serverId);
  const network = findNetwork(context, body.network_id as number);
  spend(context);
  refuseDeleting(server);
  if (network.deleting)
    throw new Refusal(409, 'network_deleting', { detail: 'The network is being deleted.' });
  const present = server.cards.some((card) => !card.public && card.networkId === network.id);
  if (present && context.readings.duplicateCards === 409) {
    throw new Refusal(409, 'network_already_attached', {
      detail: 'The server has a network interface in this network.',
    });
  }
  const card = plugCard(server, network);
  recordExecution(context, 'card', `${server.id}/${card.id}`);
  const task = startTask(context, { kind: 'add_card', serverId: server.id, cardId: card.id });
  return { status: 202, data: cardView(server, card, context.readings), task };
}
