import { ConfigError } from '../core/errors.ts';
import type { Plan } from '../core/plan.ts';
import type { ApplyOptions } from '../engine/deps.ts';
import { type Chance, chance } from './chance.ts';
import type { Running } from './controller.ts';
import type { Program } from './process.ts';
import type { Stage } from './stage.ts';
import type { Incident, SpecModel, Story } from './story.ts';

/** One seed of so many has files whose plans wait for an approval: every plan, or the plans over a threshold. */
const seeds = { every: 38, all: 9, thresholds: 33 };

/**
 * The same story with `settings.approval` in all versions of the file. Every second one is edited after the first
 * approval, and each of the others while its approved plan is carried out. Another user changes the project between the
 * writes of an approved plan, and after the plan is done.
 */
export function withApproval(story: Story): Story {
  const { seed, incidents } = story;
  const place = seed % seeds.every;
  if (place !== seeds.all && place !== seeds.thresholds) return story;
  const dice = chance(seed ^ 0xa9904);
  const approval = place === seeds.all ? 'plan' : thresholds(dice);
  const asking = (spec: SpecModel) => ({ ...spec, settings: { ...spec.settings, approval } });
  const isEdited = Math.floor(seed / seeds.every) % 2 === 0;
  const specs = isEdited
    ? story.specs
    : [...story.specs.slice(0, 1).flatMap(shortened), ...story.specs.slice(1)];
  const edit = {
    at: { boundary: 'closeIntent:after', nth: dice.between(1, 2) },
    what: { do: 'edit', spec: 1 },
  } as const;
  const isShortened = specs.length > story.specs.length;
  return {
    ...story,
    specs: specs.map(asking),
    incidents: [...incidents, ...(isShortened ? [edit] : outsideChanges(dice))],
    ...(isEdited ? { editedOnceApproved: true } : {}),
  };
}

/** The file, and the file with one server less: the rest of the plan is a part of the approved plan. */
function shortened(spec: SpecModel): readonly SpecModel[] {
  const servers = Object.entries(spec.servers).slice(0, -1);
  const isPossible =
    Object.keys(spec.servers).length > 0 && Object.keys(spec.server_images ?? {}).length === 0;
  return isPossible ? [spec, { ...spec, servers: Object.fromEntries(servers) }] : [spec];
}

/** The plans that wait; all others do not. The emulator's prices are below and above the limits. */
function thresholds(dice: Chance): Readonly<Record<string, unknown>> {
  return {
    deletions: dice.happens(0.6),
    replacements: dice.happens(0.6),
    monthly_increase: dice.pick([null, 0, 300]),
  };
}

function outsideChanges(dice: Chance): readonly Incident[] {
  const boundary = () =>
    dice.pick(['converged', 'closeIntent:after', 'closeIntent:after', 'write:before'] as const);
  return Array.from({ length: dice.between(1, 4) }, (): Incident => {
    const place = dice.between(0, 2);
    const sort = dice.pick(['network', 'network', 'ip', 'server', 'iso'] as const);
    return {
      at: { boundary: boundary(), nth: dice.mostlySmall(1, 4) },
      what: dice.happens(0.3) ? { do: 'open_firewall', place } : { do: 'remove', sort, place },
    };
  });
}

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
export async function approve(stage: Stage, { controller, desired }: Running, plan: Plan): Promise<void> {
  const { running, engine } = await stage.start(controller, desired);
  running.byPerson = true;
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
  stage.coverage.count('plans approved');
  await stage.end(running);
}
