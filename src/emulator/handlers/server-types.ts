import type { Context, Route } from '../call.ts';
import { found, idIn } from '../context.ts';
import { shows } from '../router.ts';
import { imageViews, pricingView, serverTypeView } from '../views.ts';
import type { ServerType } from '../world.ts';

/** `@source API §4 /server-types` */
export const serverTypeRoutes: readonly Route[] = [
  shows('list_server_types', '/server-types', ({ world }) => world.serverTypes.map(serverTypeView)),
  shows('read_pricing', '/server-types/{id}/pricing', (context) =>
    pricingView(findType(context, idIn(context)), context.readings),
  ),
  shows('list_images', '/server-types/{id}/images', (context) =>
    imageViews(context.project, findType(context, idIn(context))),
  ),
];

/** The type of the project's catalogue, or `404 server_type_not_found`. */
export function findType({ world }: Context, id: number): ServerType {
  const type = world.serverTypes.find((candidate) => candidate.id === id);
  return found(type, 'server_type_not_found', `There is no server type ${id}.`);
}
