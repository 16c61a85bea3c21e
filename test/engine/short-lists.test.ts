import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { profiled } from '../support/profiled.ts';
import { applied, type Rig, rig, sliders } from '../support/rig.ts';

const base = 'settings: {exclusive: true}\nips:\n  a: {}\n  b: {}\n  c: {}\n';
const iso = (name: string) => `  ${name}: {url: "https://mirror.example.com/${name}.iso"}\n`;

const bought = ({ emulator }: Rig, kind: string) =>
  emulator.world.executions.filter((each) => each.kind === kind).length;

describe('src/engine: a truncated list proves nothing', () => {
  test.each([
    ['an address', `${base}  d: {}\n`, 'allocate_ip', 'ip', 4],
    [
      'a server',
      `${base}servers:\n  web: {${sliders}, public_ipv4: {new: true}}\n`,
      'create_server',
      'server',
      1,
    ],
    ['an ISO', `${base}isos:\n${iso('x')}${iso('y')}${iso('z')}`, 'add_iso', 'iso', 3],
  ])('%s behind a server error needs a decision, and is not bought again', async (_what, spec, path, kind, most) => {
    const played = await applied(base + (kind === 'iso' ? `isos:\n${iso('x')}${iso('y')}` : ''));
    played.emulator.setReadings({ pageSize: 1 });
    played.fail({ path, nth: 1 }, { do: 'answer', status: 500, effect: 'done' });

    const report = await played.apply(spec);

    expect(report.blocked).toMatchObject([
      { code: 'outcome_unknown', reason: expect.stringContaining('is incomplete') },
    ]);
    expect(bought(played, kind)).toBe(most);
  });

  test.each([
    ['with', 4, ', public_ipv4: {new: true}'],
    ['without', 3, ''],
  ])('a server that only a network counts, next to one %s an address, is not bought again after an error', async (_old, pageSize, address) => {
    const played = rig({ emulator: { readings: { pageSize, defaultNetworkCard: true } } });
    const one = `${base}servers:\n  old: {${sliders}${address}}\n`;
    await played.apply(one);
    const fault = faultRule({ path: 'create_server', nth: 1 }, { do: 'answer', status: 500, effect: 'done' });
    played.emulator.setFaults([fault]);

    const report = await played.apply(`${one}  web: {${sliders}, public_ipv4: {new: true}}\n`);

    expect(report.blocked).toMatchObject([{ key: 'servers.web', code: 'outcome_unknown' }]);
    expect(bought(played, 'server')).toBe(2);
  });

  describe('of servers', () => {
    const operations = 'operations: {list_servers: {}}';
    const cut = faultRule({ path: 'list_servers' }, { do: 'truncate_list', keep: 0 });
    const servers = (...names: string[]) =>
      `settings: {exclusive: true}\nnetworks:\n  a: {cidr: 10.1.0.0/24}\nservers:\n${names
        .map((name) => `  ${name}: {${sliders}, network_interfaces: [a]}\n`)
        .join('')}`;

    test('without an existing server, a server behind a server error is not bought again', async () => {
      const played = profiled({}, operations);
      await played.apply(servers('one'));
      const error = faultRule(
        { path: 'create_server', nth: 1 },
        { do: 'answer', status: 500, effect: 'done' },
      );
      played.emulator.setFaults([cut, error]);

      const report = await played.apply(servers('one', 'two'));

      expect(report.blocked.map(({ code }) => code)).toContain('outcome_unknown');
      expect(bought(played, 'server')).toBe(2);
    });
  });
});
