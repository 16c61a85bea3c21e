import { type Chance, chance } from '../../src/simulation/chance.ts';
import type { Incident, SpecModel, Story } from '../../src/simulation/story.ts';

/** One seed of so many has files whose plans wait for an approval: every plan, or the plans over a threshold. */
const seeds = { every: 38, all: 9, thresholds: 33 };

/**
 * The same story with `settings.approval` in all versions of the spec. Every second one is edited after the first
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

/** The spec, and the spec with one server less: the rest of the plan is a part of the approved plan. */
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
