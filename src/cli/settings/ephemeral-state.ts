import { readFileSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import { whyEphemeral } from '../../daemon/ephemeral.ts';
import { createFolder } from '../../state/sqlite-file.ts';
import type { Io } from '../terminal.ts';
import { type CommonFlags, stateLocation } from './config.ts';

/** @throws ConfigError where the state's folder would not outlive this container. */
export function refuseEphemeral(flags: CommonFlags, io: Io): void {
  if (io.env.VDCSYNC_ALLOW_EPHEMERAL_STATE === '1') return;
  const location = stateLocation(flags, io);
  if (/^\w+:\/\//.test(location)) return;
  const why = location === ':memory:' ? 'it is kept in memory' : whyFolderEphemeral(location);
  if (why === undefined) return;
  throw new ConfigError(
    `the state ${location} would be lost: ${why}. Then vdcsync no longer knows its resources. ` +
      'Name a folder on a volume with --state, or set VDCSYNC_ALLOW_EPHEMERAL_STATE=1 for a trial.',
  );
}

function whyFolderEphemeral(location: string): string | undefined {
  try {
    createFolder(location);
    return whyEphemeral(readFileSync('/proc/self/mountinfo', 'utf8'), realpathSync(dirname(location)));
  } catch {
    // Not Linux, or the folder cannot be created: opening the state reports the error.
    return undefined;
  }
}
