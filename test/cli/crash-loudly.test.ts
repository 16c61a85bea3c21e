import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ended, folderWith, oneNetwork, start, vdcsync } from './run.ts';

/** A bug that nobody foresaw: once a write is reported, something rejects, and nobody waits for it. */
const bug = `for (const stream of [process.stdout, process.stderr]) {
  const write = stream.write;
  stream.write = function (text, ...more) {
    if (/operation started|create networks/.test(text)) Promise.reject(new Error('nobody caught it'));
    return write.call(this, text, ...more);
  };
}`;
const buggy = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(bug)}` };
const env = { VDCSYNC_ALLOW_EPHEMERAL_STATE: '1' };
const daemon = ['run', '--emulator', '--listen', '127.0.0.1:0'];

/** Resolves once the process has told it, and while it goes on. */
function tells(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let told = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (data: Buffer) => {
        told += data.toString();
        if (told.includes(text)) resolve();
      });
    }
    child.once('close', () => reject(new Error(`it ended without "${text}": ${told}`)));
  });
}

function networksIn(cwd: string): number {
  const world = JSON.parse(readFileSync(join(cwd, '.vdcsync/emulator.json'), 'utf8'));
  return world.projects[0].networks.filter(({ name }: { readonly name: string }) => name === 'backend')
    .length;
}

describe('src/cli/exit.ts: an uncaught error', () => {
  test('ends the daemon with an error message; the next start continues and creates nothing twice', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });

    const { code, stdout, stderr } = await vdcsync(daemon, { cwd, env: { ...env, ...buggy } });

    expect(code).toBe(1);
    expect(stdout + stderr).toContain('vdcsync has crashed');
    expect(stdout + stderr).toContain('nobody caught it');
    const next = start(daemon, { cwd, env });
    const end = ended(next);
    // The first process may have converged before its end, and then the condition does not change.
    await tells(next, '"outcome":"converged"');
    next.kill('SIGTERM');
    expect((await end).code).toBe(0);
    expect(networksIn(cwd)).toBe(1);
  });

  test('ends apply with exit code 1 and a stack trace; the next apply converges', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const apply = ['apply', '--emulator', '--yes'];

    const { code, stderr } = await vdcsync(apply, { cwd, env: buggy });

    expect(code).toBe(1);
    expect(stderr).toContain('Error: nobody caught it');
    const again = await vdcsync(apply, { cwd });
    expect(again.code).toBe(0);
    expect(networksIn(cwd)).toBe(1);
  });
});
