import { describe, expect, test } from 'vitest';
import { openingFor } from '../../src/core/calendar.ts';
import type { ChangeWindow } from '../../src/core/desired.ts';
import { partsOf } from '../../src/core/intent.ts';
import { takeApart } from '../../src/core/keys.ts';
import { factsOf } from '../../src/core/kind-facts.ts';
import type { Intent } from '../../src/core/state.ts';
import type { Story } from '../../src/simulation/story.ts';
import { generateStory } from './generator.ts';
import { type MachineBox, memoryBox } from './machine-box.ts';
import { play } from './play.ts';

const allow = ['create', 'update', 'delete', 'replace'] as const;
/** Open for two of six minutes, so that runs wait and windows close during runs. */
const window: ChangeWindow = { cron: '3-59/6 * * * *', duration: '2m', timezone: 'UTC', allow };

/** The same story with windows in all versions of the spec. */
function windowed(story: Story): Story {
  const specs = story.specs.map((spec) => ({ ...spec, settings: { ...spec.settings, windows: [window] } }));
  return { ...story, specs, state: 'memory' };
}

/** Whether no window holds the write back: a repair, a part of a new server, or the end of an earlier write. */
function isFree({ key, kind, verb, parentId, recovers }: Intent, earlier: readonly Intent[]): boolean {
  const { parent } = takeApart(key);
  const last = earlier.findLast((each) => each.key === key || (verb === 'delete' && each.key === parent));
  const isEnd = last !== undefined && (last.verb === 'delete' || partsOf(last).outcome !== 'done');
  const isPart = verb === 'create' && parentId !== undefined;
  return factsOf(kind).endsExposure === true || isPart || recovers !== undefined || isEnd;
}

describe('src/plan/waits.ts', () => {
  // Between a dry run and its run a window may open, and without faults every wait would be an error.
  const stories = Array.from({ length: 20 }, (_, at) => generateStory(at + 1)).filter(
    ({ shown, faults, incidents }) => shown !== true && faults.length + incidents.length > 0,
  );

  test('with faults and crashes, only repairs and ends of earlier writes happen outside the windows', async () => {
    const outside: string[] = [];
    let sent = 0;
    for (const story of stories) {
      const boxes: MachineBox[] = [];
      const box = (name: string) => boxes[boxes.push(memoryBox(name)) - 1] as MachineBox;
      const { violation } = await play(windowed(story), undefined, { box, isBusy: () => false });
      expect([story.seed, violation]).toEqual([story.seed, undefined]);
      const newest = (await (await boxes[0]?.open(0))?.intents({ limit: 10_000 })) ?? [];
      const intents = newest.toReversed();
      sent += intents.length;
      for (const [at, intent] of intents.entries())
        if (
          openingFor('create', [window], intent.createdAt) !== 'open' &&
          !isFree(intent, intents.slice(0, at))
        )
          outside.push(`${story.seed} ${intent.verb} ${intent.key}`);
    }
    expect([stories.length > 10, sent > 50, outside]).toEqual([true, true, []]);
  }, 120_000);
});
