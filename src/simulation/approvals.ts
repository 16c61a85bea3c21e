import { ConfigError } from '../core/errors.ts';
import type { Plan } from '../core/plan.ts';
import type { ApplyOptions } from '../engine/deps.ts';
import type { Running } from './controller.ts';
import type { Program } from './process.ts';
import type { StoryStage } from './stage.ts';

export function asks({ settings }: Running['desired']): boolean {
  return settings.approval !== 'none';
}

/** As the daemon runs: a plan that may not be carried out now is shown, and waits. */
export function approvalOptions(
  { approval, desired, crashable }: Running,
  repeating: Program['repeating'],
  show: (plan: Plan) => void,
): Pick<ApplyOptions, 'approve' | 'repeating'> {
  return {
    repeating,
    async approve(plan) {
      const permitted = await approval.permits(plan, desired, crashable.clock.now());
      if (!permitted) show(plan);
      return permitted;
    },
  };
}

/** The operator approves the plan that the last run has shown. */
export async function approve(
  stage: StoryStage,
  { controller, desired }: Running,
  plan: Plan,
): Promise<void> {
  const { running, engine } = await stage.start(controller, desired);
  running.byOperator = true;
  const operations = plan.operations.map((each) => [each.id, each] as const);
  // Recorded first: the approval counts even if the process dies behind its durable record.
  controller.approved.push({
    desired: desired.digest,
    epoch: controller.epoch,
    operations: new Map(operations),
    left: new Map(operations),
  });
  const ended = engine.approve(desired, plan.digest).then(
    ({ text }) => text,
    (error: unknown) => {
      // The state does not wait for this plan, so an earlier approval is still the last one.
      if (error instanceof ConfigError) controller.approved.pop();
      return `failed: ${String(error)}`;
    },
  );
  const said = await stage.clock.run(Promise.race([ended, running.crashable.died.then(() => 'crash')]));
  stage.trace.add('op', `$ vdcsync approve ${plan.digest} → ${said}`);
  stage.observer.count('plans approved');
  await stage.end(running);
}
