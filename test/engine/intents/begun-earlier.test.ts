import { describe, expect, test } from 'vitest';
import { digestOf } from '../../../src/core/json.ts';
import { type ResourceKey, takeApart } from '../../../src/core/keys.ts';
import type { Intent } from '../../../src/core/state.ts';
import { begunEarlier } from '../../../src/engine/intents/revalidate.ts';
import { intentOf } from './stub-run.ts';

const web = 'servers.web';
const wall = 'servers.web.firewall';
const address = 'servers.web.public_ipv4';
const written = (key: string, verb: string, more: object = {}) =>
  intentOf({ key, verb, phase: 'closed', outcome: 'done', createdAt: 1, basis: 'sha256:entry', ...more });
const left = { basis: digestOf(null) };
const hours = [{ from: '08:00', to: '09:00' }];

/** Whether the operation of the key completes an earlier write. */
async function isBegun(
  key: string,
  past: readonly Intent[],
  { isThere = false, bound = false, declared = true, windows = hours as readonly object[] | null } = {},
): Promise<boolean> {
  const limits: number[] = [];
  const store = {
    intents: async (of: { key: string; limit: number }) => {
      limits.push(of.limit);
      return past.filter((each) => each.key === of.key);
    },
  };
  const subject = {
    ...takeApart(key as ResourceKey),
    ...(declared ? { desired: { managed: true, value: {} } } : {}),
    ...(bound ? { binding: { id: '1' } } : {}),
  };
  const world = { settings: { windows }, isThere: () => isThere };
  const begun = await begunEarlier({ deps: { store } } as never, world as never, [subject] as never);
  expect(limits.every((each) => each >= 10)).toBe(true);
  expect([...begun].every((each) => each === key)).toBe(true);
  return begun.size === 1;
}

describe('src/engine/intents/revalidate.ts: the completion of an earlier write', () => {
  const gone = [written(web, 'delete')];
  const made = (parts?: readonly string[]) =>
    written(web, 'create', { createdAt: 5, ...(parts && { parts }) });
  test.each<[string, boolean, string, readonly Intent[], object?]>([
    ['the creation after the deletion of a replacement', true, web, gone],
    ['an entry that has left', false, web, gone, { declared: false }],
    ['an entry that returns after its deletion', false, web, [written(web, 'delete', left)]],
    ['a deletion that failed', false, web, [written(web, 'delete', { outcome: 'failed' })]],
    ['the address of a deleted server', true, address, [written(web, 'delete', left)], { bound: true }],
    ['a part that the entry had when the server was created', true, wall, [made([wall])]],
    ['a part of a server of an earlier release', false, wall, [made()]],
    ['a part whose server was not created', false, wall, [written(web, 'update', { parts: [wall] })]],
    ['a part that was written since', false, wall, [made([wall]), written(wall, 'create', { createdAt: 6 })]],
    ['a part that was written before', true, wall, [made([wall]), written(wall, 'create', { createdAt: 5 })]],
    ['a part that exists', false, wall, [made([wall])], { bound: true }],
  ])('%s: %s', async (_name, is, key, past, given) => {
    expect(await isBegun(key, past, given)).toBe(is);
  });
});
