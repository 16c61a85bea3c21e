import type { Context, Fields, Reply, Route } from '../call.ts';
import { finishAtOnce, found, recordExecution, spend, startTask, takeId } from '../context.ts';
import { invalid, Refusal } from '../problem.ts';
import { shows } from '../router.ts';
import { object, readBody, text } from '../validate.ts';
import { isoView } from '../views.ts';
import { showsIso } from '../visibility.ts';
import type { Iso } from '../world.ts';

/** `@source API §4 /isos` */
export const isoRoutes: readonly Route[] = [
  shows('list_isos', '/isos', ({ project, readings }) =>
    project.isos.filter((iso) => showsIso(project, iso, readings)).map((iso) => isoView(iso, readings)),
  ),
  {
    name: 'add_iso',
    method: 'POST',
    path: '/isos',
    spends: ({ spending }) => spending === 'everything',
    read: ({ body, readings }) => readBody(body, ISO, readings.normalise),
    handle: addIso,
  },
  shows('read_iso', '/isos/{id}', (context) =>
    isoView(findIso(context, context.params.id ?? ''), context.readings),
  ),
  { name: 'delete_iso', method: 'DELETE', path: '/isos/{id}', handle: deleteIso },
];

/** The project's ISO, 404 (also before it shows), or 422 for an id that cannot be one. `@assumption A63` */
export function findIso(context: Context, id: string, name = 'id'): Iso {
  if (!/^uiso-\d{1,10}$/.test(id)) throw invalid({ name, reason: 'must be uiso- and 1 to 10 digits' });
  const { project, readings } = context;
  const iso = project.isos.find((each) => each.id === id && showsIso(project, each, readings));
  return found(iso, 'iso_not_found', `There is no ISO ${id}.`);
}

const ISO = object({ url: text(8, 2048), name: text(1, 50).optional() });

/** `@assumption A23`, `@assumption A66` */
function addIso(context: Context, body: Fields): Reply {
  const { project, world, readings } = context;
  const url = parseUrl(body.url as string, readings.isoSchemes);
  if (url === null) throw invalid({ name: 'url', reason: 'must be an http or https address' });
  if (readings.spending === 'everything') spend(context);
  const used = world.projects.flatMap((owner) => owner.isos.map((iso) => Number(iso.id.slice(5))));
  const iso: Iso = {
    id: `uiso-${takeId(context, 'iso', used)}`,
    name: (body.name as string | undefined) ?? fileName(url),
    url: url.href,
    status: 'downloading',
    failure: null,
  };
  project.isos.push(iso);
  recordExecution(context, 'iso', iso.id);
  const failure = downloadFailure(url);
  const task = startTask(context, { kind: 'add_iso', isoId: iso.id, failure }, failure !== null);
  const location = `/v1/isos/${iso.id}`;
  if (readings.isoCreate === 'async') return { status: 202, data: isoView(iso, readings), task, location };
  finishAtOnce(context, task);
  return { status: 200, data: isoView(iso, readings), task: null, location };
}

function deleteIso(context: Context): Reply {
  const { project } = context;
  const iso = findIso(context, context.params.id ?? '');
  if (project.servers.some((server) => server.isoInDrive === iso.id)) {
    throw new Refusal(409, 'iso_in_use', "The ISO is in a server's drive.");
  }
  project.isos = project.isos.filter((other) => other !== iso);
  return { status: 200, data: { deleted: iso.id } };
}

function parseUrl(text: string, schemes: 'web' | 'any'): URL | null {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : null;
  return url !== null && (schemes === 'any' || /^https?:$/.test(url.protocol)) ? url : null;
}

function fileName(url: URL): string {
  const last = url.pathname.split('/').filter(Boolean).at(-1) ?? url.hostname;
  return last.slice(0, 50);
}

/**
 * Why the download will fail, or null. Nothing is downloaded: an address fails
 * that the internet cannot reach, and one whose path says `fail` or `missing`.
 */
function downloadFailure(url: URL): string | null {
  const host = url.hostname;
  if (/(^|\.)(invalid|localhost|local|internal)$/.test(host)) return 'the host name cannot be resolved';
  if (/^(127|10|0|192\.168|169\.254|172\.(1[6-9]|2\d|3[01]))\.|^\[/.test(host))
    return 'the address is not reachable';
  if (/fail/i.test(url.pathname)) return 'the download was interrupted';
  if (/missing/i.test(url.pathname)) return 'the server answered 404';
  return null;
}
