import { describe, expect, test } from 'vitest';
import type { WriteRequest } from '../../../src/core/ports.ts';
import { inWriteSlot, roomToWrite, sendFenced } from '../../../src/engine/intents/begin.ts';
import { intentOf, stubRun } from './stub-run.ts';

const request = { name: 'create_network', path: {}, body: {} } as unknown as WriteRequest;

/** A run whose fence takes this long by each clock, and whose send looks again after a further pause. */
function sending({ monotonicMs = 0, wallMs = 0, pausedMs = 0, isOwned = true as boolean | 'unknown' } = {}) {
  const stop = new AbortController();
  const at = { monotonic: 100_000, wall: 900_000 };
  const sent: unknown[][] = [];
  const waits: unknown[][] = [];
  const { run } = stubRun({
    more: {
      stop: stop.signal,
      gate: { isWaited: () => true, readyNext: () => void waits.push(['ready']) },
      check: async () => {
        at.monotonic += monotonicMs;
        at.wall += wallMs;
        return 'token-1';
      },
      deps: {
        clock: { monotonic: () => at.monotonic, now: () => at.wall },
        store: isOwned === 'unknown' ? {} : { isOwned: () => isOwned },
        writes: {
          room: async (...given: unknown[]) => void waits.push(['room', ...given]),
          send: async (what: WriteRequest, key: string, token: string, isValid: () => boolean) => {
            at.monotonic += pausedMs;
            at.wall += pausedMs;
            sent.push([what, key, token]);
            return isValid() ? 'sent' : 'held';
          },
        },
      },
    },
  });
  return { run, sent, waits, stop };
}

describe('src/engine/intents/begin.ts', () => {
  test('a write is sent under the token that passed the fence, once there is room', async () => {
    const { run, sent, waits, stop } = sending();
    expect(await sendFenced(run, request, 'key-1')).toBe('sent');
    expect(sent).toEqual([[request, 'key-1', 'token-1']]);
    expect(waits).toEqual([['room', stop.signal, true]]);
  });

  test('once a write has room, the next writes prepare', async () => {
    const { run, waits, stop } = sending();
    await roomToWrite(run);
    expect(waits).toEqual([['room', stop.signal, true], ['ready']]);
  });

  test('nothing is sent once the run has to stop', async () => {
    const { run, sent, waits, stop } = sending();
    stop.abort();
    await expect(sendFenced(run, request, 'key-1')).rejects.toThrow();
    expect([sent, waits]).toEqual([[], []]);
  });

  const slow = { type: 'unsent', reason: 'the project fence took too long' };
  test.each([
    ['a fence of 30 s', { monotonicMs: 30_000, wallMs: 30_000 }, 'sent'],
    ['a longer fence', { monotonicMs: 30_001, wallMs: 30_001 }, slow],
    ['a machine that slept: only the wall clock continued', { wallMs: 30_001 }, slow],
    ['a clock set back', { wallMs: -30_001 }, slow],
    ['a wall clock that stopped', { monotonicMs: 30_001 }, slow],
    ['60 s until the first byte', { pausedMs: 60_000 }, 'sent'],
    ['more than 60 s until the first byte', { pausedMs: 60_001 }, 'held'],
    ['a state that another process owns by now', { isOwned: false }, 'held'],
    ['a store without an owner', { isOwned: 'unknown' as const }, 'sent'],
  ])('%s', async (_name, given, result) => {
    const { run, sent } = sending(given);
    expect(await sendFenced(run, request, 'key-1')).toEqual(result);
    expect(sent).toHaveLength(result === slow ? 0 : 1);
  });

  const firewall = { kind: 'firewall', desired: { managed: true, value: { enabled: true } } };
  test.each([
    ['a creation with a firewall', 'create', [firewall], true],
    ['a creation without a firewall', 'create', [], false],
    ['an update', 'update', [firewall], false],
  ] as const)('the turn of %s', async (_name, verb, children, exposes) => {
    const looks: string[] = [];
    const turns: Record<string, unknown>[] = [];
    const { run, calls } = stubRun({
      more: {
        stop: 'stop',
        world: { childrenOf: () => children },
        observe: (key: string) => {
          looks.push(key);
          return Promise.reject(new Error('reads fail'));
        },
        gate: {
          run: (write: () => Promise<string>, turn: Record<string, unknown> & { getReady: () => void }) => {
            turns.push(turn);
            turn.getReady();
            return write();
          },
        },
      },
    });
    const intent = intentOf({ key: 'servers.x', kind: 'server', verb });
    expect(await inWriteSlot(run, intent, async () => 'written')).toBe('written');
    expect(turns).toMatchObject([{ signal: 'stop', exposes }]);
    expect(turns[0]?.urgency).toBe(run.kindOf('server').timing.urgency);
    expect(looks).toEqual(['servers.x']);
    expect(calls).toEqual([['report', intent, 'queued', 'for its turn']]);
  });
});
