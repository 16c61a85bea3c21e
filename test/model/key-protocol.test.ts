import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drawn } from '../support/drawn.ts';
import { lacks } from '../support/programs.ts';
import { ending, limits, type Mistake, mistakes, sound } from './configurations.ts';
import { type Verdict, Verifier } from './verifier.ts';

const skipped = ['spin', 'gcc'].some(lacks);

const found: Readonly<Record<Mistake['breaks'], RegExp>> = {
  'one purchase': /created<=1/,
  'a record before each send': /recorded/,
  'no needless question': /stored/,
  'every run ends': /non-progress cycle/,
};

describe.skipIf(skipped)('test/model/key-protocol.pml', () => {
  let verifier: Verifier;
  beforeAll(async () => {
    verifier = await Verifier.compile();
  });
  afterAll(() => verifier?.dispose());

  test.concurrent.each(drawn(sound))('buys once at most: $name', async ({ settings }) => {
    expect((await verifier.verify(settings)).error).toBeUndefined();
  });

  test.concurrent.each(drawn(ending))('every run ends: $name', async ({ settings }) => {
    expect((await verifier.verify(settings, 'no cycles')).error).toBeUndefined();
  });

  test.concurrent.each(drawn(limits))('shows the limit: $name', async ({ settings }) => {
    const verdict = await verifier.verify(settings);
    expect(verdict).toMatchObject({ error: expect.stringMatching(found['one purchase']), trail: true });
  });

  test.concurrent.each(drawn(mistakes))('catches the mistake: $name', async (planted) => {
    const { mistake, settings, breaks } = planted;
    const property = breaks === 'every run ends' ? 'no cycles' : 'safety';
    const kept: Verdict = await verifier.verify(settings, property);
    expect(kept.error).toBeUndefined();
    const broken = await verifier.verify({ ...settings, [mistake]: 1 }, property);
    expect(broken).toMatchObject({ error: expect.stringMatching(found[breaks]), trail: true });
  });
});
