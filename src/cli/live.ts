import { within } from '../core/clock.ts';
import { FenceError } from '../core/errors.ts';
import type { ReadPort } from '../core/ports.ts';
import { inSession, type Session, type SessionOptions } from './compose.ts';
import { whyNotRead } from './exit.ts';
import type { CommonFlags } from './flags.ts';
import { clockOf } from './settings/config.ts';
import type { Io } from './terminal.ts';

/** Flags of a command that shows the state alone if the API cannot be read. */
export interface OfflineFlags extends CommonFlags {
  readonly offline?: boolean;
}

/** Reads the live project. Returns a text if the API was not read: the reason. */
export async function readLive<Live extends object>(
  flags: CommonFlags,
  io: Io,
  options: Pick<SessionOptions, 'projectId' | 'token'>,
  read: (session: Session) => Promise<Live>,
): Promise<Live | string> {
  try {
    return await inSession(flags, io, { mode: 'read', ...options }, async (session) => {
      await refuseOtherToken(session.reads, options.projectId, io);
      return read(session);
    });
  } catch (error) {
    if (error instanceof TooSlow) return `the API did not answer in ${patienceMs / 1000} s`;
    return whyNotRead(error);
  }
}

/** Why the command does not ask the API at all. */
export function whyOffline(flags: OfflineFlags, io: Io): string | undefined {
  if (flags.offline === true) return '--offline';
  return flags.emulator !== true && !io.env.VDC_BASE_URL ? 'VDC_BASE_URL is not set' : undefined;
}

async function refuseOtherToken(reads: ReadPort, projectId: number, io: Io): Promise<void> {
  const project = await within(clockOf(io), patienceMs, reads.project());
  if (project === undefined) throw new TooSlow();
  const { id } = project;
  if (id === projectId) return;
  throw new FenceError(
    `The token is for project ${id}, not for project ${projectId}. Use a token of project ${projectId}, correct project.id, or use the state only with --offline.`,
  );
}

/** How long the first answer may take, in real time: a command that hangs is of no use. */
const patienceMs = 10_000;

class TooSlow extends Error {}
