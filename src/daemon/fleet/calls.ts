import { z } from 'zod';
import type { DaemonLogger, Trigger } from '../ports.ts';

const call = z.discriminatedUnion('of', [
  /** A replica came or went. */
  z.object({ of: z.literal('replicas') }),
  /** Other specs are in force. */
  z.object({ of: z.literal('specs') }),
  /** The source may have changed. Only the leader acts on this call. */
  z.object({ of: z.literal('source'), trigger: z.string() }),
  /** The replicas should reconcile all projects, or these projects. */
  z.object({ of: z.literal('projects'), trigger: z.string(), projects: z.array(z.number()).optional() }),
  /** The operator approves a change that waits or has stopped. Only the leader acts on this call. */
  z.object({ of: z.literal('approve'), change: z.string() }),
]);

/**
 * A message of a replica to all replicas of its fleet, itself included. A call carries no data: it only says that a
 * refresh is useful, so a lost call costs only time.
 */
export type Call = z.infer<typeof call>;

export interface CallsOptions {
  readonly send: (text: string) => Promise<void>;
  readonly log: DaemonLogger;
}

/** Sends and receives the calls of a fleet. */
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

  /** Returns a function that ends the listening. */
  listen(listener: (call: Call) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Takes in a received call. `undefined` means that calls may have been lost. Calls of another release are ignored.
   */
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

/** The trigger, in the name that another replica gave it. */
export function triggerOf({ trigger }: { readonly trigger: string }): Trigger {
  return trigger as Trigger;
}
