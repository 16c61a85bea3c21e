import { describe, expect, test } from 'vitest';
import { errorsIn, spec } from './read.ts';

const server = 'server_type: 3, image: ubuntu-24.04, cores: 1';

describe('src/reconcilers: fields', () => {
  const cases: readonly [string, string, readonly string[]][] = [
    ['no version', 'project: {id: 1}', ['a.yaml:1:1: `version` is missing']],
    [
      'another version',
      'version: "1"\nproject: {id: 1}',
      ['a.yaml:1:10: "1" cannot be `version`: write `version: 1`'],
    ],
    [
      'no project',
      'version: 1',
      ['a.yaml:1:1: `project` is missing: write `project: {id: …}` with the id of the project'],
    ],
    ['a project without id', 'version: 1\nproject: {}', ['a.yaml:2:10: `id` is missing']],
    ['an empty project', 'version: 1\nproject:', ['a.yaml:2:1: `project` has no value: it must be a map']],
    [
      'a project id that is no number',
      'version: 1\nproject:\n  id: "4711"',
      ['a.yaml:3:7: `id` must be a whole number, not "4711": remove the quotes'],
    ],
    ['a project id below 1', 'version: 1\nproject: {id: 0}', ['a.yaml:2:15: `id` must be at least 1, not 0']],
    [
      'an unknown field, with what was meant',
      spec('netwroks: {}'),
      ['a.yaml:3:1: unknown field `netwroks`; did you mean `networks`?'],
    ],
    [
      'an unknown field, with what there is',
      spec('settings: {suspend: {reason: x, colour: red}}'),
      ['a.yaml:3:33: unknown field `colour`: the fields here are `reason`, `until`'],
    ],
    [
      'the other rules of a firewall, also where one of them has a wrong type',
      spec(
        'servers:',
        '  a:',
        `    {${server}, memory_mb: 1024, disk_gb: 20, firewall: {rules: [`,
        '      {direction: in, action: accept, protocol: tcp, destination_port: 22},',
        '      {direction: in, action: accept, protocol: tcp, destination_port: "99999"}]}}',
      ),
      [
        'a.yaml:6:72: `destination_port` must be text, not 22: put it in quotes',
        'a.yaml:7:72: "99999" is not a port: write numbers from 1 to 65535, several separated by commas',
      ],
    ],
    [
      'unknown fields inside a server',
      spec(
        'servers:',
        `  a: {${server}, coers: 2, firewall: {enable: true}, backup: {max_age: 1h, days: 2}}`,
      ),
      [
        'a.yaml:4:54: unknown field `coers`; did you mean `cores`?',
        'a.yaml:4:75: unknown field `enable`; did you mean `enabled`?',
        'a.yaml:4:112: unknown field `days`: the fields here are `max_age`, `keep`',
      ],
    ],
    [
      'a word that is not one of the choice',
      spec('settings: {drift: corect, unmanaged: 1}'),
      [
        'a.yaml:3:19: `drift` must be `correct` or `report`, not "corect"; did you mean `correct`?',
        'a.yaml:3:38: `unmanaged` must be `ask` or `ignore`, not 1',
      ],
    ],
    [
      'settings of the wrong sort',
      spec(
        'settings:',
        '  prune: yes',
        '  max_deletions: 1.5',
        '  max_monthly_increase: -1',
        '  exclusive: "true"',
        '  suspend: true',
      ),
      [
        'a.yaml:4:10: `prune` must be `true` or `false`, not "yes"',
        'a.yaml:5:18: `max_deletions` must be a whole number, not 1.5',
        'a.yaml:6:25: `max_monthly_increase` must be at least 0, not -1',
        'a.yaml:7:14: `exclusive` must be `true` or `false`, not "true": remove the quotes',
        'a.yaml:8:12: `suspend` must be a map, not true',
      ],
    ],
    [
      'a suspension without a reason, until a day that does not exist',
      spec('settings:', '  suspend: {until: 2027-02-29T00:00:00Z}'),
      [
        'a.yaml:4:12: `reason` is missing',
        'a.yaml:4:20: "2027-02-29T00:00:00Z" cannot be `until`: write a valid time, such as 2027-01-31T00:00:00Z',
      ],
    ],
    [
      'a moment without an offset',
      spec('settings: {suspend: {reason: x, until: 2027-01-31T00:00:00}}'),
      [
        'a.yaml:3:40: "2027-01-31T00:00:00" cannot be `until`: write a valid time, such as 2027-01-31T00:00:00Z',
      ],
    ],
    [
      'a map that is none',
      spec('networks: [a]', 'ips: web'),
      ['a.yaml:3:11: `networks` must be a map, not a list', 'a.yaml:4:6: `ips` must be a map, not "web"'],
    ],
    ['an entry that is no map', spec('ips:', '  web: 5'), ['a.yaml:4:8: `ips.web` must be a map, not 5']],
    [
      'a server name with a dot',
      spec('servers:', `  web.1: {${server}}`),
      [
        'a.yaml:4:3: "web.1" cannot be a name under `servers`: up to 63 letters, digits, underscores or hyphens, the first one a letter or digit. For another name, write `name:`',
      ],
    ],
    [
      'names that the API or a key would not take',
      spec('networks:', '  a/b: {managed: false}', 'ips: {"": {}}', 'isos:', '  "x ": {id: uiso-1}'),
      [
        'a.yaml:4:3: "a/b" cannot be a name under `networks`: 1 to 30 letters, digits, spaces, underscores, dots or hyphens, and no space at either end',
        'a.yaml:5:7: "" cannot be a name under `ips`: up to 63 letters, digits, underscores, dots or hyphens, the first a letter or digit',
        'a.yaml:7:3: "x " cannot be a name under `isos`: 1 to 50 letters, digits, spaces, underscores, dots or hyphens, and no space at either end. For another name, write `name:`',
      ],
    ],
    [
      'ids of the wrong sort',
      spec('ips: {a: {id: uiso-1}}', 'isos: {a: {id: 1}, b: {id: uiso-x}}'),
      [
        'a.yaml:3:15: `id` must be a whole number, not "uiso-1"',
        'a.yaml:4:16: `id` must be text, not 1: put it in quotes',
        `a.yaml:4:28: "uiso-x" cannot be \`id\`: an ISO's id is written like uiso-12`,
      ],
    ],
    [
      'what creation needs and is not there',
      spec('networks: {a: {}}', 'isos: {b: }', 'servers: {c: {}, d: {id: 4}, e: {managed: false}}'),
      [
        'a.yaml:3:15: `cidr` is missing: a new network needs it. To bind an existing network, write `id:`',
        'a.yaml:4:8: `url` is missing: a new iso needs it. To bind an existing iso, write `id:`',
        'a.yaml:5:14: `server_type` is missing: a new server needs it. To bind an existing server, write `id:`',
        'a.yaml:5:14: `image` is missing: a new server needs it. To bind an existing server, write `id:`',
      ],
    ],
    [
      'a cidr that is none',
      spec('networks:', '  a: {cidr: 10.20.0.0}', '  b: {cidr: 10.256.0.0/24}', '  c: {cidr: 10.1.0.1/24}'),
      [
        'a.yaml:4:13: "10.20.0.0" cannot be `cidr`: a cidr is written like 10.20.0.0/24',
        'a.yaml:5:13: "10.256.0.0/24" is not a subnet: write four numbers up to 255, a slash, and a length up to 32, such as 10.20.0.0/24',
        'a.yaml:6:13: 10.1.0.1/24 is the address of a host, not of a subnet; did you mean 10.1.0.0/24?',
      ],
    ],
    [
      'an ISO whose url is too short and whose name is too long',
      spec('isos:', `  a: {url: "http:/", name: ${'x'.repeat(51)}}`),
      [
        'a.yaml:4:12: `url` must have at least 8 characters',
        'a.yaml:4:28: `name` must have at most 50 characters',
      ],
    ],
    [
      'an ISO whose url is no address that the API can fetch',
      spec(
        'isos:',
        '  a: {url: "ftp://mirror.example.com/a.iso"}',
        '  b: {url: "file:///srv/b.iso"}',
        '  c: {url: mirror.example.com/c.iso}',
        '  d: {url: "https:mirror.example.com/d.iso"}',
        '  e: {url: "HTTPS://mirror.example.com/e.iso"}',
      ),
      [4, 5, 6, 7].map(
        (line) =>
          `a.yaml:${line}:12: \`url\` must be an http or https address, such as https://example.com/x.iso`,
      ),
    ],
    [
      'a server without a size',
      spec('servers:', '  a: {server_type: 3, image: x}', '  b: {server_type: 3, image: x, id: 5}'),
      ['a.yaml:4:6: the server has no size: give cores, memory_mb and disk_gb, or plan_id, or gpu_package'],
    ],
    [
      'two ways to size a server',
      spec('servers:', `  a: {${server}, plan_id: 51}`, '  b: {id: 1, gpu_package: x, gpus: 1}'),
      [
        'a.yaml:4:51: cores and plan_id exclude each other: a server is sized by cores, memory_mb and disk_gb, or by plan_id, or by gpu_package',
        'a.yaml:5:36: a server with `gpu_package` cannot have gpus',
      ],
    ],
    [
      'numbers and texts in the wrong place',
      spec(
        'servers:',
        '  a: {server_type: [3], image: 12, cores: four, memory_mb: 0, ssh_keys: [1, b], id: 1}',
      ),
      [
        'a.yaml:4:20: `server_type` must be text or a whole number, not a list',
        'a.yaml:4:32: `image` must be text, not 12: put it in quotes',
        'a.yaml:4:43: `cores` must be a whole number, not "four"',
        'a.yaml:4:60: `memory_mb` must be at least 1, not 0',
        'a.yaml:4:77: entry 2 of `ssh_keys` must be a whole number, not "b"',
      ],
    ],
    [
      'a list of packages that names none, or no text',
      spec('servers:', '  a: {id: 1, gpu_package: []}', '  b: {id: 2, gpu_package: [x, 2]}'),
      [
        'a.yaml:4:27: `gpu_package` must not be empty',
        'a.yaml:5:31: entry 2 of `gpu_package` must be text, not 2: put it in quotes',
      ],
    ],
    [
      'an address in none of its forms',
      spec(
        'servers:',
        '  a: {id: 1, public_ipv4: true}',
        '  b: {id: 2, public_ipv4: {nwe: true}}',
        '  c: {id: 3, public_ipv4: {new: false}}',
        '  d: {id: 4, public_ipv4: {new: true, ip: web}}',
        '  e: {id: 5, public_ipv4: {ip: 5}}',
      ),
      [
        'a.yaml:4:27: `public_ipv4` must be {new: …}, {reuse: …} or {ip: …}, not true',
        'a.yaml:5:27: `public_ipv4` has `nwe`, and must be one of {new: …}, {reuse: …} or {ip: …}; did you mean `new`?',
        'a.yaml:6:33: `new` must be `true`, not false',
        'a.yaml:7:27: `public_ipv4` has `new` and `ip`, and must be one of {new: …}, {reuse: …} or {ip: …}',
        'a.yaml:8:32: `ip` must be text, not 5: put it in quotes',
      ],
    ],
    [
      'a firewall rule with a port as a number',
      spec(
        'servers:',
        '  a:',
        '    id: 1',
        '    firewall:',
        '      rules:',
        '        - destination_port: 22',
      ),
      ['a.yaml:8:29: `destination_port` must be text, not 22: put it in quotes'],
    ],
    [
      'a backup that is not told when, or always',
      spec(
        'servers: {a: {id: 1, backup: {}}, b: {id: 2, backup: {max_age: 1 day}}, c: {id: 3, backup: {max_age: 0h}}}',
      ),
      [
        'a.yaml:3:30: `max_age` is missing',
        'a.yaml:3:64: "1 day" cannot be `max_age`: a duration is written like 90m, 24h or 7d',
        'a.yaml:3:102: `max_age` must be more than 0: otherwise every reconciliation buys a backup',
      ],
    ],
    [
      'a backup schedule that no calendar has',
      spec('servers: {a: {id: 1, backup_policy: {days: [mon, tues], hour: 24, minute: 60, keep: 0}}}'),
      [
        'a.yaml:3:50: entry 2 of `days` must be `mon`, `tue`, `wed`, `thu`, `fri`, `sat` or `sun`, not "tues"; did you mean `tue`?',
        'a.yaml:3:63: `hour` must be at most 23, not 24',
        'a.yaml:3:75: `minute` must be at most 59, not 60',
        'a.yaml:3:85: `keep` must be at least 1, not 0',
      ],
    ],
  ];

  test.each(cases)('refuses %s', (_what, text, expected) => {
    expect(errorsIn(text)).toEqual(expected);
  });

  test('checks the valid fields of an entry that has a wrong field', () => {
    const text = spec(
      'servers:',
      '  a: {server_type: 3, image: x, cores: four, public_ipv4: {ip: web}, network_interfaces: [b]}',
    );
    expect(errorsIn(text)).toEqual([
      'a.yaml:4:40: `cores` must be a whole number, not "four"',
      'a.yaml:4:64: unknown ip "web": `ips` has no entry of this name',
      'a.yaml:4:91: unknown network "b": `networks` has no entry of this name',
    ]);
  });
});
