import { styleText } from 'node:util';
import type { Clock, Random } from '../core/clock.ts';

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

/** Text from outside, fit for a terminal: without control and direction characters. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');
}
