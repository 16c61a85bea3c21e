import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import type { Blocked, Operation, Plan, Proofs } from '../../core/plan.ts';
import { outside, paying, run as runs } from '../../core/remedy.ts';
import { correction } from '../../plan/open-writes.ts';
import type { EngineDeps, PlanOptions } from '../deps.ts';
import { contextOf, inWriteSlot, roomToWrite } from '../intents/begin.ts';
import { pauses } from '../intents/outcome.ts';
import { isProvable, type Proof, prove } from '../intents/prove.ts';
import type { Run } from '../run.ts';
import type { WriteGate } from '../write-gate.ts';
import { withFurther } from './findings.ts';
import { openPlan } from './plan.ts';

/** After this number of answers that show nothing, the creation counts as unanswered. */
const mostTries = 3;

/**
 * Makes one plan, and proves its creations. The API must refuse all of these requests, and no later plan depends on
 * them: a refused creation is blocked in this plan alone.
 *
 * @throws ConfigError if the token may not write
 */
export async function provePlan(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  options: PlanOptions,
): Promise<Plan> {
  const { run, plan } = await openPlan(deps, gate, desired, options);
  const before = deps.counts().writes;
  const results: Proofs['results'][number][] = [];
  const refused: Blocked[] = [];
  let isPaused = false;
  for (const operation of plan.operations.filter(({ verb }) => verb === 'create')) {
    const { key } = operation;
    const proof: Proof | undefined = isPaused ? undefined : await proofOf(run, operation);
    if (proof === undefined) results.push({ key, outcome: 'not_sent', unproven: [] });
    else if (proof.is === 'proved' || proof.is === 'conflict')
      results.push({ key, outcome: 'accepted', unproven: proof.unproven });
    else if (proof.is === 'unanswered') results.push({ key, outcome: 'unanswered', unproven: [] });
    else {
      isPaused = proof.result.type === 'answer' && pauses[proof.result.status] !== undefined;
      results.push({ key, outcome: 'refused', unproven: [] });
      refused.push(blockedBy(run, operation, proof));
    }
  }
  // The calibration may have shown which fields remain unproven.
  const { plan: latest } = await openPlan(deps, gate, desired, options);
  return { ...withFurther(latest, refused), proofs: { writes: deps.counts().writes - before, results } };
}

/** Returns `undefined` for a creation whose request depends on another creation of the plan, or has no body. */
async function proofOf(run: Run, operation: Operation): Promise<Proof | undefined> {
  const { key, kind, needs } = operation;
  const { parent } = run.world.subjects.get(key) ?? {};
  if (parent !== undefined && needs.some((id) => id.startsWith('create:'))) return undefined;
  if (run.kindOf(kind).setting === true) return undefined;
  const request = run.kindOf(kind).writes.request(contextOf(run, operation, run.world));
  if (!isProvable(request)) return undefined;
  return inWriteSlot(run, operation, async () => {
    for (let tries = 1; ; tries++) {
      await roomToWrite(run);
      const proof = await prove(run, key, request);
      if (proof.is !== 'unanswered' || tries >= mostTries) return proof;
      await run.deps.clock.sleep(proof.afterMs * run.deps.profile.timeScale, run.signals.stop);
    }
  });
}

function blockedBy(
  run: Run,
  { key, verb }: Operation,
  { code, reason, parameters, result }: Proof & { readonly is: 'refused' },
): Blocked {
  if (code === 'insufficient_scope') {
    throw new ConfigError(
      `\`plan --prove\` needs a token that may write: it sends creations that the API must refuse. The API answered ${reason}. Nothing was created.`,
    );
  }
  const status = result.type === 'answer' ? result.status : 0;
  const again = runs('plan', ['--prove']);
  const remedy =
    status === 402
      ? outside(paying, { next: [again] })
      : pauses[status] === undefined
        ? correction(run.world.subjects.get(key)?.desired, parameters)
        : outside('use another token, or change its permissions in the client area', { next: [again] });
  return { key, verb, code, reason, remedies: [remedy] };
}
