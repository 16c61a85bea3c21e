import { describe, expect, test } from 'vitest';
import { cronProblem, isTimeZone, openingFor } from '../../src/core/calendar.ts';
import { type ChangeWindow, endsIn, withoutExpired } from '../../src/core/desired.ts';
import { load } from '../support/rig.ts';

const window = (cron: string, duration = '1h', timezone = 'UTC', allow = ['delete']) =>
  ({ cron, duration, timezone, allow }) as ChangeWindow;
/** The opening for a deletion, with the moments as RFC 3339 texts. */
function opening(windows: readonly ChangeWindow[], at: string): string {
  const found = openingFor('delete', windows, Date.parse(at));
  return typeof found === 'number' ? new Date(found).toISOString().replace('.000', '') : found;
}
const berlin = (cron: string, duration = '1h') => window(cron, duration, 'Europe/Berlin');
const newYork = (cron: string, duration = '1h') => window(cron, duration, 'America/New_York');

describe('src/core/calendar.ts: windows', () => {
  test.each([
    ['without windows, everything is allowed', [], '2028-01-01T00:00:00Z', 'open'],
    ['a window opens at its start', [window('0 2 * * *')], '2028-01-01T02:00:00Z', 'open'],
    ['a window not yet open', [window('0 2 * * *')], '2028-01-01T01:59:59.999Z', '2028-01-01T02:00:00Z'],
    ['a window is open in its last moment', [window('0 2 * * *')], '2028-01-01T02:59:59.999Z', 'open'],
    ['a window is closed at its end', [window('0 2 * * *')], '2028-01-01T03:00:00Z', '2028-01-02T02:00:00Z'],
    ['a window that spans midnight', [window('30 23 * * 1', '2h')], '2028-01-04T01:29:59Z', 'open'],
    ['a window in its time zone', [berlin('0 2 * * *')], '2028-07-01T00:30:00Z', 'open'],
    ['the same window in winter', [berlin('0 2 * * *')], '2028-01-01T00:30:00Z', '2028-01-01T01:00:00Z'],
    ['a skipped time opens later', [berlin('30 2 * * *')], '2028-03-26T00:59:59Z', '2028-03-26T01:00:00Z'],
    ['a window that opens later keeps its duration', [berlin('30 2 * * *')], '2028-03-26T01:59:59Z', 'open'],
    ['a skipped time in New York', [newYork('30 2 * * *')], '2028-03-12T06:59:59Z', '2028-03-12T07:00:00Z'],
    ['a repeated time opens first', [berlin('30 2 * * *')], '2028-10-29T00:29:59Z', '2028-10-29T00:30:00Z'],
    ['a repeated time opens once', [berlin('30 2 * * *')], '2028-10-29T01:30:00Z', '2028-10-30T01:30:00Z'],
    ['a repeated time in New York', [newYork('30 1 * * *')], '2028-11-05T06:30:00Z', '2028-11-06T06:30:00Z'],
    ['a clock change keeps the window length', [berlin('0 1 * * 0', '4h')], '2028-03-26T03:59:59Z', 'open'],
    ['the window then closes', [berlin('0 1 * * 0', '4h')], '2028-03-26T04:00:00Z', '2028-04-01T23:00:00Z'],
    ['a leap day', [window('0 0 29 2 *')], '2024-03-01T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['two windows, one open', [window('0 2 * * *'), window('0 5 * * *')], '2028-01-01T05:30:00Z', 'open'],
    [
      'two windows, the next one',
      [window('0 2 * * *'), window('0 5 * * *')],
      '2028-01-01T04:00:00Z',
      '2028-01-01T05:00:00Z',
    ],
    ['windows that overlap', [window('0 * * * *', '90m')], '2028-01-01T05:15:00Z', 'open'],
    [
      'an open window that allows something else',
      [window('0 2 * * *', '1h', 'UTC', ['create'])],
      '2028-01-01T02:30:00Z',
      'never',
    ],
    ['a cron expression that matches no day', [window('0 0 30 2 *')], '2028-01-01T00:00:00Z', 'never'],
  ] as const)('%s', (_name, windows, at, expected) => {
    expect(opening(windows, at)).toBe(expected);
  });

  test.each([
    ['0 2 * * 6', undefined],
    ['*/15 1-3 1,15 * MON-FRI', undefined],
    ['0 2 * *', 'five fields'],
    ['0 0 2 * * 6', 'five fields'],
    ['0 ? * * *', 'five fields'],
    ['2028-01-01T00:00:00', 'five fields'],
    ['0 25 * * *', 'valid cron expression'],
    ['0 0 31 4 *', 'no day matches'],
  ])('the cron expression %s: %s', (cron, expected) => {
    if (expected === undefined) expect(cronProblem(cron)).toBeUndefined();
    else expect(cronProblem(cron)).toContain(expected);
  });

  test('a time zone is an IANA name', () => {
    const names = ['UTC', 'Europe/Berlin', 'Europe/Berln', '+01:00', ''];
    expect(names.filter(isTimeZone)).toEqual(['UTC', 'Europe/Berlin']);
  });
});

describe('src/core/desired.ts: expiry', () => {
  const file = (project = '', entry = '') => `version: 1
project: {id: 4711${project}}
ips: {a: {${entry}}, b: {}}
`;
  const own = load(file('', 'protect: true, expires: 2028-02-29T00:00:00Z'));
  const at = Date.parse('2028-02-29T00:00:00Z');
  const keys = (spec: typeof own) => spec.resources.map(({ key }) => key);

  test('an entry is left out from its expiry on, and the digest changes', () => {
    expect(withoutExpired(own, at - 1)).toBe(own);
    const left = withoutExpired(own, at);
    expect(keys(left)).toEqual(['ips.b']);
    expect(left.expired).toEqual([
      { key: 'ips.a', kind: 'ip', protect: true, keep: false, at: '2028-02-29T00:00:00Z', of: 'entry' },
    ]);
    expect(left.digest).not.toBe(own.digest);
  });

  test('an entry that is not managed protects the resource that it names, also after its end', () => {
    const spec = load(
      `networks: {n: {managed: false, name: x, expires: 2028-02-29T00:00:00Z}}\nips: {v: {id: 51, managed: false, moved: {from: ips.w}, expires: 2028-02-29T00:00:00Z}}\n`,
    );
    expect(withoutExpired(spec, at).expired).toMatchObject([
      { key: 'networks.n', protect: true, name: 'x' },
      { key: 'ips.v', protect: true, id: '51', moved: 'ips.w' },
    ]);
  });

  test('a project that expires leaves out every entry, and the earlier moment of the two counts', () => {
    const all = load(file(', expires: 2028-02-01T00:00:00Z', 'expires: 2028-01-01T00:00:00Z'));
    expect(keys(withoutExpired(all, Date.parse('2028-01-15T00:00:00Z')))).toEqual(['ips.b']);
    const left = withoutExpired(all, Date.parse('2028-02-01T00:00:00Z'));
    expect(keys(left)).toEqual([]);
    expect(left.expired?.map(({ of }) => of)).toEqual(['entry', 'project']);
  });

  test('the end of a server is the end of the resources inside it', () => {
    const server = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
    const spec = load(
      `servers: {web: {${server}, public_ipv4: {new: true}, firewall: {enabled: true}, expires: 2028-02-29T00:00:00Z}}`,
    );
    expect(spec.resources).toHaveLength(3);
    expect(keys(withoutExpired(spec, at))).toEqual([]);
  });

  test('a suspension and each entry have an end', () => {
    const suspended = load(
      file(', expires: 2028-03-01T00:00:00Z').replace(
        'ips:',
        'settings: {suspend: {reason: r, until: 2028-01-01T00:00:00Z}}\nips:',
      ),
    );
    expect(endsIn(own)).toEqual([at]);
    expect(endsIn(suspended)).toEqual(['2028-03-01T00:00:00Z', '2028-01-01T00:00:00Z'].map(Date.parse));
    expect(endsIn(undefined)).toEqual([]);
  });
});
