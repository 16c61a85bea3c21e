import { dirname, join } from 'node:path';
import { ConfigError } from '../core/errors.ts';
import type { Transport } from '../core/transport.ts';
import { createEmulator, type Emulator } from '../emulator/emulator.ts';
import { readWorldFile, writeWorldFile } from '../emulator/persistence.ts';
import { loadProfile } from '../emulator/profile.ts';
import { usageError } from './exit.ts';
import { type CommonFlags, isUrl } from './flags.ts';
import { clockOf, profileOf, stateLocation } from './settings/config.ts';
import type { Io } from './terminal.ts';

/** The address that an embedded emulator answers at. Nothing listens there: it is only a name. */
const baseUrl = 'http://127.0.0.1/v1';

/** How fast the embedded emulator's clock runs, where the profile does not say: a minute in a second. */
const usualSpeed = 60;

/** The embedded emulator as the service of a session. */
export function embeddedService(
  flags: CommonFlags,
  io: Io,
  { mode, projectId }: { readonly mode: 'read' | 'write'; readonly projectId: number },
) {
  const { profile, text } = profileOf(flags, io);
  const speed = profile.timeScale === 1 ? usualSpeed : profile.timeScale;
  const path = worldFile(flags, io);
  const saved = readWorldFile(path);
  if (saved !== null && !saved.projects.some(({ id }) => id === projectId)) {
    const projectIds = saved.projects.map(({ id }) => id).join(', ');
    throw new ConfigError(
      `${path} holds the emulated project ${projectIds}, not ${projectId}. Use another --state, or move that file away.`,
    );
  }
  const emulator = createEmulator({
    clock: clockOf(io),
    seed: 'vdcsync',
    speed,
    projects: [{ id: projectId, name: 'emulated' }],
    profile: loadProfile(text),
    ...(saved === null ? {} : { world: saved }),
  });
  const { readWrite } = emulator.tokens(projectId);
  return {
    name: 'emulator' as const,
    baseUrl,
    tokens: () => [readWrite],
    transport: mode === 'write' ? keptTransport(emulator, path) : emulator.transport(),
    profile: { ...profile, timeScale: speed },
  };
}

/** The project of an embedded emulator that has run before. */
export function savedProject(flags: CommonFlags, io: Io): number | undefined {
  return readWorldFile(worldFile(flags, io))?.projects[0]?.id;
}

/** The path of an embedded emulator's world: next to the state. */
function worldFile(flags: CommonFlags, io: Io): string {
  const location = stateLocation(flags, io);
  if (isUrl(location)) {
    throw usageError(
      '--emulator keeps its resources in a file next to the state: name a file with --state, ' +
        'or start `vdcsync emulator` and set VDC_BASE_URL to its address',
    );
  }
  return join(dirname(location), 'emulator.json');
}

/**
 * The emulator as a transport that saves its world to disk before it answers a write,
 * so that the next run finds the effects of a killed run.
 */
function keptTransport(emulator: Emulator, path: string): Transport {
  const inner = emulator.transport();
  return {
    send: async (request, options) => {
      try {
        return await inner.send(request, options);
      } finally {
        if (request.method !== 'GET') writeWorldFile(path, emulator.snapshot());
      }
    },
    close: async () => {
      writeWorldFile(path, emulator.snapshot());
      await inner.close();
    },
  };
}
