import { dirname, join } from 'node:path';
import type { Transport } from '../core/transport.ts';
import type { Emulator } from '../emulator/emulator.ts';
import { writeWorldFile } from '../emulator/persistence.ts';
import { usageError } from './exit.ts';
import { isUrl } from './flags.ts';

/** The address that an embedded emulator answers at. Nothing listens there: it is only a name. */
export const embeddedBaseUrl = 'http://127.0.0.1/v1';

/** How fast the embedded emulator's clock runs, where the profile does not say: a minute in a second. */
export const embeddedSpeed = 60;

/** The path of an embedded emulator's world: next to the state. */
export function worldFile(stateLocation: string): string {
  if (isUrl(stateLocation)) {
    throw usageError(
      '--emulator keeps its resources in a file next to the state: name a file with --state, ' +
        'or start `vdcsync emulator` and set VDC_BASE_URL to its address',
    );
  }
  return join(dirname(stateLocation), 'emulator.json');
}

/**
 * The emulator as a transport that saves its world to disk before it answers a write,
 * so that the next run finds the effects of a killed run.
 */
export function keptTransport(emulator: Emulator, path: string): Transport {
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
