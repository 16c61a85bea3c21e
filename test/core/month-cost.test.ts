import { describe, expect, test } from 'vitest';
import { monthLine } from '../../src/core/decimal.ts';

const month = {
  ...{ name: '2026-11', cost: '231.40', cost_at_least: '231.40', run_rate: '57.00', forecast: '260.00' },
  incomplete: [],
};

describe('src/core/decimal.ts', () => {
  test('a line has the cost so far, the run rate and the forecast', () => {
    expect(monthLine(month, 'EUR')).toEqual([
      'In November 2026: 231.40 EUR so far, run rate 57.00 a month, forecast 260.00',
    ]);
  });

  test('both bounds are shown, and the number of resources without a full cost', () => {
    const [line] = monthLine({ ...month, cost_at_least: '230.00', incomplete: ['ips.web'] as never }, null);
    expect(line).toMatch(/: 230\.00 to 231\.40 so far, .*; not fully known of 1 resource: see vdcsync bill$/);
  });

  test('without a price list, and where nothing has a cost, there is no line', () => {
    expect(monthLine(undefined, 'EUR')).toEqual([]);
    expect(monthLine({ ...month, cost: '0.00', run_rate: '0.00' }, 'EUR')).toEqual([]);
  });
});
