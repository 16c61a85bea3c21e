import { createClient } from '../../api/client.ts';
import { type OperationId, operationId } from '../../core/plan.ts';
import type { ApiProfile } from '../../core/profile.ts';
import type { ProgressEvent } from '../../core/progress.ts';
import { createEmulator } from '../../emulator/emulator.ts';
import { loadProfile } from '../../emulator/profile.ts';
import { createEngine } from '../../engine/engine.ts';
import { kinds } from '../../reconcilers/registry.ts';
import { chance } from '../../simulation/chance.ts';
import { type SpecModel, specText } from '../../simulation/story.ts';
import { virtualClock } from '../../simulation/virtual-clock.ts';
import { loadSpec } from '../../spec/load.ts';
import { memoryState } from '../../state/sqlite-driver.ts';
import type { Bar, TimeSpan } from '../../view/timeline.ts';

export type CalmRun = Awaited<ReturnType<typeof calmRun>>;

/**
 * Applies the spec to an empty project, without faults, under the limits of the profile.
 *
 * @returns `plan`: that of the empty project. `settled`: a second run plans nothing
 */
export async function calmRun(model: SpecModel, projectId: number, profile: ApiProfile, profileText: string) {
  const clock = virtualClock();
  const emulator = createEmulator({
    clock,
    seed: 'rehearsal',
    projects: [{ id: projectId, name: 'rehearsal' }],
    profile: loadProfile(profileText),
  });
  const store = memoryState({ createdAt: clock.now(), lineage: 'rehearsal' });
  const random = chance(1);
  const calm = { ...profile, timeScale: 1 };
  const { readWrite } = emulator.tokens(projectId);
  const client = createClient({
    baseUrl: 'http://127.0.0.1/v1',
    token: () => readWrite,
    transport: emulator.transport(),
    clock,
    random,
    profile: calm,
    uses: store,
  });
  const events: ProgressEvent[] = [];
  const engine = createEngine({
    ...client,
    ...{ store, clock, random, kinds, profile: calm },
    onEvent: (event) => events.push(event),
  });
  const desired = loadSpec([{ file: 'the rehearsed file', text: specText(model, projectId) }], {});
  const start = clock.now();
  const report = await clock.run(engine.apply(desired, { approve: async () => true }));
  const requests = client.counts();
  const durationMs = clock.now() - start;
  const after = await clock.run(engine.plan(desired));
  const tasks = emulator.world.projects.flatMap((each) => each.tasks);
  const first = events.find((event) => event.type === 'planned');
  return {
    plan: first?.type === 'planned' ? first.plan : report.plan,
    report,
    bars: barsOf(events, start, new Map(tasks.map(({ id, endsMs }) => [id, endsMs]))),
    requests,
    durationMs,
    settled: after.operations.length === 0 && after.blocked.length === 0,
  };
}

/**
 * An operation works while its task runs, and the emulator knows when that has ended. It waits all other time: its answers
 * take none, and the request limit spaces the requests.
 */
function barsOf(
  events: readonly ProgressEvent[],
  start: number,
  taskEnds: ReadonlyMap<string, number>,
): Bar[] {
  const begun = new Map<OperationId, { readonly at: number; readonly steps: TimedStep[] }>();
  return events.flatMap((event): Bar[] => {
    if (event.type === 'started') {
      begun.set(event.operation.id, { at: event.at, steps: [{ at: event.at, worksUntil: event.at }] });
    }
    if (event.type === 'progress') {
      const { at, step, detail } = event;
      const worksUntil = step === 'task' ? taskEnds.get(detail) : at;
      begun.get(operationId(event.verb, event.key))?.steps.push({ at, worksUntil });
    }
    if (event.type !== 'ended') return [];
    const { key, verb, outcome } = event.result;
    const id = operationId(verb, key);
    const { at = event.at, steps = [] } = begun.get(id) ?? {};
    const waits = steps.flatMap(({ at: from, worksUntil = Number.POSITIVE_INFINITY }, index): TimeSpan[] => {
      const [startMs, endMs] = [Math.max(from, worksUntil), steps[index + 1]?.at ?? event.at];
      return startMs < endMs ? [{ startMs: startMs - start, endMs: endMs - start }] : [];
    });
    return [{ id, startMs: at - start, endMs: event.at - start, outcome, waits }];
  });
}

/** From `at` until the next step the operation works, or only until `worksUntil`. */
interface TimedStep {
  readonly at: number;
  readonly worksUntil: number | undefined;
}
