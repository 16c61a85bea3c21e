import { z } from 'zod';
import type { DaemonLogger, Trigger } from '../ports.ts';

const call = z.discriminatedUnion('of', [
  /** A replica came or went. */
  z.object({ of: z.literal('replicas') }),
  /** Other specs are in force. */
  z.object({ of: z.literal('specs') }),
  /** The source may have moved: for the replica that leads. */
  z.object({ of: z.literal('source'), trigger: z.string() }),
  /** Somebody should look at all projects, or at these. */
  z.object({ of: z.literal('projects'), trigger: z.string(), projects: z.array(z.number()).optional() }),
  /** An operator lets a change go on that waits or has stopped: for the replica that leads. */
  z.object({ of: z.literal('approve'), change: z.string() }),
]);

/**
 * What a replica calls out to all replicas of its fleet, itself too. It carries no data: each call
 * says only that a look may be worth it, so that one that is lost costs time alone.
 */
export type Call = z.infer<typeof call>;

export interface CallsOptions {
  readonly send: (text: string) => Promise<void>;
  readonly log: DaemonLogger;
}

/** The calls of a fleet, sent and heard. */
export class Calls {
  readonly #options: CallsOptions;
  readonly #listeners = new Set<(call: Call) => void>();

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  send(sent: Call): void {
    const { send, log } = this.#options;
    send(JSON.stringify(sent)).catch((error: unknown) =>
      log.warn({ error }, 'message to the other replicas failed'),
    );
  }

  /** Gives a function that ends it. */
  listen(listener: (call: Call) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Takes in what was called; `undefined` where calls may have been missed. Another release's calls are passed over. */
  hear(text: string | undefined): void {
    const heard = text === undefined ? missed : parsed(text);
    for (const each of heard) for (const listener of this.#listeners) listener(each);
  }
}

/** The last call of a replica, as text. */
export const farewell = JSON.stringify({ of: 'replicas' } satisfies Call);

const missed: readonly Call[] = [{ of: 'replicas' }, { of: 'specs' }, { of: 'source', trigger: 'fleet' }];

function parsed(text: string): readonly Call[] {
  try {
    return [call.parse(JSON.parse(text))];
  } catch {
    return [];
  }
}

/** As other replicas named it. */
export function triggerOf({ trigger }: { readonly trigger: string }): Trigger {
  return trigger as Trigger;
}
