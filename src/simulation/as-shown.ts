import { type Operation, type OperationId, operationId, type Plan } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import type { Project } from '../emulator/world.ts';
import type { Controller } from './controller.ts';
import type { Stage } from './stage.ts';
import type { SpecModel } from './story.ts';

/** What a dry run shows; nothing where something is still under way, so that the world would not stand still. */
export async function show(stage: Stage, controller: Controller, spec: SpecModel): Promise<Plan | undefined> {
  // Reads lag, and requests count, for a minute.
  await stage.clock.advance(2 * 60_000);
  const project = stage.emulator.world.projects[0] as Project;
  if (stage.emulator.world.late.length > 0 || project.tasks.some(({ done }) => !done)) return undefined;
  const desired = stage.load(spec);
  const { running, engine } = await stage.start(controller, desired, true);
  const open = running.mirror.open.size;
  const work = Promise.race([engine.plan(desired), running.mortal.died.then(() => undefined)]);
  const plan = await stage.clock.run(work).finally(() => stage.end(running));
  // A dry run leaves no note of its requests.
  await stage.clock.advance(2 * 60_000);
  return open > 0 ? undefined : plan;
}

/** Reasons that may go away by what the same run does. */
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

/** What was shown was done, or is told as not needed or not possible; and nothing else was done. */
export function checkAsShown(stage: Stage, { done }: Controller, shown: Plan, report: ApplyReport): void {
  stage.coverage.count('runs compared with their dry run');
  const ids = new Set(shown.operations.map(({ id }) => id));
  const lifted = new Set(shown.blocked.filter(({ code }) => liftable.has(code)).map(idOf));
  // A backup that is taken says which one goes for it.
  const rotated = new Set(
    shown.operations.flatMap(({ key, changes }) =>
      changes.flatMap(({ path, from }) => (path === 'oldest' ? [`delete:${key}.${from}`] : [])),
    ),
  );
  const more = [...done].filter((id) => !ids.has(id) && !lifted.has(id) && !rotated.has(id));
  if (more.length > 0) stage.fail('I14', `no dry run showed ${more.join(', ')}`);
  const told = new Set([...report.plan.operations, ...report.blocked, ...report.results].map(idOf));
  const less = [...ids].filter((id) => !done.has(id) && !told.has(id));
  if (less.length > 0)
    stage.fail('I14', `shown by the dry run, and neither done nor told: ${less.join(', ')}`);
}

function idOf({ verb, key }: Pick<Operation, 'verb' | 'key'>): OperationId {
  return operationId(verb, key);
}
