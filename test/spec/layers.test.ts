import { describe, expect, test } from 'vitest';
import { loadSpec } from '../../src/spec/load.ts';
import { spec } from './read.ts';

const base = {
  file: 'base.yaml',
  text: spec(
    'settings: {prune: true}',
    'networks: {backend: {cidr: 10.20.0.0/24}}',
    'servers:',
    '  web: {server_type: 3, image: x, plan_id: 1, network_interfaces: [backend]}',
    '  old: {server_type: 3, image: x, plan_id: 1}',
  ),
};
const overlay = (text: string, file = 'prod.yaml') => ({ file, text, overlay: true });
const load = (...overlays: readonly string[]) =>
  loadSpec([base, ...overlays.map((text, at) => overlay(text, `o${at}.yaml`))], {});
const wantedOf = (key: string, ...overlays: readonly string[]) =>
  load(...overlays).resources.find((each) => each.key === key)?.value;

describe('src/spec/layers.ts', () => {
  test('an overlay merges maps, removes with null, and replaces all other values', () => {
    const desired = load(
      'project: {id: 4712}\nservers: {web: {plan_id: 7, network_interfaces: []}, old: null, new: {server_type: 3, image: x, plan_id: 1}}\n',
    );
    expect(desired.projectId).toBe(4712);
    expect(desired.settings.prune).toBe(true);
    expect(desired.resources.map(({ key }) => key)).toEqual([
      'networks.backend',
      'servers.web',
      'servers.new',
    ]);
    expect(wantedOf('servers.web', 'servers: {web: {plan_id: 7}}')).toMatchObject({ image: 'x', plan_id: 7 });
  });

  test('an overlay equals the spec with the same change', () => {
    const written = { ...base, text: base.text.replace('10.20.0.0/24', '10.30.0.0/24') };
    expect(load('networks: {backend: {cidr: 10.30.0.0/24}}').digest).toBe(loadSpec([written], {}).digest);
  });

  test('applies several overlays one after the other', () => {
    expect(
      wantedOf('servers.web', 'servers: {web: {plan_id: 7}}', 'servers: {web: {plan_id: 8}}'),
    ).toMatchObject({ plan_id: 8 });
  });

  test('null for a missing entry has no effect, and null for a map removes the map', () => {
    expect(load('servers: {nope: null}').digest).toBe(loadSpec([base], {}).digest);
    expect(load('servers: null').resources.map(({ key }) => key)).toEqual(['networks.backend']);
  });

  test('an overlay changes an entry in the file of the entry', () => {
    const other = { file: 'b.yaml', text: 'version: 1\nips: {a: {}}\n' };
    const keys = (text: string) => loadSpec([other, base, overlay(text)], {}).resources.map(({ key }) => key);
    expect(keys('ips: {a: {server_type_id: 3}, b: {}}\nservers: {old: null}\n')).toEqual([
      'networks.backend',
      'ips.a',
      'ips.b',
      'servers.web',
      'servers.web.network_interfaces.backend',
    ]);
  });

  test('applies defaults after the overlays', () => {
    expect(wantedOf('servers.web', 'defaults: {servers: {ssh_keys: [7]}}')).toMatchObject({ ssh_keys: [7] });
  });

  test('a value of the environment stays hidden', () => {
    const text = `isos: {r: {url: "\${env:URL}"}}`;
    const desired = loadSpec([base, overlay(text)], { URL: 'https://example.com/secret.iso' });
    expect(JSON.stringify(desired)).not.toContain('secret');
    expect(desired.environment?.variables.get('URL')).toBe('https://example.com/secret.iso');
  });
});
