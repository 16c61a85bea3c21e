import type { Observer } from '../../src/simulation/observer.ts';
import { type Outcome, play as playWith } from '../../src/simulation/scenario.ts';
import type { Boxes } from '../../src/simulation/state-box.ts';
import type { Story } from '../../src/simulation/story.ts';
import { ActionPlayer } from './actions/player.ts';
import { checkAsShown, show } from './as-shown.ts';
import { clientProfile, serviceProfile } from './operations.ts';
import { sqliteBox } from './sqlite-box.ts';
import { cutAtRest, strike } from './strike.ts';

const inSqlite: Boxes = { box: sqliteBox, isBusy: () => false };

/** Plays a story with all of its parts. */
export function play(
  story: Story,
  observer?: Observer,
  boxes = story.state === 'sqlite' ? inSqlite : undefined,
): Promise<Outcome> {
  return playWith(story, {
    ...(observer === undefined ? {} : { observer }),
    ...(boxes === undefined ? {} : { boxes }),
    profiles: { client: clientProfile, service: serviceProfile },
    actions: (stage, main) => new ActionPlayer(stage, main),
    dryRun: { show, compare: checkAsShown },
    strike,
    cut: cutAtRest,
  });
}
