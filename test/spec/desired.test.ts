import { readFileSync } from 'node:fs';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { Settings } from '../../src/core/desired.ts';
import { editDistance, nearMiss } from '../../src/core/suggest.ts';
import { loadSpec } from '../../src/spec/load.ts';
import { settingsSchema } from '../../src/spec/schemas.ts';
import { read, spec } from './read.ts';

const at = (line: number, column: number) => ({ file: 'a.yaml', line, column });

describe('src/spec: desired', () => {
  test('has a default for every setting', () => {
    expect(read(spec()).settings).toEqual({
      approval: 'none',
      prune: false,
      max_deletions: 2,
      max_monthly_increase: null,
      exclusive: false,
      unconfirmed_servers: 'retry',
      unmanaged: 'ask',
      drift: 'correct',
      suspend: null,
    });
    expect(read(spec()).settings).toEqual(settingsSchema.parse({}));
    // The compiler checks that the type of the settings has every field of the schema, and no other one.
    expectTypeOf<keyof Settings>().toEqualTypeOf<keyof z.infer<typeof settingsSchema>>();
  });

  test('creates resources for a server and its parts', () => {
    const { resources, projectId } = read(
      spec(
        'networks: {n: {managed: false}}',
        'servers:',
        '  a:',
        '    id: 12',
        '    protect: true',
        '    public_ipv4: {new: true}',
        '    network_interfaces: [n]',
        '    firewall: {enabled: true}',
        '    backup: {max_age: 1h30m}',
        '    backup_policy: {keep: 3}',
      ),
    );
    const part = (suffix: string, kind: string, value: object, position: object) => ({
      ...{ key: `servers.a.${suffix}`, kind, value, position },
      ...{ parent: 'servers.a', managed: true, protect: true },
    });
    expect(projectId).toBe(4711);
    expect(resources.map(({ fields: _, ...resource }) => resource)).toEqual([
      {
        ...{ key: 'networks.n', named: false, kind: 'network', value: { name: 'n' }, position: at(3, 12) },
        ...{ managed: false, protect: false },
      },
      {
        ...{ key: 'servers.a', named: false, kind: 'server', position: at(5, 3), id: '12' },
        ...{ value: { name: 'a', public_ipv4: { new: true } }, managed: true, protect: true },
      },
      part('firewall', 'firewall', { enabled: true }, at(10, 15)),
      part('network_interfaces.n', 'network_interface', { network: 'networks.n' }, at(9, 26)),
      part('backup', 'backup', { max_age: '1h30m' }, at(11, 13)),
      part('backup_policy', 'backup_policy', { keep: 3 }, at(12, 20)),
      part('public_ipv4', 'ip', {}, at(8, 18)),
    ]);
  });

  test('keeps the order of rules and the fields that the API document does not show', () => {
    const rules = [{ direction: 'in', source: '10.0.0.0/8', odd: { deep: [1, null] } }, { action: 'drop' }];
    const { resources } = read(spec(`servers: {a: {id: 1, firewall: {rules: ${JSON.stringify(rules)}}}}`));
    expect(resources[1]?.value).toEqual({ rules });
  });

  test('has the position of each field of an entry, and of each part of a server', () => {
    const { resources } = read(
      spec('servers:', '  a:', '    id: 12', '    firewall:', '      enabled: true'),
    );
    expect(resources.map(({ key, fields }) => [key, fields])).toEqual([
      ['servers.a', { id: [5, 5], firewall: [6, 5], 'firewall.enabled': [7, 7] }],
      ['servers.a.firewall', { enabled: [7, 7] }],
    ]);
  });

  test('has one digest for one meaning', () => {
    const one = read(spec('ips: {a: {}, b: {server_type_id: 3}}', 'networks: {n: {cidr: 10.0.0.0/24}}'));
    const other = read(
      spec(
        '# the same',
        'networks:',
        '  "n":',
        '    cidr: "10.0.0.0/24"',
        'settings: {prune: false}',
        'ips: {b: {server_type_id: 0x3}, a: }',
      ),
    );
    expect(other.digest).toBe(one.digest);
    expect(read(spec('ips: {a: {}, b: {server_type_id: 4}}')).digest).not.toBe(one.digest);
  });

  test('combines several files into one spec, however the entries are divided', () => {
    const server = 'servers: {s: {server_type: 3, image: x, cores: 1, public_ipv4: {ip: a}}}';
    const whole = read(spec('settings: {prune: true}', 'ips: {a: {}}', server));
    const texts = [`version: 1\n${server}`, spec('ips: {a: {}}'), spec('settings: {prune: true}')];
    const parts = loadSpec(
      texts.map((text, at) => ({ file: `${at}.yaml`, text })),
      {},
    );
    expect(parts.digest).toBe(whole.digest);
    expect(parts.settings.prune).toBe(true);
  });

  test('has the source of the token, which is not part of the digest', () => {
    const withToken = (place: string) => read(`version: 1\nproject: {id: 1${place}}\n`);
    const [none, variable, file] = ['', ', token_env: SHOP', ', token_file: /run/shop'].map(withToken);
    expect(variable?.token).toMatchObject({ env: 'SHOP' });
    expect(file?.token).toMatchObject({ file: '/run/shop' });
    expect(none?.token).toBeUndefined();
    expect(variable?.digest).toBe(none?.digest);
  });

  test('has a different digest for each different entry', () => {
    const digests = ['{}', '{protect: true}', '{managed: false}', '{id: 5}', '{server_type_id: 5}'].map(
      (entry) => read(spec(`ips: {a: ${entry}}`)).digest,
    );
    expect(new Set(digests).size).toBe(digests.length);
  });

  test.each(['shop', 'gpu', 'full'])('reads examples/%s.yaml', (name) => {
    expect(read(readFileSync(`examples/${name}.yaml`, 'utf8')).projectId).toBe(4711);
  });

  test('suggests a similar name, and no other name', () => {
    expect(editDistance('netwroks', 'networks')).toBe(1);
    expect(editDistance('', 'abc')).toBe(3);
    expect(nearMiss('Cores', ['cores', 'name'])).toBe('cores');
    expect(nearMiss('colour', ['cores', 'name'])).toBeUndefined();
    expect(nearMiss('x'.repeat(100), ['x'.repeat(99)])).toBeUndefined();
  });
});
