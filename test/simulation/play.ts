import { type Outcome, play as playWith } from '../../src/simulation/scenario.ts';
import type { Story } from '../../src/simulation/story.ts';
import { ActionPlayer } from './actions/player.ts';
import { checkAsShown, show } from './as-shown.ts';
import { StoryDirector } from './director.ts';
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
import { noStoryObserver, observedPorts, type StoryObserver } from './story-observer.ts';
import { StoryTrace } from './trace.ts';

/** How a story with all of its parts went. `changes`: durable changes of the first machine's state. */
interface WholeOutcome extends Outcome {
  readonly trace: readonly string[];
  /** Virtual time, ms. */
  readonly elapsedMs: number;
  readonly changes: number;
}

/** Plays a story with all of its parts. */
export async function play(
  story: Story,
  observer: StoryObserver = noStoryObserver,
  boxes: MachineBoxes = { box: story.state === 'sqlite' ? sqliteBox : memoryBox, isBusy: () => false },
): Promise<WholeOutcome> {
  const made: MachineBox[] = [];
  const trace = new StoryTrace();
  observer.readings(story.readings);
  const box = (name: string) => {
    const own = boxes.box(name);
    made.push(own);
    return own;
  };
  const outcome = await playWith(story, {
    observer,
    boxes: { box, isBusy: () => boxes.isBusy() },
    profiles: { client: clientProfile, service: serviceProfile },
    director: (stage, main) =>
      new StoryDirector(stage, main, {
        ...{ observer, lines: trace.lines },
        actions: new ActionPlayer(stage, main),
      }),
    answer,
    sources: specSources,
    file: (model) => new EditedFile(model),
    dryRun: { show, compare: checkAsShown },
    limits: storyLimits,
    rest: storyRest(trace.lines),
    ports: (ports, controller) => observedPorts(ports, controller, observer),
    onLine: (elapsedMs, who, line) => trace.add(elapsedMs, who, line),
    rules: (truth, stage) => furtherRules(truth, stage, observer),
    atEnd: checkBill,
  });
  const { emulator, clock } = outcome.stage;
  const elapsedMs = clock.monotonic();
  observer.storyEnds(emulator);
  observer.count('runs', outcome.runs);
  observer.count('seconds simulated', Math.round(elapsedMs / 1000));
  return { ...outcome, trace: trace.lines, elapsedMs, changes: made[0]?.changes ?? 0 };
}
