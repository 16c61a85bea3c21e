import type { Io } from './terminal.ts';

/** The requests of Ctrl-C to a run. */
export interface Signals {
  /** First: send no other write, record the answer in flight, set the firewall of an open server. */
  readonly stop: AbortSignal;
  /** Second: end at once. The next run finds out the rest. */
  readonly halt: AbortSignal;
  /** Acts as if the first signal had come, and prints this text. */
  end(text: string): void;
  /** Restores the usual handling of signals. */
  dispose(): void;
}

/** Listens to SIGINT and SIGTERM. `say` may be called at any time, between any two lines. */
export function listenForSignals(
  io: Io,
  say: (text: string) => void = (text) => io.stderr.write(text),
): Signals {
  const stop = new AbortController();
  const halt = new AbortController();
  const onSignal = () => {
    if (!stop.signal.aborted) {
      say(
        'vdcsync: stopping. The answer to the request in flight is recorded, and the firewall of an open server is set. Press Ctrl-C again to stop at once.\n',
      );
      return stop.abort();
    }
    if (!halt.signal.aborted) {
      say('vdcsync: stopping at once. The next run continues the open writes.\n');
      halt.abort();
    }
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    stop: stop.signal,
    halt: halt.signal,
    end: (text) => {
      say(text);
      stop.abort();
    },
    dispose: () => {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    },
  };
}

/** Resolves at the first SIGINT or SIGTERM; listens no more once `done` is aborted. */
export function untilSignal(done: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const onSignal = () => resolve();
    process.once('SIGINT', onSignal);
    process.once('SIGTERM', onSignal);
    done.addEventListener('abort', () => {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    });
  });
}

/** The requests of signals to a daemon. */
export interface DaemonSignals {
  readonly stop: AbortSignal;
  dispose(): void;
}

/** SIGTERM and SIGINT end the daemon in an orderly way, a second signal ends it at once. SIGHUP reads the sources again. */
export function listenForDaemonSignals(
  log: { info(fields: object, message: string): void; fatal?(fields: object, message: string): void },
  onHangup: () => void,
): DaemonSignals {
  const stop = new AbortController();
  const onStop = (signal: NodeJS.Signals) => {
    log.info({ signal }, stop.signal.aborted ? 'stopping at once' : 'stopping');
    // The state records all writes in flight: the next start settles them, as after a kill.
    if (stop.signal.aborted) process.exit(1);
    stop.abort(new Error('stop requested'));
  };
  const onHup = (signal: NodeJS.Signals) => {
    log.info({ signal }, 'reconciling everything');
    onHangup();
  };
  // After an unexpected error no part of the process is reliable: the process ends, and its next start recovers.
  const onCrash = (error: unknown) => {
    log.fatal?.({ error, detail: error instanceof Error ? error.stack : undefined }, 'vdcsync has crashed');
    process.exit(1);
  };
  process.on('SIGTERM', onStop).on('SIGINT', onStop).on('SIGHUP', onHup);
  process.on('uncaughtException', onCrash).on('unhandledRejection', onCrash);
  return {
    stop: stop.signal,
    dispose: () => {
      process.off('SIGTERM', onStop).off('SIGINT', onStop).off('SIGHUP', onHup);
      process.off('uncaughtException', onCrash).off('unhandledRejection', onCrash);
    },
  };
}
