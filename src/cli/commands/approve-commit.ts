import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { ConfigError } from '../../core/errors.ts';
import { type Rollout, readRollout } from '../../daemon/fleet/rollout.ts';
import { isPostgresUrl, parsePostgresUrl } from '../../state/postgres-url.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { type CommonFlags, stateLocation } from '../settings/config.ts';
import { ownState } from '../settings/own-state.ts';
import { type Io, printable } from '../terminal.ts';

/** How long the replica that leads may take to answer, in ms. */
const answerMs = 20_000;

/** Lets a change of a fleet's specs go on that waits for an approval or has stopped. The replica that leads does it. */
export async function approveCommit(change: string, flags: CommonFlags, io: Io): Promise<ExitCode> {
  const location = stateLocation(flags, io);
  if (!isPostgresUrl(location))
    throw new ConfigError(
      'approve-commit is for a fleet: give the URL of its state with --state or VDCSYNC_STATE',
      true,
    );
  const rollout = waitingFor(await rolloutAt(location), change);
  const { PostgresReplica } = await import('../../state/postgres-replica.ts');
  const self = { id: randomUUID(), host: hostname(), pid: process.pid };
  const caller = new PostgresReplica(parsePostgresUrl(location), self);
  try {
    await caller.call(JSON.stringify({ of: 'approve', change: rollout.change }));
  } finally {
    await caller.close();
  }
  for (const endsAt = performance.now() + answerMs; performance.now() < endsAt; await pause(200)) {
    const now = await rolloutAt(location);
    if (now?.candidate === rollout.candidate && now.phase === rollout.phase) continue;
    io.stdout.write(`The change ${printable(rollout.change)} continues.\n`);
    return exitCodes.done;
  }
  throw new ConfigError(
    'No replica has answered. The approval is not recorded. Check that a replica of the fleet leads, and run the command again.',
  );
}

/** @throws ConfigError where this change does not wait for an approval */
function waitingFor(rollout: Rollout | undefined, change: string): Rollout {
  if (rollout === undefined || (rollout.phase !== 'waiting' && rollout.phase !== 'stopped'))
    throw new ConfigError('No change of this fleet waits for an approval.');
  const isMeant = rollout.change === change || (change.length >= 7 && rollout.change.startsWith(change));
  if (isMeant) return rollout;
  throw new ConfigError(
    `The change ${printable(change)} does not wait for an approval. The change that waits is ${printable(rollout.change)}.`,
  );
}

async function rolloutAt(location: string): Promise<Rollout | undefined> {
  const { openPublications } = await import('../../state/postgres-publications.ts');
  const options = { mode: 'read', now: 0, lineage: '' } as const;
  const board = await openPublications(ownState(location, 'fleet'), options);
  try {
    const { head } = (await board?.publication()) ?? {};
    return readRollout((head as { readonly rollout?: unknown } | undefined)?.rollout);
  } finally {
    await board?.close();
  }
}
