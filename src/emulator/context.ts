import type { Context } from './call.ts';
import { between, hex } from './dice.ts';
import { Refusal } from './problem.ts';
import type { Readings } from './readings.ts';
import { finishTask } from './tasks.ts';
import { readId } from './validate.ts';
import { isLost } from './visibility.ts';
import { type Execution, FIRST_IDS, type Server, type Task, type TaskEffect, type World } from './world.ts';

/** Throws 402 while the project may not create new spending. `@source API §1.6` */
export function spend({ project }: Pick<Context, 'project'>): void {
  if (project.standing === 'active') return;
  throw new Refusal(
    402,
    'payment_required',
    'The project is not Active or has an unpaid invoice: no new spending.',
  );
}

/** The server of the path, or 404. */
export function serverIn(context: Context): Server {
  return findServer(context, idIn(context));
}

/** The number that the path contains. */
export function idIn({ params }: Context): number {
  return readId(params.id ?? '');
}

/** The server, or 404. */
export function findServer({ project }: Context, id: number): Server {
  const server = project.servers.find((candidate) => candidate.id === id && !isLost(project, candidate));
  return found(server, 'server_not_found', `There is no server ${id}.`);
}

/** The resource, or 404 with this code. */
export function found<Resource>(resource: Resource | undefined, code: string, detail: string): Resource {
  if (resource === undefined) throw new Refusal(404, code, detail);
  return resource;
}

/** Refuses changes to a server that is being deleted. */
export function refuseDeleting(server: Server): void {
  if (server.status === 'deleting') {
    throw new Refusal(409, 'server_deleting', 'The server is being deleted.');
  }
}

/** Notes a creation that has taken effect; gives its place in the list. */
export function recordExecution(context: Context, kind: Execution['kind'], id: string | null): number {
  const { world, project, nowMs, route, key, call } = context;
  world.executions.push({
    atMs: nowMs,
    projectId: project.id,
    operation: route.name,
    idempotencyKey: key,
    requestId: call.requestId,
    kind,
    id,
  });
  return world.executions.length - 1;
}

/** How long after its reported failure the work of a task shows, unless a fault says otherwise. */
const APPEARS_AFTER_MS = 300_000;

/**
 * Starts background work. Its end is drawn now and comes when the clock has
 * reached it: pending → running → succeeded | failed. `@source API §3`
 */
export function startTask(context: Context, effect: TaskEffect, willFail = false): Task {
  const { world, project, nowMs, readings, settings, call } = context;
  const drawnMs = between(world, settings.durations[effect.kind]);
  const faulty = call.fault?.do === 'task' ? call.fault : null;
  const spanMs = faulty?.ms ?? drawnMs;
  const ordered = project.failNextTasks > 0;
  if (ordered) project.failNextTasks -= 1;
  const leaves = faulty?.leaves ?? readings.failedTaskLeaves;
  const task: Task = {
    id: taskId(hex(world, 16), readings),
    kind: effect.kind,
    createdMs: nowMs,
    startsMs: nowMs + Math.min(1000, Math.floor(spanMs / 4)),
    endsMs: nowMs + spanMs,
    outcome: willFail || ordered || faulty?.outcome === 'fail' ? 'failed' : 'succeeded',
    done: false,
    stuck: faulty?.outcome === 'stuck',
    forgotten: faulty?.outcome === 'forgotten',
    leaves:
      leaves === 'partial'
        ? 'address'
        : leaves === 'nothing' && readings.failedTaskKeepsIp
          ? 'address'
          : leaves,
    appearsAfterMs: faulty?.laterMs ?? APPEARS_AFTER_MS,
    effect,
  };
  project.tasks.push(task);
  return task;
}

/** With `printable`, the id has characters that a path must encode. `@assumption A65` */
function taskId(text: string, { taskIds }: Readings): string {
  return taskIds === 'simple' ? `task-${text}` : `Täsk ${text}/1?a=b+c#d%2F..`;
}

/** Does the work inside the request, as the readings with a synchronous form have it. */
export function finishAtOnce(context: Context, task: Task): void {
  if (task.kind !== 'add_iso') task.outcome = 'succeeded';
  task.endsMs = context.nowMs;
  finishTask(context.world, context.project, task);
  context.project.tasks = context.project.tasks.filter((other) => other !== task);
}

/** The next id of a sort, or the lowest free one. `@assumption A17` */
export function takeId(
  { world, readings }: Context,
  sort: keyof World['nextId'],
  used: readonly number[],
): number {
  let id = readings.reuseIds ? FIRST_IDS[sort] : world.nextId[sort];
  if (readings.reuseIds) while (used.includes(id)) id += 1;
  world.nextId[sort] = Math.max(world.nextId[sort], id + 1);
  return id;
}
