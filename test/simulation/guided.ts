import { type Chance, chance } from '../../src/simulation/chance.ts';
import type { Incident, Story } from '../../src/simulation/story.ts';
import { generateAction, timed } from './action-stories.ts';
import { generateFaults, generateIncidents, generateReadings, weighted } from './generator.ts';
import { type Done, type Family, type Job, storyOf } from './worker.ts';

/** Of so many stories, one is drawn by its seed alone. */
const seedEvery = 3;
const mostVariations = 3;

/** A story that showed new pairs, and the number of its variations so far. */
interface Parent {
  readonly story: Story;
  readonly newPairs: number;
  variations: number;
}

/**
 * Stories that coverage chooses. What a story does shows in the pairs of consecutive lines of its trace. A story with
 * pairs that no earlier story had is varied again, more often the more of them it had.
 */
export class GuidedStories implements Iterator<Job> {
  readonly #dice: Chance;
  readonly #family: Family;
  readonly #seen = new Set<number>();
  readonly #parents: Parent[] = [];
  readonly #underWay = new Map<string, Story>();
  #seed: number;
  #left: number;
  #number = 0;

  constructor(family: Family, from: number, count: number) {
    this.#family = family;
    this.#dice = chance(from ^ 0x5eed);
    this.#seed = from;
    this.#left = count;
  }

  get pairs(): number {
    return this.#seen.size;
  }

  next(): IteratorResult<Job> {
    if (this.#left-- <= 0) return { done: true, value: undefined };
    const name = `guided ${++this.#number}`;
    const story = this.#chosen();
    this.#underWay.set(name, story);
    return { value: { cases: [{ name, story }], paired: true } };
  }

  /** Remembers the pairs of a story that was played. */
  learn({ pairs = {} }: Done): void {
    for (const [name, shown] of Object.entries(pairs)) {
      const story = this.#underWay.get(name);
      this.#underWay.delete(name);
      const before = this.#seen.size;
      for (const each of shown) this.#seen.add(each);
      const newPairs = this.#seen.size - before;
      if (story !== undefined && newPairs > 0) this.#parents.push({ story, newPairs, variations: 0 });
    }
  }

  #chosen(): Story {
    const isDrawn = this.#parents.length === 0 || this.#number % seedEvery === 1;
    if (isDrawn) return storyOf(this.#family, this.#seed++);
    const parent = this.#parent();
    parent.variations += 1;
    let { story } = parent;
    for (let left = this.#dice.mostlySmall(1, mostVariations); left > 0; left--)
      story = varied(this.#dice, story, this.#parents);
    return story;
  }

  #parent(): Parent {
    const weight = ({ newPairs, variations }: Parent) => newPairs / (1 + variations) ** 2;
    return weighted(
      this.#dice,
      this.#parents.map((each) => [weight(each), each] as const),
    );
  }
}

/** The story with one difference: in its actions, if it has any, or in its incidents, faults, readings and pauses. */
function varied(dice: Chance, story: Story, others: readonly Parent[]): Story {
  const { actions, incidents, faults, pausesMs } = story;
  const another = dice.pick(others).story;
  if (actions !== undefined && dice.happens(0.7)) {
    const place = dice.between(0, actions.length);
    const added = () => timed(dice, generateAction(dice));
    return {
      ...story,
      actions: dice.pick([
        () => actions.toSpliced(place, 0, added()),
        () => actions.toSpliced(place, 0, added()),
        () => actions.toSpliced(place, 1, added()),
        () => actions.toSpliced(place, 1),
        () => [...actions.slice(0, place), ...(another.actions ?? []).slice(-3)],
        () => actions.map((each, at) => (at === place ? { ...each, when: added().when } : each)),
      ])(),
    };
  }
  const incident = (): readonly Incident[] => generateIncidents(dice.fork(), 1).slice(0, 1);
  return dice.pick([
    () => ({ ...story, incidents: [...incidents, ...incident()] }),
    () => ({ ...story, incidents: [...incidents.slice(1), ...incident()] }),
    () => ({ ...story, faults: [...faults, ...generateFaults(dice.fork()).slice(0, 1)] }),
    () => ({ ...story, faults: faults.slice(1) }),
    () => ({
      ...story,
      readings: { ...story.readings, ...oneOf(dice, generateReadings(dice.fork(), false)) },
    }),
    () => ({ ...story, specs: another.specs, profile: another.profile }) as Story,
    () => ({ ...story, cut: { back: dice.mostlySmall(1, 100), afterMs: pausesMs[0] ?? 60_000 } }),
    () => ({ ...story, pausesMs: another.pausesMs }),
  ])();
}

function oneOf<Values extends object>(dice: Chance, values: Values): Partial<Values> {
  const names = Object.keys(values) as (keyof Values)[];
  if (names.length === 0) return {};
  const name = dice.pick(names);
  return { [name]: values[name] } as unknown as Partial<Values>;
}
