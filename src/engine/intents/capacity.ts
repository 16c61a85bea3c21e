import { backOff } from '../../core/clock.ts';
import { partsOf } from '../../core/intent.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { block, close, goOn, type Progress, sentPreference, unbrokenRow } from './endings.ts';
import { noCapacity } from './outcome.ts';

/** The longest wait for capacity before vdcsync asks the operator. */
const deadlineMs = 24 * 3_600_000;
const pauseMs = { firstMs: 60_000, mostMs: 15 * 60_000 } as const;

/**
 * A list of packages is an order of preference. Each package has a key of its own. When the API refuses all of them,
 * the list starts again after a pause, until the deadline.
 */
export async function nextPreference(run: Run, intent: Intent, reason: string): Promise<Progress> {
  const { preferences } = run.kindOf(intent.kind);
  const entry = run.world.subjects.get(intent.key)?.desired?.value;
  const wanted = (entry && preferences?.of(entry)) ?? [];
  const sent = sentPreference(run, intent) ?? '';
  const because = 'no_capacity';
  const ended = { outcome: 'refused', because, text: reason } as const;
  const exhausted = [...run.facts.exhaustedOf(intent.key), sent];
  if (wanted.some((each) => !exhausted.includes(each))) {
    run.facts.exhaust(intent.key, exhausted);
    return close(run, intent, ended, { retryAfterMs: 0 });
  }
  run.facts.exhaust(intent.key, []);
  const now = run.deps.clock.now();
  const row = [intent, ...(await unbrokenRow(run, intent, (past) => partsOf(past).because === because))];
  const deadline = Math.min(...row.map(({ createdAt }) => createdAt)) + deadlineMs;
  if (now > deadline) return block(run, intent, noCapacity, reason);
  const refusals = row.reduce((sum, { sends }) => sum + sends, 0);
  const rounds = Math.ceil(refusals / Math.max(1, wanted.length)) - 1;
  const afterMs = backOff(pauseMs, rounds, run.deps.random.next());
  const asked = `gpu_package ${wanted.length > 1 ? wanted.join(', ') : sent}`;
  const wait = { untilMs: now + afterMs, deadlineMs: deadline, code: noCapacity };
  run.report(intent, 'waiting', `${asked}: ${reason}`, wait);
  if (wanted.length > 1) return close(run, intent, ended, { retryAfterMs: afterMs });
  return goOn(
    run,
    intent,
    { stage: { phase: 'waiting', because }, dueAt: now + afterMs, detail: reason },
    afterMs,
  );
}
