import type { Observer } from '../../src/simulation/observer.ts';
import { type Outcome, play as playWith } from '../../src/simulation/scenario.ts';
import type { Story } from '../../src/simulation/story.ts';
import { ActionPlayer } from './actions/player.ts';
import { checkAsShown, show } from './as-shown.ts';
import { EditedFile } from './edited-file.ts';
import { storyLimits } from './limits.ts';
import { type MachineBox, type MachineBoxes, memoryBox } from './machine-box.ts';
import { checkBill } from './metered.ts';
import { clientProfile, serviceProfile } from './operations.ts';
import { answer } from './operator/answer.ts';
import { storyRest } from './rest-judge.ts';
import { furtherRules } from './rules/further.ts';
import { specSources } from './spec-sources.ts';
import { sqliteBox } from './sqlite-box.ts';
import { cutAtRest, strike } from './strike.ts';

/** How a story with all of its parts went. `changes`: durable changes of the first machine's state. */
interface WholeOutcome extends Outcome {
  readonly changes: number;
}

/** Plays a story with all of its parts. */
export async function play(
  story: Story,
  observer?: Observer,
  boxes: MachineBoxes = { box: story.state === 'sqlite' ? sqliteBox : memoryBox, isBusy: () => false },
): Promise<WholeOutcome> {
  const made: MachineBox[] = [];
  const box = (name: string) => {
    const own = boxes.box(name);
    made.push(own);
    return own;
  };
  const outcome = await playWith(story, {
    ...(observer === undefined ? {} : { observer }),
    boxes: { box, isBusy: () => boxes.isBusy() },
    profiles: { client: clientProfile, service: serviceProfile },
    actions: (stage, main) => new ActionPlayer(stage, main),
    answer,
    sources: specSources,
    file: (model) => new EditedFile(model),
    dryRun: { show, compare: checkAsShown },
    strike,
    limits: storyLimits,
    rest: storyRest,
    rules: furtherRules,
    cut: cutAtRest,
    atEnd: checkBill,
  });
  return { ...outcome, changes: made[0]?.changes ?? 0 };
}
