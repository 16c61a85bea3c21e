import { setTimeout as pause } from 'node:timers/promises';
import { start } from '../cli/run.ts';

/** Resolves when the output matches, with the match. */
export type Until = (pattern: RegExp) => Promise<RegExpExecArray>;

/** Starts the program, takes these steps, if any, and then ends it with SIGTERM. `text`: its output. */
export async function serve(
  args: readonly string[],
  cwd: string,
  steps?: (until: Until) => Promise<void>,
  own: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly text: string }> {
  const env = { LOG_FORMAT: 'text', VDCSYNC_ALLOW_EPHEMERAL_STATE: '1', ...own };
  const child = start(args, { cwd, env });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  const until: Until = async (pattern) => {
    for (;;) {
      const found = pattern.exec(text);
      if (found !== null) return found;
      if (child.exitCode !== null) throw new Error(`the program has ended: ${text}`);
      await pause(20);
    }
  };
  try {
    if (steps !== undefined) {
      await steps(until);
      child.kill('SIGTERM');
    }
    return { code: await ended, text };
  } finally {
    child.kill('SIGKILL');
  }
}

/** Without the values that differ from run to run: moments, durations, ports, ids of requests and the version. */
export function masked(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\d[T ][\d:.]+(Z| UTC)/g, 'TIME')
    .replaceAll(/TIME, (just now|\d[\w ]* ago)/g, 'TIME, N s ago')
    .replaceAll(/ in \d[\w ]* (\(emulator clock, 60×\)); .*/g, ' in N s $1')
    .replaceAll(/\b(durationMs=|serial )\d+/g, '$1N')
    .replaceAll(/\b(port=|127\.0\.0\.1:)\d+/g, '$1PORT')
    .replaceAll(/\breq_[0-9a-f]+/g, 'req_ID')
    .replaceAll(/\breplica=\S+/g, 'replica=REPLICA')
    .replaceAll(/\bversion=\S+/g, 'version=VERSION');
}
