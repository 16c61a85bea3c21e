import { addressIn } from '../addresses.ts';
import type { Context, Fields, Reply, Route } from '../call.ts';
import { recordExecution, refuseDeleting, serverIn, spend, startTask } from '../context.ts';
import { Refusal } from '../problem.ts';
import { shows } from '../router.ts';
import { integer, object, readBody } from '../validate.ts';
import { interfaceView } from '../views.ts';
import { seenInterfaces } from '../visibility.ts';
import type { Network, NetworkInterface, Server } from '../world.ts';
import { findNetwork } from './networks.ts';

/** `@source API §4 /servers/{id}/network-interfaces` */
export const networkInterfaceRoutes: readonly Route[] = [
  shows('list_network_interfaces', '/servers/{id}/network-interfaces', (context) => {
    const server = serverIn(context);
    const shown = seenInterfaces(context.project, server, context.readings);
    return shown.map((each) => interfaceView(server, each, context.readings));
  }),
  {
    name: 'add_network_interface',
    method: 'POST',
    path: '/servers/{id}/network-interfaces',
    spends: () => true,
    read: ({ body }) => readBody(body, INTERFACE),
    handle: addNetworkInterface,
  },
];

/** Adds a network interface in the next slot of a server, and gives it an address of its network. */
export function attachInterface(server: Server, network: Network): NetworkInterface {
  const slot = server.nextInterface;
  server.nextInterface += 1;
  const networkInterface = {
    id: `net${slot}`,
    public: false,
    networkId: network.id,
    ips: [addressIn(network.cidr, 10 + (server.id % 200) + slot)],
    hidden: false,
  };
  server.interfaces.push(networkInterface);
  return networkInterface;
}

const INTERFACE = object({ network_id: integer(1) });

/** `@assumption A27` `@assumption A44` */
function addNetworkInterface(context: Context, body: Fields): Reply {
  const server = serverIn(context);
  const network = findNetwork(context, body.network_id as number);
  spend(context);
  refuseDeleting(server);
  if (network.deleting) throw new Refusal(409, 'network_deleting', 'The network is being deleted.');
  const present = server.interfaces.some((each) => !each.public && each.networkId === network.id);
  if (present && context.readings.duplicateInterfaces === 409) {
    throw new Refusal(409, 'network_already_attached', 'The server has a network interface in this network.');
  }
  const networkInterface = attachInterface(server, network);
  recordExecution(context, 'card', `${server.id}/${networkInterface.id}`);
  const task = startTask(context, { kind: 'add_card', serverId: server.id, cardId: networkInterface.id });
  return { status: 202, data: interfaceView(server, networkInterface, context.readings), task };
}
