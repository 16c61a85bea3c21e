import { createInterface } from 'node:readline/promises';
import { styleText } from 'node:util';

/** What a command may touch of its process: the streams, the environment, the working folder. */
export interface Io {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** The process's own. */
export function processIo(): Io {
  const { stdin, stdout, stderr, env } = process;
  return { stdin, stdout, stderr, env, cwd: process.cwd() };
}

export type Style = 'red' | 'green' | 'yellow' | 'cyan' | 'magenta' | 'bold' | 'dim';

/** Colours a text, or leaves it as it is where the stream is no terminal or `NO_COLOR` asks for that. */
export type Paint = (style: Style, text: string) => string;

/** Colours for a stream; `FORCE_COLOR` and `NO_COLOR` are respected. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  return (style, text) => styleText(style, text, { stream });
}

/** For files and tests. */
export const plainPaint: Paint = (_style, text) => text;

/**
 * A person's yes or no, asked on standard error so that standard output holds results alone.
 * The end of the input is a no.
 */
export async function askYesNo(io: Io, question: string, signal?: AbortSignal): Promise<boolean> {
  const lines = createInterface({ input: io.stdin, output: io.stderr });
  // At a question the terminal hands Ctrl-C over as a key: it has to mean what it means elsewhere.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const asked = lines.question(`${question} [yes/no] `, signal === undefined ? {} : { signal });
    const answer = await Promise.race([asked, ended]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } catch (error) {
    if (signal?.aborted) {
      io.stderr.write('\n');
      return false;
    }
    throw error;
  } finally {
    lines.close();
  }
}

/** Text from outside, fit for a terminal: without control and direction characters. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');
}
