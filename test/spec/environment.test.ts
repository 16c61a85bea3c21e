// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { describe, expect, test } from 'vitest';
import { allowedEnvironment, expand, operatorsSpec, type SpecTrust } from '../../src/spec/environment.ts';
import { errorsIn, read, spec } from './read.ts';

const env = (name: string) => `$\{env:${name}}`;
const secret = { SECRET: 'hunter2-hunter2' };

describe('src/spec/environment.ts', () => {
  test('takes values into any text, and leaves names alone', () => {
    const { resources, environment } = read(
      spec('isos:', `  a: {url: "https://u:${env('SECRET')}@example.com/${env('F')}"}`),
      { ...secret, F: 'x.iso' },
    );
    const url = `https://u:${env('SECRET')}@example.com/${env('F')}`;
    expect(resources[0]?.value).toEqual({ name: 'a', url });
    expect(environment?.texts.get(url)).toBe('https://u:hunter2-hunter2@example.com/x.iso');
  });

  test('keeps escaped text, and expands nothing inside a value', () => {
    expect(expand('$${env:A} ${env:A} $A ${A}', { A: '${env:B}' })).toEqual({
      text: '${env:A} ${env:B} $A ${A}',
      used: ['A'],
    });
  });

  test('refuses an unset variable or a wrong name, with its place', () => {
    const rule =
      'write `${env:NAME}` with the name of an environment variable, or `$${env:` for the characters themselves';
    expect(
      errorsIn(
        spec('servers:', `  a: {id: 1, name: "x${env('NOPE')}", image: "${env('')}", disk_type: "$\{env:A"}`),
      ),
    ).toEqual([
      'a.yaml:4:20: the environment variable `NOPE` is not set',
      `a.yaml:4:43: ${rule}`,
      `a.yaml:4:65: ${rule}`,
    ]);
    expect(errorsIn(spec(`ips: {a: {id: "${env('toString')}"}}`))).toEqual([
      'a.yaml:3:15: the environment variable `toString` is not set',
    ]);
  });

  test('refuses an empty variable: a pipeline gives a missing secret so', () => {
    const file = spec('isos:', `  a: {url: "https://h.example/${env('EMPTY')}.iso"}`);
    expect(errorsIn(file, { EMPTY: '' })).toEqual(['a.yaml:4:12: the environment variable `EMPTY` is empty']);
  });

  test('never shows a value of the environment', () => {
    const value = `"${env('SECRET')}"`;
    const text = spec(
      `settings: {drift: ${value}, suspend: {reason: x, until: ${value}}}`,
      `networks: {n: {cidr: ${value}}, m: {name: ${value}}, o: {managed: false, name: "*${env('SECRET')}"}}`,
      `servers:`,
      `  a: {id: 1, cores: ${value}, public_ipv4: {ip: ${value}}, network_interfaces: [${value}, ${value}]}`,
      `  b: {id: ${value}, gpu_package: [${value}], gpus: 1, replace: ${value}, backup: {max_age: ${value}}}`,
    );
    const errors = errorsIn(text, secret);
    expect(errors.length).toBeGreaterThan(10);
    expect(errors.join('\n')).not.toContain(secret.SECRET);
    expect(errors.join('\n')).toContain('"${env:SECRET}": only the URL of an ISO');
  });

  test('shows nothing that was made of it either', () => {
    const text = spec(`networks: {n: {cidr: "${env('CIDR')}"}}`);
    expect(errorsIn(text, { CIDR: '10.77.88.99/24' })).toEqual([
      expect.stringContaining('a.yaml:3:22: "${env:CIDR}": only the URL of an ISO'),
    ]);
  });

  test('keeps values out of the digest, and lets it change with them', () => {
    const text = spec(`isos: {a: {url: "https://${env('SECRET')}/a.iso"}}`);
    const [one, other] = [read(text, secret), read(text, { SECRET: 'another' })];
    expect(one.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(one.digest).not.toBe(other.digest);
  });
});

describe('src/spec/environment.ts', () => {
  test.each([
    'image: VALUE',
    'disk_type: VALUE',
    'gpu_package: [VALUE]',
    'public_ipv4: {ip: VALUE}',
    'network_interfaces: [VALUE]',
    'backup: {max_age: VALUE}',
    'firewall: {policy_in: VALUE}',
    'firewall: {rules: [{destination_port: VALUE}]}',
    'firewall: {rules: [{protocol: VALUE}]}',
    'moved: {from: VALUE}',
  ])('refuses it where output has to show the value: %s', (field) => {
    const text = spec('servers:', `  a: {id: 1, ${field.replace('VALUE', `"${env('A')}"`)}}`);
    const errors = errorsIn(text, { A: '24h' });
    expect(errors.join('\n')).toMatch(/"\$\{env:A\}"/);
  });

  test('gives the literal characters to the API where they are escaped', () => {
    const { resources, environment } = read(spec('isos:', '  a: {url: "https://example.com/$${env:A}"}'));
    expect(environment?.texts.get(String(resources[0]?.value.url))).toBe('https://example.com/${env:A}');
  });
});

describe('src/spec/environment.ts: what a spec may use', () => {
  const takes = (name: string, trust: SpecTrust) => {
    const text = expand(env(name), { [name]: 'value' }, trust);
    return 'text' in text;
  };

  test('on the command line, every variable except those of vdcsync', () => {
    expect(['HOME', 'DATABASE_URL', 'VDCX'].map((each) => takes(each, operatorsSpec))).toEqual([
      true,
      true,
      true,
    ]);
    for (const each of ['VDC_TOKEN', 'VDC_BASE_URL', 'VDCSYNC_STATE', 'VDCSYNC_SLACK_URL', 'PGPASSWORD'])
      expect(takes(each, operatorsSpec)).toBe(false);
  });

  test('in a daemon, only the listed variables, and never a token', () => {
    const trust: SpecTrust = {
      variables: ['A', 'TOKEN_1', 'VDC_TOKEN'],
      tokens: { prefix: 'TOKEN_', base: '/' },
    };
    expect(['A', 'B', 'HOME', 'TOKEN_1', 'VDC_TOKEN'].map((each) => takes(each, trust))).toEqual([
      ...[true, false, false, false, false],
    ]);
    const environment = { A: 'a', B: 'b', TOKEN_1: 'c', VDC_TOKEN: 'd' };
    expect(allowedEnvironment(environment, trust)).toEqual({ A: 'a' });
  });
});
