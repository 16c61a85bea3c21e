import { describe, expect, test } from 'vitest';
import type { WriteResult } from '../../../src/core/ports.ts';
import { calibrated, isUnaskable, observeKeys, spareKey } from '../../../src/engine/intents/probe-key.ts';
import { answer, intentOf, runWith, stubRun } from './stub-run.ts';

const named = answer(422, { code: 'invalid', invalidParams: [{ name: 'vdcsync_probe', reason: '' }] });
const again = { ...named, replayed: true };
const reused = answer(409, { code: 'reused' });
const lost: WriteResult = { type: 'ambiguous', reason: 'reset' };
const stores = { storesRefusals: true, reuse: { status: 409, code: 'reused' } };
const deviates = (deviation: string) => ({ storesRefusals: false, deviation });
const good = [named, again, reused, again];
/** The answers of an API that stores refusals, with another answer to one of the four requests. */
const otherAt = (nth: number, other: WriteResult) => [...good.slice(0, nth - 1), other];

async function observe(answers: readonly WriteResult[]) {
  const left = [...answers];
  const asked: string[] = [];
  let at = 0;
  const behaviour = await observeKeys(
    () => at++ / 64,
    async (key, probe) => {
      asked.push(`${key.slice(14, 17)} ${probe}`);
      return left.shift() ?? lost;
    },
  );
  return { behaviour, asked };
}

describe('src/engine/intents/probe-key.ts', () => {
  test.each([
    ['stores no refusals', { create_network: { storesRefusals: false } }, true],
    ['was never observed', undefined, false],
  ])('a key cannot be asked if the API %s: %#', async (_name, note, is) => {
    const run = { deps: { store: { note: async () => note } } } as never;
    expect(await isUnaskable(run, { request: { name: 'create_network' } } as never)).toBe(is);
  });

  test.each<[string, readonly WriteResult[], object]>([
    ['no field in the answer', [...otherAt(1, answer(422)), ...otherAt(1, answer(422))], deviates('unnamed')],
    ['another body that is accepted', otherAt(3, answer(299)), deviates('not_refused')],
    ['another body, first key', otherAt(4, { ...answer(400, { code: 'odd' }), replayed: true }), stores],
    ['an acceptance', [answer(202)], deviates('unnamed')],
  ])('%s', async (_name, answers, expected) => {
    const { behaviour, asked } = await observe(answers);
    expect(behaviour).toMatchObject(expected);
    expect(asked).toHaveLength(answers.length);
  });

  test('each observation has a key of its own, and sends another body once', async () => {
    const { asked } = await observe([...otherAt(4, named), ...good]);
    const first = ['000', '000', '000', '000'];
    expect(asked.map((each) => each.split(' ')[1]).join()).toBe('1,1,2,1,1,1,2,1');
    expect(asked.map((each) => each.split(' ')[0])).toEqual([...first, ...['888', '888', '888', '888']]);
    expect(spareKey(() => 0.99)).toBe(`vdcsync-spare-${'f'.repeat(32)}`);
  });

  test.each([
    [answer(400), 'unnamed'],
    [answer(422), 'unnamed'],
    // The spare key is unused until then, so the conflict is about the project.
    [answer(409), undefined],
    [answer(404, { replayed: true }), 'unnamed'],
    [answer(409, { retryAfterMs: 1 }), undefined],
    [answer(404), undefined],
    [answer(300), undefined],
    [answer(422, { retryAfterMs: 1 }), 'unnamed'],
    [answer(429, { retryAfterMs: 1 }), undefined],
  ])('%j is about the request itself: %s', async (first, deviation) => {
    const { behaviour } = await observe([first, first]);
    expect(behaviour).toEqual(deviation === undefined ? first : deviates(deviation));
  });

  const calibrate = async (note: unknown) => {
    const notes: unknown[] = [];
    const sent: unknown[] = [];
    const left = [...good];
    const made = stubRun();
    const store = { note: async (name: string) => (name === 'key_behaviour' ? note : undefined) };
    const run = runWith(made.run, {
      deps: {
        store: { ...store, putNote: async (...given: unknown[]) => void notes.push(given) },
        writes: {
          send: async ({ name, probe }: { name: string; probe: number }, key: string) => {
            sent.push([name, probe, key.length]);
            return left.shift() ?? lost;
          },
        },
      },
    });
    return { behaviour: await calibrated(run, intentOf({})), notes, sent, run };
  };

  test.each<[unknown]>([
    [null],
    [{ create_network: { ...stores, reuse: { status: 409 } } }],
    [{ create_network: { ...stores, reuse: { code: 'reused' } } }],
  ])('an operation is calibrated if the note is %j', async (note) => {
    const { behaviour, notes, sent } = await calibrate(note);
    expect(behaviour).toEqual(stores);
    expect(sent).toEqual([1, 1, 2, 1].map((probe) => ['create_network', probe, 46]));
    expect(notes).toEqual([['key_behaviour', { create_network: stores }]]);
  });

  test('a known behaviour is kept, next to those of other operations', async () => {
    for (const known of [stores, deviates('unnamed')]) {
      const { behaviour, sent } = await calibrate({ create_network: known });
      expect([behaviour, sent]).toEqual([known, []]);
    }
    const others = { create_server: deviates('replaced') };
    const { notes } = await calibrate({ ...others, allocate_ip: 5 });
    expect(notes).toEqual([['key_behaviour', { ...others, create_network: stores }]]);
  });

  test('an inconclusive answer is not kept', async () => {
    const { run, notes } = await calibrate({ create_network: stores });
    const deps = { store: { note: async () => undefined }, writes: { send: async () => lost } };
    expect(await calibrated(runWith(run, { deps }), intentOf({}))).toBe(lost);
    expect(notes).toEqual([]);
  });
});
