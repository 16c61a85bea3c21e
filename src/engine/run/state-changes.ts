import { objectName } from '../../core/claims.ts';
import { digestOf } from '../../core/json.ts';
import type { Plan } from '../../core/plan.ts';
import type { StateChange } from '../../core/state.ts';
import { isSelected } from '../../plan/closure.ts';
import { newFlags } from '../../plan/flags.ts';
import type { Release } from '../../plan/judge.ts';
import { isOvertaken } from '../../plan/open-writes.ts';
import { claimChanges, type Judged } from '../claims/claims.ts';
import { released, releasing } from '../claims/release.ts';
import { giveUp } from '../intents/give-up.ts';
import { whyNotWanted } from '../intents/revalidate.ts';
import type { Run } from '../run.ts';
import { absenceGapMs } from '../staleness.ts';
import { bindingOf } from './operate.ts';
import { planFor } from './plan.ts';

/** Applies the parts of the plan that change only the state, and need no write. */
export async function applyStateChanges(run: Run, planned: Judged): Promise<void> {
  const { plan, releases } = planned;
  await run.deps.store.claimProject(run.desired.projectId);
  await run.moves.keep();
  await closeOvertaken(run, plan);
  const changes = [
    ...flagChanges(run),
    ...comparedChanges(run, plan),
    ...(await releaseChanges(run, releases)),
    ...(await claimChanges(run, planned)),
  ];
  if (changes.length > 0) await run.state.change(changes);
}

/** Closes writes without effect so far that the plan, or the current spec, no longer asks for. */
async function closeOvertaken(run: Run, plan: Plan): Promise<void> {
  for (const intent of [...run.intents.values()]) {
    if (isOvertaken(intent, run.world)) {
      await giveUp(run, intent, 'the spec has changed');
      continue;
    }
    // A plan that waits for a rename asks for no operations, so the plan does not show which writes are wanted.
    if (intent.phase !== 'waiting' || run.moves.waiting.length > 0) continue;
    if (run.mode.selection !== undefined && !isSelected(run.mode.selection, intent.key)) continue;
    const planned = plan.operations.some(({ key, verb }) => key === intent.key && verb === intent.verb);
    // A partial run leaves out some operations. The spec still asks for them, so their writes wait for a full run.
    const asked = planned || (run.mode.selection !== undefined && !whyNotWanted(run, run.world, intent));
    const subject = run.world.subjects.get(intent.key);
    if (asked && intent.basis === digestOf(subject?.desired?.value ?? null)) continue;
    await giveUp(run, intent, 'no longer in the spec');
  }
}

/**
 * Renames the bindings of settled writes, and settles the writes in flight under keys that the spec has renamed. A write
 * without effect so far is planned again.
 */
export async function settleMoves(run: Run): Promise<void> {
  for (const key of new Set(run.moves.waiting.flatMap(({ waitsFor }) => waitsFor))) {
    const intent = run.intents.get(key);
    if (intent === undefined) continue;
    if (isOvertaken(intent, run.world) || intent.phase === 'waiting')
      await giveUp(run, intent, 'no longer in the spec');
  }
  run.moves.renew();
}

function flagChanges({ world, mode: { selection } }: Run): StateChange[] {
  return [...world.subjects.values()].flatMap((subject) => {
    if (selection !== undefined && !isSelected(selection, subject.key)) return [];
    const flags = newFlags(subject, world);
    if (flags === undefined || subject.binding === undefined) return [];
    return [{ type: 'bind', binding: { ...subject.binding, ...flags } } as const];
  });
}

function comparedChanges(run: Run, { operations, blocked }: Plan): StateChange[] {
  const { world, intents } = run;
  const busy = new Set([...operations, ...blocked].map(({ key }) => key));
  return [...world.subjects.values()].flatMap((subject) => {
    const { key, kind, parent, desired, binding } = subject;
    if (!run.kindOf(kind).setting || desired?.managed !== true || binding !== undefined) return [];
    const server = parent === undefined ? undefined : world.subjects.get(parent)?.binding;
    if (server === undefined || !world.isThere(key) || busy.has(key) || intents.has(key)) return [];
    return [{ type: 'bind', binding: bindingOf(run, subject, server.id, world) } as const];
  });
}

async function releaseChanges(run: Run, releases: readonly Release[]): Promise<StateChange[]> {
  const kept = releases.filter(({ gone }) => !gone);
  const gone = await confirmGone(
    run,
    releases.filter((each) => each.gone),
  );
  return [
    ...new Map(
      kept
        .flatMap(({ key, reason }) => releasing(run, key, 'file', reason))
        .map((each) => [subjectOf(each), each]),
    ).values(),
    ...gone.flatMap(({ key, reason }) => released(run, key, reason)),
  ];
}

/** The key of the binding or object that a change is about. */
function subjectOf(change: StateChange): string {
  if (change.type === 'claim') return objectName(change.claim);
  return change.type === 'release' ? change.key : change.type;
}

/** One read that does not find a resource does not prove its absence: a second read decides. @assumption A9 */
async function confirmGone(run: Run, releases: readonly Release[]): Promise<readonly Release[]> {
  if (releases.length === 0) return [];
  await run.deps.clock.sleep(absenceGapMs, run.signals.stop);
  const since = run.deps.clock.monotonic();
  const seen = await run.fence.read(() =>
    Promise.all(releases.map(({ key }) => run.view.observe(key, since))),
  );
  if (seen === undefined) return [];
  const again = new Set((await planFor(run, 0)).releases.map(({ key }) => key));
  return releases.filter(({ key }) => again.has(key));
}
