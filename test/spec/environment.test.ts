// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { describe, expect, test } from 'vitest';
import { allowedEnvironment, expand, operatorsSpec, type SpecTrust } from '../../src/spec/environment.ts';
import { read, spec } from './read.ts';

const env = (name: string) => `$\{env:${name}}`;
const secret = { SECRET: 'hunter2-hunter2' };

describe('src/spec/environment.ts', () => {
  test('expands variables in any value, and not in names', () => {
    const { resources, environment } = read(
      spec('isos:', `  a: {url: "https://u:${env('SECRET')}@example.com/${env('F')}"}`),
      { ...secret, F: 'x.iso' },
    );
    const url = `https://u:${env('SECRET')}@example.com/${env('F')}`;
    expect(resources[0]?.value).toEqual({ name: 'a', url });
    expect(environment?.texts.get(url)).toBe('https://u:hunter2-hunter2@example.com/x.iso');
  });

  test('keeps escaped text, and expands nothing inside a value', () => {
    expect(expand('$${env:A} $${env.A} ${env:A} $A ${A}', { A: '${env:B}' })).toEqual({
      text: '${env:A} ${env.A} ${env:B} $A ${A}',
      used: ['A'],
    });
  });

  test('keeps values out of the digest, and changes the digest with the values', () => {
    const text = spec(`isos: {a: {url: "https://${env('SECRET')}/a.iso"}}`);
    const [one, other] = [read(text, secret), read(text, { SECRET: 'another' })];
    expect(one.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(one.digest).not.toBe(other.digest);
  });

  test('sends the literal characters of an escaped variable to the API', () => {
    const { resources, environment } = read(spec('isos:', '  a: {url: "https://example.com/$${env:A}"}'));
    expect(environment?.texts.get(String(resources[0]?.value.url))).toBe('https://example.com/${env:A}');
  });
});

describe('src/spec/environment.ts: allowed variables', () => {
  const takes = (name: string, trust: SpecTrust) => {
    const text = expand(env(name), { [name]: 'value' }, trust);
    return 'text' in text;
  };

  test('the command line allows every variable except those of vdcsync', () => {
    expect(['HOME', 'DATABASE_URL', 'VDCX'].map((each) => takes(each, operatorsSpec))).toEqual([
      true,
      true,
      true,
    ]);
    for (const each of ['VDC_TOKEN', 'VDC_BASE_URL', 'VDCSYNC_STATE', 'VDCSYNC_SLACK_URL', 'PGPASSWORD'])
      expect(takes(each, operatorsSpec)).toBe(false);
  });

  test('a daemon allows only the listed variables, and never a token', () => {
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
