import { describe, expect, test } from 'vitest';
import { loadSpec } from '../../src/spec/load.ts';
import { read, spec } from './read.ts';

const defaults = [
  'defaults:',
  '  servers: {server_type: sliders-1, image: debian-13, cores: 2, memory_mb: 2048, disk_gb: 20, iso: rescue}',
  'isos: {rescue: {url: "https://example.com/r.iso"}}',
];
const serverIn = (text: string, name: string) =>
  read(text).resources.find(({ key }) => key === `servers.${name}`)?.value;
const keysIn = (text: string) => read(text).resources.map(({ key }) => key);

describe('src/spec/layers.ts', () => {
  test('a server has the defaults for missing fields, and its own fields take precedence', () => {
    const text = spec(...defaults, 'servers: {a: {}, b: {cores: 4}, c: }');
    expect(serverIn(text, 'a')).toMatchObject({ image: 'debian-13', cores: 2 });
    expect(serverIn(text, 'b')).toMatchObject({ cores: 4, memory_mb: 2048 });
    expect(serverIn(text, 'c')).toMatchObject({ cores: 2 });
  });

  test('the same servers without defaults give the same digest', () => {
    const one = 'server_type: 3, image: x, cores: 1, memory_mb: 1024, disk_gb: 20';
    expect(read(spec(`defaults: {servers: {${one}}}`, 'servers: {a: {}}')).digest).toBe(
      read(spec(`servers: {a: {${one}}}`)).digest,
    );
  });

  test('`null` omits a default, except for a field with `null` as a valid value', () => {
    const sized =
      'servers: {a: {server_type: plans-1, plan_id: 51, cores: null, memory_mb: null, disk_gb: null}}';
    expect(serverIn(spec(...defaults, sized), 'a')).toMatchObject({ plan_id: 51, image: 'debian-13' });
    const drive = read(spec(...defaults, 'servers: {a: {iso: null}}')).resources.find(
      ({ key }) => key === 'servers.a.iso',
    );
    expect(drive?.value).toEqual({ iso: null });
  });

  test('a default is used as a whole, not merged', () => {
    const text = spec(
      'defaults: {servers: {server_type: 3, image: x, plan_id: 1, public_ipv4: {new: true}}}',
      'ips: {web: {}}',
      'servers: {a: {public_ipv4: {ip: web}}}',
    );
    expect(serverIn(text, 'a')).toMatchObject({ public_ipv4: { ip: 'web' } });
  });

  test('the parts of servers have defaults too, except for an unmanaged server', () => {
    const text = spec(
      'defaults: {servers: {server_type: 3, image: x, plan_id: 1, backup: {max_age: 24h}}}',
      'servers: {a: {}, b: {managed: false}}',
    );
    expect(keysIn(text)).toContain('servers.a.backup');
    expect(keysIn(text)).not.toContain('servers.b.backup');
  });

  test('defaults apply to all files, and a field from a default has its position in the file of the default', () => {
    const common = {
      file: 'c.yaml',
      text: 'version: 1\ndefaults: {servers: {server_type: 3, image: x, plan_id: 1}}\n',
    };
    const { resources } = loadSpec([{ file: 'o.yaml', text: spec('servers: {a: {}}') }, common], {});
    expect(resources.map(({ fields }) => fields?.image)).toEqual([[2, 38, 'c.yaml']]);
  });
});
