import { describe, expect, test } from 'vitest';
import { errorsIn, read, spec } from './read.ts';

describe('src/spec: yaml', () => {
  const cases: readonly [string, string, readonly string[]][] = [
    [
      'an empty file',
      '',
      ['a.yaml:1:1: the file is empty: write at least `version: 1` and `project: {id: …}`'],
    ],
    [
      'a file of comments alone',
      '# nothing\n',
      ['a.yaml:1:1: the file is empty: write at least `version: 1` and `project: {id: …}`'],
    ],
    ['a list', '- 1\n', ['a.yaml:1:1: the spec must be a map, not a list']],
    [
      'a tab as indentation',
      'version: 1\n\tproject: 1\n',
      ['a.yaml:2:1: a tab indents this line: indent with spaces'],
    ],
    [
      'an unclosed brace',
      spec('ips: {web: {}\nservers: {}'),
      ['a.yaml:4:1: the closing brace or bracket is missing, here or in a line above'],
    ],
    ['an unclosed quote', spec('ips: "x'), ['a.yaml:3:6: the closing quote of this text is missing']],
    [
      'an alias',
      spec('networks:', '  a: &a {cidr: 10.0.0.0/24}', '  b: *a'),
      ['a.yaml:5:6: aliases are not accepted: replace `*a` by its value'],
    ],
    [
      'a merge key',
      spec('networks:', '  a: {managed: false, <<: {protect: true}}'),
      ['a.yaml:4:23: merge keys are not accepted: write the fields out'],
    ],
    [
      'what a merge key would have brought is not missing as well',
      spec(
        'servers:',
        '  a: &a {server_type: plans-1, image: debian-13, plan_id: 51}',
        '  b: {<<: *a}',
        '  c: {server_type: plans-1, image: debian-13, plan_id: 51, public_ipv4: {<<: *a}, firewall: {<<: *a}}',
      ),
      [
        'a.yaml:5:7: merge keys are not accepted: write the fields out',
        'a.yaml:5:11: aliases are not accepted: replace `*a` by its value',
        'a.yaml:6:74: merge keys are not accepted: write the fields out',
        'a.yaml:6:78: aliases are not accepted: replace `*a` by its value',
        'a.yaml:6:94: merge keys are not accepted: write the fields out',
        'a.yaml:6:98: aliases are not accepted: replace `*a` by its value',
      ],
    ],
    [
      'nor are the entries of such a map, where another one names them',
      spec(
        'networks: {<<: {backend: {cidr: 10.0.0.0/24}}}',
        'ips: *ips',
        'servers:',
        '  a: {server_type: plans-1, image: debian-13, plan_id: 51, network_interfaces: [backend], public_ipv4: {ip: web}}',
      ),
      [
        'a.yaml:3:12: merge keys are not accepted: write the fields out',
        'a.yaml:4:6: aliases are not accepted: replace `*ips` by its value',
      ],
    ],
    [
      'nor the project',
      '<<: {project: {id: 4711}}\nversion: 1\n',
      ['a.yaml:1:1: merge keys are not accepted: write the fields out'],
    ],
    [
      'a custom tag',
      spec('ips:', '  a: !mine {}'),
      ['a.yaml:4:6: the tag `!mine` is not accepted: remove it'],
    ],
    [
      'a tag that is not of the core schema',
      spec('ips:', '  a: {id: !!binary aGk=}'),
      ['a.yaml:4:11: the tag `!!binary` is not accepted: remove it'],
    ],
    [
      'a tag before what would be good, and needs no second word',
      spec('ips:', '  a: {id: !foo 1}', '  b: {id: !!int 2}'),
      ['a.yaml:4:11: the tag `!foo` is not accepted: remove it'],
    ],
    [
      'a directive',
      `%YAML 1.1\n---\n${spec()}`,
      ['a.yaml:1:1: directives are not accepted: remove the line'],
    ],
    [
      'a name that stands twice',
      spec('ips:', '  a: {}', '  b: {}', '  a: {}'),
      ['a.yaml:6:3: duplicate field `a`: first at a.yaml:4:3'],
    ],
    [
      'names that would change what an object is',
      spec('ips:', '  __proto__: {}', '  constructor: {}', '  prototype: {}'),
      [
        'a.yaml:4:3: `__proto__` cannot be a name',
        'a.yaml:5:3: `constructor` cannot be a name',
        'a.yaml:6:3: `prototype` cannot be a name',
      ],
    ],
    [
      'a name that is no text',
      spec('ips:', '  ? [a]', '  : {}'),
      ['a.yaml:4:5: the name of a field must be plain text'],
    ],
    [
      'a whole number that cannot be kept',
      spec('ips:', '  a: {id: 9007199254740993}'),
      ['a.yaml:4:11: 9007199254740993 is too large: whole numbers end at ±9007199254740991'],
    ],
    ['infinity', spec('ips:', '  a: {id: .inf}'), ['a.yaml:4:11: this number cannot be used']],
    [
      'a second document',
      `${spec()}---\nversion: 1\n`,
      ['a.yaml:4:1: a second document begins here: one file holds one document'],
    ],
    [
      'nesting beyond 32 levels',
      spec(`ips: ${'['.repeat(32)}${']'.repeat(32)}`),
      ['a.yaml:3:37: nested deeper than 32 levels'],
    ],
    ['more than 1 MiB', spec(`# ${'x'.repeat(1024 * 1024)}`), ['a.yaml:1:1: the file is larger than 1 MiB']],
  ];

  test.each(cases)('refuses %s', (_what, text, expected) => {
    expect(errorsIn(text)).toEqual(expected);
  });

  test('accepts 32 levels', () => {
    expect(errorsIn(spec(`ips: ${'['.repeat(31)}${']'.repeat(31)}`))).toEqual([
      'a.yaml:3:6: `ips` must be a map, not a list',
    ]);
  });

  test('reports all errors of the YAML and of its content at once', () => {
    expect(errorsIn(spec('ips:', '  a: *b', '  c: {id: x}', 'networks: !x', '  n: {}'))).toEqual([
      'a.yaml:4:6: aliases are not accepted: replace `*b` by its value',
      'a.yaml:5:11: `id` must be a whole number, not "x"',
      'a.yaml:6:11: the tag `!x` is not accepted: remove it',
      'a.yaml:7:6: `cidr` is missing: a new network needs it. To bind an existing network, write `id:`',
    ]);
  });

  test('overlooks a byte order mark and Windows line ends', () => {
    expect(read(`\uFEFF${spec('ips: {a: {}}').replaceAll('\n', '\r\n')}`).resources).toHaveLength(1);
    expect(errorsIn('\uFEFFversion: 2\r\nproject: {id: x}\r\n')).toEqual([
      'a.yaml:1:10: 2 cannot be `version`: write `version: 1`',
      'a.yaml:2:15: `id` must be a whole number, not "x"',
    ]);
  });

  test('reads names as text also where YAML would see a number', () => {
    expect(read(spec('networks: {1: {managed: false}, true: {managed: false}}')).resources).toMatchObject([
      { key: 'networks.1', value: { name: '1' } },
      { key: 'networks.true', value: { name: 'true' } },
    ]);
  });

  test('takes a field without a value where nothing is needed, and names it where something is', () => {
    expect(read(spec('settings:', 'networks:', 'ips:', '  web:')).resources).toMatchObject([
      { key: 'ips.web', value: {} },
    ]);
    expect(errorsIn(spec('servers:', '  a: {id: 1, cores: , firewall: }'))).toEqual([
      'a.yaml:4:14: `cores` has no value: it must be a whole number',
      'a.yaml:4:23: `firewall` has no value: it must be a map',
    ]);
  });

  test('keeps a message on its line, and short, whatever a name holds', () => {
    const [turned = ''] = errorsIn(spec('"a\u202eb\u200b": 1'));
    expect(turned).toContain('unknown field `a\\u202eb\\u200b`');
    expect(errorsIn(spec('"a\\n\\e[31mb": 1'))).toEqual([
      'a.yaml:3:1: unknown field `a\\u000a\\u001b[31mb`: the fields here are `version`, `project`, `settings`, `defaults`, `networks`, `ips`, `isos`, `servers`, `server_images`',
    ]);
    expect(errorsIn(spec(`${'x'.repeat(1020)}: 1`))[0]?.length).toBeLessThan(1100);
  });

  const bombs: readonly [string, string][] = [
    ['brackets', '['.repeat(1_000_000)],
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
      '20,000 references that lead nowhere',
      spec(
        'networks:',
        ...Array.from({ length: 10_000 }, (_, at) => `  n${at}: {managed: false}`),
        'servers:',
        `  a: {id: 1, network_interfaces: [${Array.from({ length: 20_000 }, (_, at) => `m${at}`).join(', ')}]}`,
      ),
    ],
  ];

  test.each(bombs)('is done with %s in seconds', { timeout: 15_000 }, (_what, text) => {
    expect(errorsIn(text).length).toBeGreaterThan(0);
  });

  test('has a few words for a file that is broken everywhere', () => {
    expect(errorsIn('*a '.repeat(1000)).length).toBeLessThanOrEqual(40);
  });
});
