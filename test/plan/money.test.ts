import { describe, expect, test } from 'vitest';
import { sumDecimals } from '../../src/core/decimal.ts';
import { topLevelKey } from '../../src/core/keys.ts';
import type { Diff } from '../../src/core/kind.ts';
import { priceChanges } from '../../src/plan/totals.ts';

describe('src/plan/totals.ts', () => {
  test.each([
    [[], '0.00'],
    [['0.10', '-0.2'], '-0.10'],
    [['0.1', '0.2'], '0.30'],
    [['9007199254740993', '0.001'], '9007199254740993.001'],
    [['-0.005', '0.005'], '0.000'],
    [['890', '-1690'], '-800.00'],
  ])('%j adds up to %s', (amounts, sum) => {
    expect(sumDecimals(amounts)).toBe(sum);
  });

  const changes: never[] = [];
  const subject = { key: topLevelKey('servers', 'web'), kind: 'server' } as const;
  const replace = { verdict: 'replace', changes, reason: '', allowed: true, order: 'delete_first' } as const;
  const changeOf = (diff: Diff) => priceChanges({ subject, diff }).map(({ change }) => change);

  test('a replacement costs the new price less the old price', () => {
    expect(changeOf({ verdict: replace, price: { known: '10' }, freed: { known: '12.50' } })).toEqual([
      { known: '-2.50' },
    ]);
  });

  test('a replacement with an unknown price has an unknown cost, and is never counted in part', () => {
    const diff = { verdict: replace, price: { known: '10' }, freed: { unknown: 'not shown' } };
    expect(changeOf(diff)).toEqual([{ unknown: 'not shown' }]);
  });

  test('a price has no effect without a purchase', () => {
    expect(changeOf({ verdict: { verdict: 'unchanged' }, price: { known: '10' } })).toEqual([]);
  });
});
