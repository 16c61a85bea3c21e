import { describe, expect, test } from 'vitest';
import { digestOf } from '../../../src/core/json.ts';
import { type ResourceKey, takeApart } from '../../../src/core/keys.ts';
import type { Intent } from '../../../src/core/state.ts';
import { begunEarlier } from '../../../src/engine/intents/revalidate.ts';
import { asRun, intentOf, stubRun } from './stub-run.ts';

const web = 'servers.web';
const wall = 'servers.web.firewall';
const address = 'servers.web.public_ipv4';
const written = (key: string, verb: string, more: object = {}) =>
  intentOf({ key, verb, phase: 'closed', outcome: 'done', createdAt: 1, basis: 'sha256:entry', ...more });
const left = { basis: digestOf(null) };

/** Whether the operation of the key completes an earlier write. */
async function isBegun(
  key: string,
  past: readonly Intent[],
  { isThere = false, bound = false, declared = true, ageMs = 0 } = {},
): Promise<boolean | undefined> {
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
  const { run } = stubRun({ ageMs });
  const asked = { ...run, deps: { ...run.deps, store } };
  const begun = await begunEarlier(asRun(asked), { isThere: () => isThere } as never, [subject] as never);
  expect(limits.every((each) => each >= 10)).toBe(true);
  expect([...begun.keys()].every((each) => each === key)).toBe(true);
  return begun.get(key as ResourceKey);
}

describe('src/engine/intents/revalidate.ts: the completion of an earlier write', () => {
  const gone = [written(web, 'delete')];
  const made = (parts?: readonly string[]) =>
    written(web, 'create', { createdAt: 5, ...(parts && { parts }) });
  const refusedOnce = [written(web, 'create', { outcome: 'refused' }), ...gone];
  const wallAt = (createdAt: number) => [made([wall]), written(wall, 'create', { createdAt })];
  test.each<[string, boolean | undefined, string, readonly Intent[], object?]>([
    ['the creation after the deletion of a replacement', true, web, gone],
    ['the creation after a deletion that the API has forgotten', false, web, gone, { ageMs: 24 * 3_600_000 }],
    ['the creation after a refused one', true, web, refusedOnce],
    ['a creation after that of the replacement', undefined, web, [made(), ...gone]],
    ['an entry that has left', undefined, web, gone, { declared: false }],
    ['an entry that returns after its deletion', undefined, web, [written(web, 'delete', left)]],
    ['a deletion that failed', undefined, web, [written(web, 'delete', { outcome: 'failed' })]],
    ['the address of a deleted server', true, address, [written(web, 'delete', left)], { bound: true }],
    ['a part that the entry had when the server was created', false, wall, [made([wall])]],
    ['a part of a server of an earlier release', undefined, wall, [made()]],
    ['a part whose server was not created', undefined, wall, [written(web, 'update', { parts: [wall] })]],
    ['a part that was written since', undefined, wall, wallAt(6)],
    ['a part that was written before', false, wall, wallAt(5)],
    ['a part that exists', undefined, wall, [made([wall])], { bound: true }],
  ])('%s: %s', async (_name, is, key, past, given) => {
    expect(await isBegun(key, past, given)).toBe(is);
  });
});
