import { leftBackups } from '../../engine/books/left-backups.ts';
import { vouchedBy } from '../../engine/books/strangers.ts';
import type { Repeating } from '../../engine/deps.ts';
import type { KeyBackOff } from '../pace/back-off.ts';
import type { Holds } from '../pace/holds.ts';
import type { Refresh } from '../pace/refresh.ts';
import type { ProjectSession } from '../ports.ts';
import type { Known } from './facts.ts';
import type { UseMeter } from './use-meter.ts';

/** What is open while a project runs. */
export interface Workshop {
  readonly session: ProjectSession;
  readonly repeating: Repeating;
  readonly holds: Holds;
  readonly refresh: Refresh;
  readonly meter: UseMeter;
}

/** What state and client say now; nothing before the state is open. */
export async function knownOf(
  workshop: Workshop | undefined,
  backOff: KeyBackOff,
): Promise<Known | undefined> {
  if (workshop === undefined) return undefined;
  const { session, meter, refresh } = workshop;
  const { store, clock, profile, counts } = session;
  const now = clock.now();
  return {
    now,
    info: await store.info(),
    bindings: await store.bindings(),
    intents: await store.openIntents(),
    leftBackups: await leftBackups(store),
    vouched: await vouchedBy(store),
    history: await store.intents({ limit: 30 }),
    ...{ limits: profile.limits, used: meter.used(), counts: counts() },
    oldestReadMs: refresh.oldestMs(),
    backOff: backOff.list(now),
  };
}
