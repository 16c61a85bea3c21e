import { describe, expect, test } from 'vitest';
import { errorsIn, read, spec } from './read.ts';

describe('src/spec: yaml', () => {
  test('ignores a byte order mark and Windows line ends', () => {
    expect(read(`\uFEFF${spec('ips: {a: {}}').replaceAll('\n', '\r\n')}`).resources).toHaveLength(1);
    expect(errorsIn('\uFEFFversion: 2\r\nproject: {id: x}\r\n')).toEqual([
      'a.yaml:1:10: 2 cannot be `version`: write `version: 1`',
      'a.yaml:2:15: `id` must be a whole number, not "x"',
    ]);
  });

  test('reads names as text, also if YAML has a number', () => {
    expect(read(spec('networks: {1: {managed: false}, true: {managed: false}}')).resources).toMatchObject([
      { key: 'networks.1', value: { name: '1' } },
      { key: 'networks.true', value: { name: 'true' } },
    ]);
  });

  test('accepts a field without a value if no value is required', () => {
    expect(read(spec('settings:', 'networks:', 'ips:', '  web:')).resources).toMatchObject([
      { key: 'ips.web', value: {} },
    ]);
  });

  test('a message is one short line, with any name in it', () => {
    const [turned = ''] = errorsIn(spec('"a\u202eb\u200b": 1'));
    expect(turned).toContain('unknown field `a\\u202eb\\u200b`');
    expect(errorsIn(spec(`${'x'.repeat(1020)}: 1`))[0]?.length).toBeLessThan(1100);
  });

  const bombs: readonly [string, string][] = [
    ['closing brackets', ']'.repeat(1_000_000)],
    ['lists in lists', '- '.repeat(500_000)],
    ['complex keys', '? '.repeat(500_000)],
    ['tags', '!a '.repeat(300_000)],
    ['aliases', '*a '.repeat(300_000)],
    ['a map of 60,000 names', Array.from({ length: 60_000 }, (_, at) => `k${at}:`).join('\n')],
    [
      '15,000 overlapping networks',
      spec('networks:', ...Array.from({ length: 15_000 }, (_, at) => `  n${at}: {cidr: 10.0.0.0/24}`)),
    ],
    [
      '20,000 references to missing entries',
      spec(
        'networks:',
        ...Array.from({ length: 10_000 }, (_, at) => `  n${at}: {managed: false}`),
        'servers:',
        `  a: {id: 1, network_interfaces: [${Array.from({ length: 20_000 }, (_, at) => `m${at}`).join(', ')}]}`,
      ),
    ],
  ];

  test.each(bombs)('reports %s within seconds', { timeout: 15_000 }, (_what, text) => {
    expect(errorsIn(text).length).toBeGreaterThan(0);
  });

  test('reports a limited number of errors for a file with many errors', () => {
    expect(errorsIn('*a '.repeat(1000)).length).toBeLessThanOrEqual(40);
  });
});
