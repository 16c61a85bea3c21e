import type { Context } from '../context.ts';
import { Refusal } from '../problem.ts';
import type { Route } from '../router.ts';
import { readId } from '../validate.ts';
import { imageViews, pricingView, serverTypeView } from '../views.ts';
import type { ServerType } from '../world.ts';

/** `@source API §4 /server-types` */
export const serverTypeRoutes: readonly Route[] = [
  {
    name: 'list_server_types',
    method: 'GET',
    path: '/server-types',
    handle: ({ world }) => ({ status: 200, data: world.serverTypes.map(serverTypeView) }),
  },
  {
    name: 'read_pricing',
    method: 'GET',
    path: '/server-types/{id}/pricing',
    handle: (context) => ({
      status: 200,
      data: pricingView(findType(context, readId(context.params.id ?? '')), context.readings),
    }),
  },
  {
    name: 'list_images',
    method: 'GET',
    path: '/server-types/{id}/images',
    handle: (context) => ({
      status: 200,
      data: imageViews(context.project, findType(context, readId(context.params.id ?? ''))),
    }),
  },
];

/** The type of the project's catalogue, or `404 server_type_not_found`. */
export function findType(context: Context, id: number): ServerType {
  const type = context.world.serverTypes.find((candidate) => candidate.id === id);
  if (type === undefined)
    throw new Refusal(404, 'server_type_not_found', { detail: `There is no server type ${id}.` });
  return type;
}
