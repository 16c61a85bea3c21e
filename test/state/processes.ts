import { spawn } from 'node:child_process';
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/** A process that owns the state by now, at most until the test has ended; see `owner-process.ts`. */
export async function ownedElsewhere(path: string, job: 'hold' | 'write' = 'hold') {
  const owner = spawnOwner(path, job);
  onTestFinished(() => owner.kill());
  await owner.said('ready');
  return owner;
}

function spawnOwner(path: string, job: 'hold' | 'write') {
  const script = fileURLToPath(new URL('owner-process.ts', import.meta.url));
  const child = spawn(execPath, [script, path, job], { stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  let ended = false;
  const waiting: (() => void)[] = [];
  const wake = () => {
    for (const each of waiting.splice(0)) each();
  };
  child.stdout.on('data', (chunk) => {
    output += String(chunk);
    wake();
  });
  child.stderr.on('data', (chunk) => {
    errors += String(chunk);
  });
  child.on('close', () => {
    ended = true;
    wake();
  });
  const lines = () => output.split('\n').slice(0, -1);
  const news = () => new Promise<void>((resolve) => waiting.push(resolve));
  const over = async () => {
    while (!ended) await news();
  };
  return {
    pid: child.pid ?? 0,
    /** The whole lines it has said. */
    lines,
    /** Resolves when it has said `line`. */
    async said(line: string) {
      while (!lines().includes(line)) {
        if (ended) throw new Error(`The owner ended without saying ${line}: ${errors}`);
        await news();
      }
    },
    /** Ends it at once, wherever it is. */
    async kill() {
      child.kill('SIGKILL');
      await over();
    },
    /** Lets it close the state and end. */
    async end() {
      child.stdin.end();
      await over();
    },
  };
}
