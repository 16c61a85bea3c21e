import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drawn } from '../support/drawn.ts';
import { lacks } from '../support/programs.ts';
import { jobs } from './configurations.ts';
import { Verifier } from './verifier.ts';

const skipped = ['spin', 'gcc'].some(lacks);

describe.skipIf(skipped)('test/model/key-protocol.pml', () => {
  let verifier: Verifier;
  beforeAll(async () => {
    verifier = await Verifier.compile();
  });
  afterAll(() => verifier?.dispose());

  const groups = Object.entries(Object.groupBy(jobs, ({ group }) => group));
  describe.each(groups)('%s', (_group, all = []) => {
    test.concurrent.each(drawn(all))('$name', async ({ settings, property, finds }) => {
      const verdict = await verifier.verify(settings, property);
      if (finds === undefined) expect(verdict.error).toBeUndefined();
      else expect(verdict).toMatchObject({ error: expect.stringMatching(finds), trail: true });
    });
  });
});
