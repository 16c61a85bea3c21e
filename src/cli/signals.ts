import type { Io } from './terminal.ts';

/** What Ctrl-C asks of a run. */
export interface Signals {
  /** First: settle what is in flight, start nothing new. */
  readonly stop: AbortSignal;
  /** Second: end now; the next run settles it. */
  readonly halt: AbortSignal;
  /** Gives the process its usual handling back. */
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
      say('vdcsync: stopping once what is in flight has settled; again to stop now\n');
      return stop.abort();
    }
    if (!halt.signal.aborted) {
      say('vdcsync: stopping now; the next run settles what is in flight\n');
      halt.abort();
    }
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    stop: stop.signal,
    halt: halt.signal,
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
