import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/platform/system.ts';
import { keepSystemdNotified } from '../../src/platform/systemd.ts';
import { folderWith } from '../cli/run.ts';

/** A folder with a program `systemd-notify` that writes down its messages. */
function programs(script = 'echo "$NOTIFY_SOCKET $@" >> "$PATH/messages"') {
  const folder = folderWith({ 'systemd-notify': `#!/bin/sh\n${script}\n` });
  chmodSync(join(folder, 'systemd-notify'), 0o755);
  const file = join(folder, 'messages');
  return {
    PATH: folder,
    messages: () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []),
  };
}

async function notified(environment: Record<string, string>, ms: number): Promise<unknown[]> {
  const failures: unknown[] = [];
  const end = new AbortController();
  const running = keepSystemdNotified(
    { environment, clock: systemClock, onFailure: (error) => failures.push(error) },
    end.signal,
  );
  await pause(ms);
  end.abort();
  await running;
  return failures;
}

describe('src/platform/systemd.ts', () => {
  test('notifies systemd of readiness, of the stop, and twice per watchdog interval', async () => {
    const { PATH, messages } = programs();
    const environment = {
      PATH,
      NOTIFY_SOCKET: '/run/n',
      WATCHDOG_USEC: '400000',
      WATCHDOG_PID: String(process.pid),
    };
    expect(await notified(environment, 1_500)).toEqual([]);
    expect(messages()[0]).toBe('/run/n READY=1');
    expect(messages().at(-1)).toBe('/run/n STOPPING=1');
    expect(messages().filter((each) => each === '/run/n WATCHDOG=1').length).toBeGreaterThan(1);
  });

  test('notifies systemd only of readiness and the stop without a watchdog of its own process', async () => {
    for (const watch of [{}, { WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' }]) {
      const { PATH, messages } = programs();
      await notified({ PATH, NOTIFY_SOCKET: '/run/n', ...watch }, 300);
      expect(messages().filter((each) => each.includes('WATCHDOG'))).toEqual([]);
      expect(messages()[0]).toBe('/run/n READY=1');
    }
  });

  test('runs nothing without systemd', async () => {
    const { PATH, messages } = programs();
    await notified({ PATH }, 100);
    expect(messages()).toEqual([]);
  });

  test('reports a missing or failing program once, and continues', async () => {
    const environment = { NOTIFY_SOCKET: '/run/n', WATCHDOG_USEC: '50000' };
    expect(await notified({ ...environment, PATH: folderWith() }, 300)).toHaveLength(1);
    expect(await notified({ ...environment, PATH: programs('exit 1').PATH }, 300)).toHaveLength(1);
  });
});
