import { describe, expect, test } from 'vitest';
import type { Desired } from '../../src/core/desired.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Operation, Plan } from '../../src/core/plan.ts';
import { documentedProfile } from '../../src/core/profile.ts';
import type { OperationResult } from '../../src/core/progress.ts';
import { whyEphemeral } from '../../src/daemon/ephemeral.ts';
import { isLoopback, parseListen } from '../../src/daemon/http/server.ts';
import { span } from '../../src/daemon/http/text.ts';
import type { ProjectSession } from '../../src/daemon/ports.ts';
import { KeyBackOff } from '../../src/daemon/scheduling/back-off.ts';
import { Refresh } from '../../src/daemon/scheduling/refresh.ts';
import { Wake } from '../../src/daemon/scheduling/wake.ts';
import { createReadCache } from '../../src/engine/observe.ts';
import { conditionOf } from '../../src/view/condition.ts';
import { load } from '../support/rig.ts';
import { virtualClock } from '../support/virtual-clock.ts';

const even = { next: () => 0 };
const minute = 60_000;

describe('src/daemon: the condition of a project', () => {
  test('is not converged while a write is in flight, even without operations in the plan', () => {
    const plan = (warnings: readonly object[]) =>
      ({ operations: [], blocked: [], warnings }) as unknown as Plan;
    const standing = { error: undefined, observing: false, pauses: [] };
    expect(conditionOf({ ...standing, plan: plan([]) })).toBe('converged');
    const open = plan([{ code: 'in_flight', key: 'isos.big', message: '' }]);
    expect(conditionOf({ ...standing, plan: open })).toBe('converging');
  });
});

describe('src/daemon: back-off by key', () => {
  const key = 'networks.backend' as ResourceKey;
  const spec = (cidr: string): Desired => load(`networks: {backend: {cidr: ${cidr}}}`);
  const failed: OperationResult = { key, verb: 'create', outcome: 'failed', durationMs: 1, code: 'absent' };
  const operation = { key } as Operation;

  test('waits 1, 2, 4 … minutes, at most six hours, and not after a success', () => {
    const backOff = new KeyBackOff(even);
    const waits = Array.from({ length: 12 }, () => {
      backOff.learn([failed], spec('10.0.0.0/24'), () => false, 0);
      return (backOff.next(0) ?? 0) / minute;
    });
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360]);
    expect(backOff.isPaused(operation, 0)).toBe(true);
    expect(backOff.isPaused(operation, 360 * minute)).toBe(false);
    backOff.learn([{ ...failed, outcome: 'done' }], spec('10.0.0.0/24'), () => false, 0);
    expect(backOff.list(0)).toEqual([]);
  });

  test('tries a changed entry at once, and a paused operation does not count as a failure', () => {
    const backOff = new KeyBackOff(even);
    backOff.learn([failed], spec('10.0.0.0/24'), () => true, 0);
    expect(backOff.list(0)).toEqual([]);
    backOff.learn([failed], spec('10.0.0.0/24'), () => false, 0);
    backOff.follow(spec('10.0.0.0/24'));
    expect(backOff.list(0)).toHaveLength(1);
    backOff.follow(spec('10.0.1.0/24'));
    expect(backOff.list(0)).toEqual([]);
  });
});

