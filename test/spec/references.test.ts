import { describe, expect, test } from 'vitest';
import { loadSpec } from '../../src/spec/load.ts';
import { errorsIn, errorsOf, read, spec } from './read.ts';

const sized = 'server_type: 3, image: x, cores: 1';

describe('src/spec/cross-checks.ts', () => {
  test('leaves it to the plan whether a firewall has a public card', () => {
    expect(errorsIn(spec(`servers: {a: {${sized}, firewall: {enabled: true}}}`))).toEqual([]);
  });

  const load = (...texts: readonly string[]) =>
    loadSpec(
      texts.map((text, at) => ({ file: `${at}.yaml`, text })),
      {},
    );

  test('adds several files up to one, whichever way they are cut', () => {
    const whole = read(
      spec('settings: {prune: true}', 'ips: {a: {}}', `servers: {s: {${sized}, public_ipv4: {ip: a}}}`),
    );
    const parts = load(
      `version: 1\nservers: {s: {${sized}, public_ipv4: {ip: a}}}`,
      spec('ips: {a: {}}'),
      spec('settings: {prune: true}'),
    );
    expect(parts.digest).toBe(whole.digest);
    expect(parts.settings.prune).toBe(true);
  });

  test('wants the files to agree, and each resource in one of them', () => {
    expect(
      errorsOf(() =>
        load(
          spec('settings: {max_deletions: 3}', 'ips: {a: {}}'),
          'version: 1\nproject: {id: 4712}\nsettings: {max_deletions: 4, prune: true}\nips: {a: {}}',
        ),
      ),
    ).toEqual([
      '1.yaml:2:15: `project.id` is 4712 here and 4711 at 0.yaml:2:15: the files have to agree',
      '1.yaml:3:27: `settings.max_deletions` is 4 here and 3 at 0.yaml:3:27: the files have to agree',
      '1.yaml:4:7: ips.a appears twice in the spec: first at 0.yaml:4:7',
    ]);
  });

  test('wants a version in each file and a project in one', () => {
    expect(errorsOf(() => load('ips: {a: {}}', 'version: 1'))).toEqual([
      '0.yaml:1:1: `version` is missing',
      '0.yaml:1:1: `project` is missing: write `project: {id: …}` with the id of the project',
    ]);
  });

  test('reports errors in the order of the files, then of their lines', () => {
    expect(errorsOf(() => load('version: 2', 'version: 2', ''))).toHaveLength(4);
    expect(errorsOf(() => load(spec('x: 1', 'y: 1'), spec('z: 1'))).map((each) => each.slice(0, 10))).toEqual(
      ['0.yaml:3:1', '0.yaml:4:1', '1.yaml:3:1'],
    );
  });
});
