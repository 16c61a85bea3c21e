import { partsOf } from '../../src/core/intent.ts';
import { namesakeOf, type ResourceKey, retiredFrom, takeApart } from '../../src/core/keys.ts';
import { type Operation, type OperationId, operationId, type Plan } from '../../src/core/plan.ts';
import type { Project } from '../../src/emulator/world.ts';
import { type Controller, keysAsked } from '../../src/simulation/controller.ts';
import type { Reported } from '../../src/simulation/parts.ts';
import type { StoryStage } from '../../src/simulation/stage.ts';
import type { SpecModel } from '../../src/simulation/story.ts';

/** The plan of a dry run. `undefined` while a task is still under way, because the world would change before the next run. */
export async function show(
  stage: StoryStage,
  controller: Controller,
  spec: SpecModel,
): Promise<Plan | undefined> {
  const { late, projects } = stage.emulator.world;
  const changes = late.length > 0 || (projects[0] as Project).tasks.some(({ done }) => !done);
  // Reads lag, and requests count, for a minute.
  await stage.clock.advance(2 * 60_000);
  // The dry run may not see yet a task that has ended during this minute.
  if (changes) return undefined;
  const desired = stage.load(spec);
  const { running, engine } = await stage.start(controller, desired, true);
  const open = running.mirror.open.size;
  const work = Promise.race([engine.plan(desired), running.crashable.died.then(() => undefined)]);
  const plan = await stage.clock.run(work).finally(() => stage.end(running));
  // A dry run leaves no note of its requests.
  await stage.clock.advance(2 * 60_000);
  return open > 0 ? undefined : plan;
}

/** Reasons for a block that the same run may remove. */
const liftable = new Set([
  'dependency_blocked',
  'unmanaged_resources',
  'name_exists',
  'network_in_use',
  'ip_in_use',
  'iso_in_use',
  'address_in_use',
  'address_not_the_only_free_one',
]);

/** Each operation of the dry run was done, or reported as unnecessary or impossible. The run did no other operation. */
export function checkAsShown(
  stage: StoryStage,
  controller: Controller,
  shown: Plan,
  { report, done }: Reported,
): void {
  // A dry run writes nothing, so it does not ask a key for resources that an earlier state has lost.
  if (done.has(keysAsked)) return;
  stage.observer.count('runs compared with their dry run');
  const ids = new Set(shown.operations.map(({ id }) => id));
  const lifted = new Set(shown.blocked.filter(({ code }) => liftable.has(code)).map(idOf));
  // A backup that is taken says which one goes for it.
  const rotated = new Set(
    shown.operations.flatMap(({ key, changes }) =>
      changes.flatMap(({ path, from }) => (path === 'oldest' ? [`delete:${key}.${from}`] : [])),
    ),
  );
  const found = foundAgain(controller, ids);
  const renamed = renamedIn(shown);
  const isShown = (id: OperationId) => [ids, lifted, rotated].some((each) => each.has(id));
  const more = [...done].filter((id) => !isShown(id) && !found(id) && !renamed(id));
  if (more.length > 0) stage.fail('I14', `no dry run showed ${more.join(', ')}`);
  const traceLineOf = new Set([...report.plan.operations, ...report.blocked, ...report.results].map(idOf));
  // A reason that blocks a replacement, or its first half, blocks the second half too.
  const held = new Set(report.blocked.map(idOf));
  const isHeld = ({ key, replacement }: Operation) =>
    replacement !== undefined && (held.has(replacement) || held.has(operationId('update', key)));
  // The address of a retired server may go to its successor, whose creation is blocked.
  const isLeft = ({ key }: Operation) => {
    const successor = retiredFrom(takeApart(key).parent ?? key);
    return successor !== undefined && held.has(operationId('create', successor));
  };
  const less = shown.operations
    .filter((each) => !done.has(each.id) && !traceLineOf.has(each.id) && !isHeld(each) && !isLeft(each))
    .map(({ id }) => id);
  if (less.length > 0)
    stage.fail('I14', `planned by the dry run, but neither done nor reported: ${less.join(', ')}`);
}

/**
 * A warning shows a rename, or a retiring server that gets its key back, with the replaced server, the resources inside,
 * and the network interfaces in the network.
 */
function renamedIn({ warnings }: Plan): (id: OperationId) => boolean {
  const isShown = (code: string) => code === 'moved' || code === 'replacement_reverted';
  const moved = new Set(warnings.flatMap(({ code, key }) => (isShown(code) ? [key] : [])));
  return (id) => {
    const key = id.slice('adopt:'.length) as ResourceKey;
    if (id !== operationId('adopt', key)) return false;
    const parsed = takeApart(key);
    const related = [key, parsed.parent, namesakeOf(parsed)].filter((each) => each !== undefined);
    return related.some((each) => moved.has(retiredFrom(each) ?? each));
  };
}

/** A replayed creation returns an existing server: the resources inside the server and its address exist already. */
function foundAgain({ endings }: Controller, shown: ReadonlySet<OperationId>): (id: OperationId) => boolean {
  const isOld = (server: ResourceKey) => {
    const made = endings.get(`${server} create`);
    const { to = 'this_send' } = (made && partsOf(made).answer) ?? {};
    return to !== 'this_send';
  };
  return (id) => {
    const key = id.slice('adopt:'.length) as ResourceKey;
    const parent = id === operationId('adopt', key) ? takeApart(key).parent : undefined;
    if (parent === undefined) return false;
    // An adopted server has its address with it.
    if (key.endsWith('.public_ipv4') && shown.has(operationId('adopt', parent))) return true;
    const own = shown.has(operationId('create', key)) || key.endsWith('.public_ipv4');
    return own && shown.has(operationId('create', parent)) && isOld(parent);
  };
}

function idOf({ verb, key }: Pick<Operation, 'verb' | 'key'>): OperationId {
  return operationId(verb, key);
}