describe('src/daemon: reading servers in turn', () => {
  test('reads every server within n · r · pace, the oldest answer first, with a third of the budget', async () => {
    const clock = virtualClock();
    const asked: { at: number; id: number }[] = [];
    const read = {
      findFirewall: async (id: number) => {
        asked.push({ at: clock.now(), id });
        return { enabled: true, policy_in: changed.has(id) ? 'accept' : 'drop', policy_out: null, rules: [] };
      },
    };
    const changed = new Set<number>();
    const reads = () => read as never;
    const cache = createReadCache(reads(), clock, () => '');
    const servers = Array.from({ length: 100 }, (_, index) => index + 1);
    for (const id of servers) await cache.since(0).findFirewall(id as never);
    const seen: string[] = [];
    let paused = false;
    const refresh = new Refresh({
      session: { clock, reads, profile: documentedProfile } as unknown as ProjectSession,
      cache,
      intervalMs: 5 * minute,
      isPaused: () => paused,
      isWanted: () => true,
      onChange: (server) => seen.push(server),
      onFailure: () => {},
    });
    const stop = new AbortController();
    const running = refresh.run(stop.signal).catch(() => undefined);
    asked.length = 0;
    await clock.run(clock.sleep(11 * minute));
    expect(new Set(asked.map(({ id }) => id)).size).toBe(100);
    const inOneMinute = asked.filter(
      ({ at }) => at >= (asked[0]?.at ?? 0) && at < (asked[0]?.at ?? 0) + minute,
    );
    expect(inOneMinute.length).toBeLessThanOrEqual(20);
    changed.add(77);
    await clock.run(clock.sleep(6 * minute));
    expect(seen).toEqual(['77']);
    asked.length = 0;
    await clock.run(clock.sleep(12 * minute));
    const times = asked.filter(({ id }) => id === 77).length;
    expect(times).toBeGreaterThan(asked.filter(({ id }) => id === 50).length);
    paused = true;
    await clock.run(clock.sleep(minute));
    asked.length = 0;
    await clock.run(clock.sleep(12 * minute));
    expect(asked).toEqual([]);
    stop.abort();
    await running;
  });
});

describe('src/daemon: triggers', () => {
  test('combines many triggers into one reconciliation, and keeps a trigger that comes during a reconciliation', async () => {
    const clock = virtualClock();
    const wake = new Wake();
    const { signal } = new AbortController();
    wake.nudge('file');
    wake.nudge('webhook');
    wake.nudge('file');
    await clock.run(wake.sleep(clock, minute, signal));
    expect([clock.now() - clock.now(), wake.take()]).toEqual([0, ['file', 'webhook']]);
    expect(wake.pending()).toBe(false);
  });
});

describe('src/daemon: a state folder that a restart deletes', () => {
  const mounts = [
    '22 1 0:21 / / rw - overlay overlay rw',
    '30 22 0:30 / /tmp rw - tmpfs tmpfs rw',
    '31 22 8:1 /var/lib/kubelet/pods/1/volumes/kubernetes.io~empty-dir/state /state rw - ext4 /dev/sda1 rw',
    '32 22 8:2 /volumes/vdcsync /var/lib/vdcsync rw - ext4 /dev/sdb rw',
    '33 22 8:3 / /with\\040space rw - ext4 /dev/sdc rw',
  ].join('\n');

  test.each([
    ['/opt/state', /file system of the container/],
    ['/tmp/state', /memory/],
    ['/state', /emptyDir/],
  ])('refuses %s', (folder, why) => {
    expect(whyEphemeral(mounts, folder)).toMatch(why);
  });

  test.each(['/var/lib/vdcsync', '/var/lib/vdcsync/4711', '/with space/state'])('accepts %s', (folder) => {
    expect(whyEphemeral(mounts, folder)).toBeUndefined();
  });

  test('accepts each folder outside a container', () => {
    expect(whyEphemeral('22 1 8:1 / / rw - ext4 /dev/sda1 rw', '/srv/state')).toBeUndefined();
  });
});

describe('src/daemon: the listen address', () => {
  test.each([
    ['127.0.0.1:9464', { host: '127.0.0.1', port: 9464 }, true],
    ['[::1]:80', { host: '::1', port: 80 }, true],
    [':9464', { host: '::', port: 9464 }, false],
    ['9464', { host: '127.0.0.1', port: 9464 }, true],
    ['0.0.0.0:1', { host: '0.0.0.0', port: 1 }, false],
  ])('%s', (text, listen, loopback) => {
    expect(parseListen(text)).toEqual(listen);
    expect(isLoopback(listen)).toBe(loopback);
  });

  test.each(['', 'host', 'a:b:c', '1.2.3.4:70000', 'http://x:1'])('refuses %j', (text) => {
    expect(parseListen(text)).toBeUndefined();
  });

  test('shows a duration in at most two units', () => {
    expect([45_000, 180_000, 7_500_000, 270_000_000].map(span)).toEqual([
      '45 s',
      '3 min',
      '2 h 5 min',
      '3 d 3 h',
    ]);
  });
});
