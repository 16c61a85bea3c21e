import { setTimeout as pause } from 'node:timers/promises';
import { ConfigError } from '../../core/errors.ts';
import { member } from '../../core/json.ts';
import { command } from '../../core/remedy.ts';
import { printable } from '../../core/text.ts';
import { type Rollout, readRollouts } from '../../daemon/fleet/rollout.ts';
import { systemRandom } from '../../platform/system.ts';
import { JobQueue } from '../../state/job-queue.ts';
import type { PostgresPublications } from '../../state/postgres-publications.ts';
import { isPostgresUrl } from '../../state/postgres-url.ts';
import { type ExitCode, exitCodes, usageError } from '../exit.ts';
import type { CommonFlags } from '../flags.ts';
import { stateLocation } from '../settings/config.ts';
import { inPublications } from '../settings/own-state.ts';
import type { Io } from '../terminal.ts';

/** How long the replica that leads may take to answer, in ms. */
const answerMs = 20_000;

/** Lets a change of a fleet's specs go on that waits for an approval or has stopped. The replica that leads does it. */
export async function approveCommit(change: string, flags: CommonFlags, io: Io): Promise<ExitCode> {
  const location = stateLocation(flags, io);
  if (!isPostgresUrl(location))
    throw usageError(
      'approve-commit is for a fleet: give the URL of its state with --state or VDCSYNC_STATE',
    );
  return inPublications(location, async (publications) => {
    const rollout = waitingRollout(await rolloutsIn(publications), change);
    await askLeader(location, rollout);
    for (const endsAt = performance.now() + answerMs; performance.now() < endsAt; await pause(200)) {
      const now = await rolloutsIn(publications);
      if (now.some(({ id, phase }) => id === rollout.id && phase === rollout.phase)) continue;
      io.stdout.write(`The rollout of ${printable(rollout.change)} continues.\n`);
      return exitCodes.done;
    }
    throw new ConfigError(
      'No replica of the fleet has answered, so the approval is not recorded. Check that a replica runs, and run the command again.',
    );
  });
}

async function askLeader(location: string, { change }: Rollout): Promise<void> {
  const queue = await JobQueue.open(location, {
    ...{ instance: 'approve-commit', as: 'command', random: systemRandom, onError: () => {} },
  });
  try {
    await queue.send({ of: 'approve', change });
  } finally {
    await queue.close();
  }
}

/** @throws ConfigError where this change does not wait for an approval */
export function waitingRollout(rollouts: readonly Rollout[], change: string): Rollout {
  // In the order in which a leader takes an approval: for the next wave, for deletions, for a start before others.
  const waiting = ['stopped', 'waiting', 'queued'].flatMap((phase) =>
    rollouts.filter((each) => each.phase === phase),
  );
  const meant = waiting.filter(
    (each) => each.change === change || (isLong(change) && each.change.startsWith(change)),
  );
  const [only] = meant;
  if (only !== undefined && meant.every((each) => each.change === only.change)) return only;
  if (waiting.length === 0) throw new ConfigError('No rollout of this fleet waits for approval.');
  const commands = waiting.map((each) => command('approve-commit', [each.change]));
  throw new ConfigError(
    `No single rollout of ${printable(change)} waits for approval. Name a commit by at least 12 of its digits. To approve a rollout that waits:`,
    false,
    commands,
  );
}

/** A shorter beginning of a commit can be made to match: an author of commits can try many of them. */
function isLong(change: string): boolean {
  return /^[0-9a-f]{12,}$/.test(change);
}

async function rolloutsIn(
  publications: Pick<PostgresPublications, 'publication'> | undefined,
): Promise<readonly Rollout[]> {
  const { head } = (await publications?.publication()) ?? {};
  return readRollouts(member(head, 'rollouts'));
}
