import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { waitingRollout } from '../../src/cli/commands/approve-commit.ts';
import { secretOf } from '../../src/cli/settings/secret.ts';
import type { Io } from '../../src/cli/terminal.ts';
import type { Rollout } from '../../src/daemon/fleet/rollout.ts';
import { folderWith } from './run.ts';

const minute = 60_000;

describe('src/cli/settings/secret.ts', () => {
  test('a secret stays valid for ten minutes after its file disappears, with a log message', () => {
    const folder = folderWith({ secret: 'first-secret' });
    const file = join(folder, 'secret');
    const log: string[] = [];
    const stderr = { write: (line: string) => log.push(line) };
    const io = { cwd: folder, env: { HOOK_FILE: 'secret' }, stderr } as unknown as Io;
    let now = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    onTestFinished(() => clock.mockRestore());
    const secret = secretOf('HOOK', io);
    rmSync(file);
    expect(secret?.()).toBe('first-secret');
    expect(log.join('')).toContain('HOOK_FILE');
    now = 9 * minute;
    expect(secret?.()).toBe('first-secret');
    now = 10 * minute;
    expect(secret?.()).toMatch(/^(?!first-secret)[0-9a-f]{64}$/);
    expect(log).toHaveLength(2);
    writeFileSync(file, 'second-secret');
    expect(secret?.()).toBe('second-secret');
    expect(log.join('')).not.toContain('-secret');
  });
});

describe('src/cli/commands/approve-commit.ts', () => {
  const rollouts = ['aaaaaaaaaaaa11', 'aaaaaaaaaaaa22', 'bbbbbbbbbbbb33'].map(
    (change, id) => ({ id: String(id), change, phase: 'waiting' }) as unknown as Rollout,
  );

  test('a prefix identifies a commit only if the prefix is long and unique', () => {
    expect(waitingRollout(rollouts, 'bbbbbbbbbbbb').change).toBe('bbbbbbbbbbbb33');
    expect(waitingRollout(rollouts, 'aaaaaaaaaaaa2').change).toBe('aaaaaaaaaaaa22');
    for (const change of ['bbbbbbb', 'bbbbbbbbbbb', 'aaaaaaaaaaaa', ''])
      expect(() => waitingRollout(rollouts, change)).toThrow(/at least 12/);
  });
});
