import { describe, expect, test } from 'vitest';
import { loadSpec } from '../../src/spec/load.ts';
import { errorsOf, spec } from './read.ts';

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
  test('maps are merged, null removes, everything else replaces', () => {
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

  test('equal to the spec with the change written into it', () => {
    const written = { ...base, text: base.text.replace('10.20.0.0/24', '10.30.0.0/24') };
    expect(load('networks: {backend: {cidr: 10.30.0.0/24}}').digest).toBe(loadSpec([written], {}).digest);
  });

  test('several are applied one after the other', () => {
    expect(
      wantedOf('servers.web', 'servers: {web: {plan_id: 7}}', 'servers: {web: {plan_id: 8}}'),
    ).toMatchObject({ plan_id: 8 });
  });

  test('a null that removes nothing, and a map that is removed', () => {
    expect(load('servers: {nope: null}').digest).toBe(loadSpec([base], {}).digest);
    expect(load('servers: null').resources.map(({ key }) => key)).toEqual(['networks.backend']);
  });

  test('an error names both files, with line and column', () => {
    expect(
      errorsOf(() =>
        load('servers:\n  web: {plna_id: 7, network_interfaces: [nope]}\nnetworks: {backend: {cidr: 7}}\n'),
      ),
    ).toEqual([
      expect.stringMatching(/^o0\.yaml:2:9: unknown field `plna_id`.* \(overlay of base\.yaml:6:3\)$/),
      expect.stringMatching(/^o0\.yaml:2:42: unknown network "nope".* \(overlay of base\.yaml:6:47\)$/),
      expect.stringMatching(/^o0\.yaml:3:28: .*cidr.* \(overlay of base\.yaml:4:22\)$/),
    ]);
  });

  test('an error in the remainder of the base names both files, too', () => {
    expect(errorsOf(() => load('networks: null\nservers: {web: {image: null}}\n'))).toEqual([
      expect.stringMatching(/^base\.yaml:6:8: `image` is missing.* \(changed at o0\.yaml:2:11\)$/),
      expect.stringMatching(/^base\.yaml:6:68: unknown network "backend"/),
    ]);
  });

  test('an entry is changed in the file that holds it', () => {
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

  test('defaults are filled in after the overlays', () => {
    expect(wantedOf('servers.web', 'defaults: {servers: {ssh_keys: [7]}}')).toMatchObject({ ssh_keys: [7] });
  });

  test('an overlay must be a map, and an error of its YAML has its place', () => {
    expect(errorsOf(() => load('[1]'))).toEqual(['o0.yaml:1:1: an overlay is a map of changes']);
    expect(errorsOf(() => load('servers: {web: '))[0]).toMatch(/^o0\.yaml:/);
  });

  test('a value of the environment stays hidden', () => {
    const text = `isos: {r: {url: "\${env:URL}"}}`;
    const desired = loadSpec([base, overlay(text)], { URL: 'https://example.com/secret.iso' });
    expect(JSON.stringify(desired)).not.toContain('secret');
    expect(desired.environment?.variables.get('URL')).toBe('https://example.com/secret.iso');
  });
});
