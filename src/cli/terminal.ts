import { readFileSync } from 'node:fs';
import { styleText } from 'node:util';
import type { Clock, Random } from '../core/clock.ts';
import { member } from '../core/json.ts';

/** The parts of its process that a command may use: the streams, the environment, the working folder, time and chance. */
export interface Io {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The clock and the randomness of the machine where left out. */
  readonly clock?: Clock;
  readonly random?: Random;
  /** The flags of the call that identify the project. Every command in the output repeats them. */
  readonly flags?: string;
}

/**
 * The process's own. The environment is copied: the system searches a variable from the first one on, and a fleet has one for
 * the token of each of thousands of projects.
 */
export function processIo(): Io {
  const { stdin, stdout, stderr } = process;
  const env: Io['env'] = Object.assign(Object.create(null), process.env);
  return { stdin, stdout, stderr, env, cwd: process.cwd() };
}

export type Style = 'red' | 'green' | 'yellow' | 'cyan' | 'magenta' | 'bold' | 'dim';

/**
 * Colours a text, or returns it unchanged if the stream is no terminal or `NO_COLOR` is set.
 * `flags`: those of the call. The commands in the output repeat them.
 */
export interface Paint {
  (style: Style, text: string): string;
  readonly flags?: string;
}

/** Colours for a stream; `FORCE_COLOR` and `NO_COLOR` are respected. */
export function paintFor(stream: NodeJS.WriteStream, { flags = '' }: Pick<Io, 'flags'> = {}): Paint {
  return Object.assign((style: Style, text: string) => styleText(style, text, { stream }), { flags });
}

/** Prints the result of a command: as JSON, or as a text. */
export function printResult(
  io: Io,
  { format }: { readonly format?: string },
  json: object,
  text: (paint: Paint) => string,
): void {
  io.stdout.write(format === 'json' ? `${JSON.stringify(json, null, 2)}\n` : text(paintFor(io.stdout, io)));
}

/** For files and tests. */
export const plainPaint: Paint = (_style, text) => text;

/**
 * An operator's yes or no, asked on standard error so that standard output holds results alone.
 * The end of the input is a no.
 */
export async function askYesNo(io: Io, question: string, signal?: AbortSignal): Promise<boolean> {
  const answer = await askText(io, `${question} [yes/no] `, signal);
  return answer !== undefined && /^\s*y(es)?\s*$/i.test(answer);
}

/** A line from an operator; `undefined` where the input has ended, or `signal` gave the question up. */
export async function askText(io: Io, question: string, signal?: AbortSignal): Promise<string | undefined> {
  const { createInterface } = await import('node:readline');
  const lines = createInterface({ input: io.stdin, output: io.stderr, prompt: question });
  // At a question the terminal delivers Ctrl-C as a key. The key must have its usual meaning.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  const stop = () => lines.close();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    return await new Promise((resolve) => {
      lines.once('line', resolve);
      lines.once('close', () => resolve(undefined));
      lines.prompt();
      if (signal?.aborted) stop();
    });
  } finally {
    signal?.removeEventListener('abort', stop);
    if (signal?.aborted) io.stderr.write('\n');
    lines.close();
  }
}

/** The requests of Ctrl-C to a run. */
export type Signals = ReturnType<typeof listenForSignals>;

/**
 * Listens to SIGINT and SIGTERM.
 *
 * @param say may be called at any time, between any two lines
 * @returns `stop`, the first signal: send no other write, record the answer in flight, set the firewall of an open server.
 * `halt`, the second one: end at once, and the next run finds out the rest. `end` acts as if the first signal had come, and
 * prints this text. `dispose` restores the usual handling of signals
 */
export function listenForSignals(say: (text: string) => void) {
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
  return {
    stop: stop.signal,
    halt: halt.signal,
    end: (text: string) => {
      say(text);
      stop.abort();
    },
    dispose: listen({ SIGINT: onSignal, SIGTERM: onSignal }),
  };
}

/** Resolves at the first SIGINT or SIGTERM; listens no more once `done` is aborted. */
export function untilSignal(done: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const onSignal = () => {
      dispose();
      resolve();
    };
    const dispose = listen({ SIGINT: onSignal, SIGTERM: onSignal });
    done.addEventListener('abort', dispose);
  });
}

/** Calls each listener at its event of the process, until the result is called. */
function listen<Given>(listeners: Readonly<Record<string, (given: Given) => void>>): () => void {
  for (const [event, listener] of Object.entries(listeners)) process.on(event, listener);
  return () => {
    for (const [event, listener] of Object.entries(listeners)) process.off(event, listener);
  };
}

/** SIGTERM and SIGINT end the daemon in an orderly way, a second signal ends it at once. SIGHUP reads the sources again. */
export function listenForDaemonSignals(
  log: { info(fields: object, message: string): void; fatal?(fields: object, message: string): void },
  onHangup: () => void,
): Pick<Signals, 'stop' | 'dispose'> {
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
  const disposals = [
    listen({ SIGTERM: onStop, SIGINT: onStop, SIGHUP: onHup }),
    listen({ uncaughtException: onCrash, unhandledRejection: onCrash }),
  ];
  return { stop: stop.signal, dispose: () => disposals.forEach((each) => void each()) };
}

/** From the package's own description. */
export const version = String(member(JSON.parse(packaged('package.json')), 'version'));

/** The text of a file of the package, which is two folders up in `src` as in `dist`. */
export function packaged(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}

/** The JSON Schema of the spec file. */
export const specSchema = 'schemas/project.schema.json';
