import { parseCidr } from '../addresses.ts';
import type { Context, Fields, Reply, Route } from '../call.ts';
import { finishAtOnce, found, idIn, recordExecution, spend, startTask, takeId } from '../context.ts';
import { invalid, Refusal } from '../problem.ts';
import { shows } from '../router.ts';
import { addNetwork, type NewNetwork } from '../tasks.ts';
import { object, readBody, text } from '../validate.ts';
import { networkView, serversOn } from '../views.ts';
import { showsNetwork } from '../visibility.ts';
import type { Network } from '../world.ts';

/** `@source API §4 /networks` */
export const networkRoutes: readonly Route[] = [
  shows(
    'list_networks',
    '/networks',
    ({ project, call, readings }) =>
      project.networks
        .filter((network) => showsNetwork(project, network))
        .map((network) => networkView(project, network, call.query.has('skip_vm_count'), readings)),
    ['skip_vm_count'],
  ),
  {
    name: 'create_network',
    method: 'POST',
    path: '/networks',
    spends: ({ spending }) => spending === 'everything',
    read: ({ body, readings }) => readBody(body, NETWORK, readings.normalise),
    handle: createNetwork,
  },
  { name: 'delete_network', method: 'DELETE', path: '/networks/{id}', handle: deleteNetwork },
];

/** The project's network, or 404. */
export function findNetwork({ project }: Context, id: number): Network {
  const network = project.networks.find((each) => each.id === id && showsNetwork(project, each));
  return found(network, 'network_not_found', `There is no network ${id}.`);
}

const NETWORK = object({
  name: text(1, 30).regex(
    /^[A-Za-z0-9 _.-]+$/,
    'may hold letters, digits, space, underscore, dot and hyphen',
  ),
  cidr: text(9, 18).regex(
    /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\/\d{1,2}$/,
    'must be a subnet such as 10.20.0.0/24',
  ),
});

/** `@assumption A13` `@assumption A16` `@assumption A19` `@assumption A62` */
function createNetwork(context: Context, body: Fields): Reply {
  const { project, readings, world } = context;
  const name = body.name as string;
  const given = body.cidr as string;
  const masked = parseCidr(given.trim());
  if (masked === null) throw invalid({ name: 'cidr', reason: 'is not a possible subnet' });
  const pending = project.tasks.flatMap((task) =>
    !task.done && task.effect.kind === 'create_network' ? [task.effect.name] : [],
  );
  const taken = [...project.networks.map((network) => network.name), ...pending];
  if (readings.uniqueNetworkNames && taken.some((other) => other.trim() === name.trim())) {
    throw invalid({ name: 'name', reason: 'is already the name of a network' });
  }
  if (readings.spending === 'everything') spend(context);
  const execution = recordExecution(context, 'network', null);
  // A network that is still being created has its id already.
  const ids = world.projects.flatMap((owner) => [
    ...owner.networks.map((network) => network.id),
    ...owner.tasks.flatMap(({ done, effect }) =>
      !done && effect.kind === 'create_network' ? [effect.networkId] : [],
    ),
  ]);
  const task = startTask(context, {
    kind: 'create_network',
    networkId: takeId(context, 'network', ids),
    name,
    cidr: readings.normalise ? masked : given,
    execution,
  });
  if (readings.networkAt === 'accepted') addNetwork(world, project, task.effect as NewNetwork);
  if (readings.networkCreate === 'async') return { status: 202, data: null, task };
  finishAtOnce(context, task);
  const network = project.networks.at(-1) as Network;
  return {
    status: 201,
    data: networkView(project, network, false, readings),
    task: null,
    location: `/v1/networks/${network.id}`,
  };
}

/** `@assumption A11` `@assumption A12` `@assumption A26` */
function deleteNetwork(context: Context): Reply {
  const { project, readings } = context;
  const network = findNetwork(context, idIn(context));
  if (network.isDefault) {
    throw new Refusal(
      readings.defaultNetworkDelete,
      'default_network',
      'The default network cannot be deleted.',
    );
  }
  if (serversOn(project, network.id).length > 0) {
    const [status, code = 'conflict'] = readings.networkInUse.split(' ');
    throw new Refusal(Number(status), code, 'There are servers on the network.');
  }
  if (network.deleting) {
    throw new Refusal(409, 'network_deleting', 'The network is being deleted.');
  }
  network.deleting = true;
  const task = startTask(context, { kind: 'delete_network', networkId: network.id });
  if (readings.networkDelete === 'async') return { status: 202, data: null, task };
  finishAtOnce(context, task);
  return { status: 200, data: null, task: null };
}
