import { describe, expect, test } from 'vitest';
import { didYouMeanKey } from '../../src/core/suggest.ts';

describe('core: a key that was probably meant', () => {
  test.each([
    ['servers.db1', '; did you mean `servers.db-1`?'],
    ['servers.nope', ''],
    ['server.db-1', '; did you mean `servers.db-1`?'],
    ['networks.db-1', ''],
    ['db-1', '; did you mean `servers.db-1`?'],
  ])('%s', (key, hint) => {
    expect(didYouMeanKey(key, ['servers.db-1', 'networks.backend'])).toBe(hint);
  });
});
