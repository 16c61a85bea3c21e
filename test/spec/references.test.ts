import { describe, expect, test } from 'vitest';
import { loadSpec } from '../../src/spec/load.ts';
import { errorsIn, errorsOf, read, spec } from './read.ts';

const sized = 'server_type: 3, image: x, cores: 1';

describe('src/spec/cross-checks.ts', () => {
  const cases: readonly [string, string, readonly string[]][] = [
    [
      'names that are not there',
      spec(
        'networks: {backend: {managed: false}}',
        'ips: {web: {}}',
        'servers:',
        '  a: {id: 1, public_ipv4: {ip: wbe}, network_interfaces: [bakend, other]}',
      ),
      [
        'a.yaml:6:32: unknown ip "wbe"; did you mean `web`?',
        'a.yaml:6:59: unknown network "bakend"; did you mean `backend`?',
        'a.yaml:6:67: unknown network "other": `networks` has no entry of this name',
      ],
    ],
    [
      'an address for two servers',
      spec(
        'ips: {web: {}}',
        'servers:',
        `  a: {${sized}, public_ipv4: {ip: web}}`,
        `  b: {${sized}, public_ipv4: {ip: web}}`,
      ),
      [
        'a.yaml:6:61: the ip "web" is already used by servers.a at a.yaml:5:61: an address belongs to one server',
      ],
    ],
    [
      'anything inside a server that is not managed',
      spec(
        'ips: {web: {}}',
        'networks: {n: {managed: false}}',
        'servers:',
        '  a:',
        '    managed: false',
        '    public_ipv4: {ip: web}',
        '    network_interfaces: [n]',
      ),
      [
        'a.yaml:8:5: `public_ipv4` cannot be declared in a server with `managed: false`, because vdcsync manages nothing inside that server: remove this field, or bind the server with `id:` instead',
        'a.yaml:9:5: `network_interfaces` cannot be declared in a server with `managed: false`, because vdcsync manages nothing inside that server: remove this field, or bind the server with `id:` instead',
      ],
    ],
    [
      'a network twice on one server',
      spec('networks: {n: {managed: false}}', 'servers:', '  a: {id: 1, network_interfaces: [n, n]}'),
      ['a.yaml:5:38: duplicate value "n": first at a.yaml:5:35'],
    ],
    [
      'two images of one name',
      spec(
        'servers: {x: {id: 1}, y: {id: 2}}',
        'server_images:',
        '  a: {server: x, name: n}',
        '  b: {server: y, name: n}',
        '  n: {server: y}',
      ),
      [
        'a.yaml:6:24: server_images.b and server_images.a (a.yaml:5:24) have the same name, so vdcsync may not be able to distinguish their images',
        'a.yaml:7:3: server_images.n and server_images.a (a.yaml:5:24) have the same name, so vdcsync may not be able to distinguish their images',
      ],
    ],
    [
      'two networks of one name',
      spec(
        'networks:',
        '  a: {managed: false, name: b}',
        '  b: {managed: false}',
        '  c: {id: 7, name: " b "}',
      ),
      [
        'a.yaml:5:3: networks.b and networks.a (a.yaml:4:29) have the same name, but a project allows each network name once',
        'a.yaml:6:20: networks.c and networks.a (a.yaml:4:29) have the same name, but a project allows each network name once',
      ],
    ],
    [
      'overlapping subnets, the later one in the file named first',
      spec(
        'networks:',
        '  a: {cidr: 10.20.0.0/24}',
        '  b: {cidr: 10.0.0.0/8}',
        '  c: {cidr: 10.21.0.0/16}',
        '  d: {cidr: 11.0.0.0/24}',
      ),
      [
        'a.yaml:5:13: the subnets of networks.b and networks.a (a.yaml:4:13) overlap',
        'a.yaml:6:13: the subnets of networks.c and networks.b (a.yaml:5:13) overlap',
      ],
    ],
    [
      'one id for two entries of a kind',
      spec('networks: {a: {id: 7}}', 'ips: {a: {id: 7}, b: {id: 7}}'),
      ['a.yaml:4:27: ips.b and ips.a (a.yaml:4:15) are bound to the same ip, id 7'],
    ],
  ];

  test.each(cases)('refuses %s', (_what, text, expected) => {
    expect(errorsIn(text)).toEqual(expected);
  });

  test('does not take the name of an entry with errors for a wrong one', () => {
    expect(
      errorsIn(spec('networks: {n: {cidr: x}}', 'servers:', '  a: {id: 1, network_interfaces: [n]}')),
    ).toEqual(['a.yaml:3:22: "x" cannot be `cidr`: a cidr is written like 10.20.0.0/24']);
  });

  test('leaves it to the plan whether a firewall has a public card', () => {
    expect(errorsIn(spec(`servers: {a: {${sized}, firewall: {enabled: true}}}`))).toEqual([]);
  });
});

describe('src/spec/cross-checks.ts', () => {
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
