// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the spec's own syntax
import { describe, expect, test } from 'vitest';
import { errorsIn, read, spec } from './read.ts';

describe('src/spec: slips that deserve a word of their own', () => {
  test('a number does not come from the environment', () => {
    expect(errorsIn('version: 1\nproject: {id: "${env:P}"}\n', { P: '4711' })).toEqual([
      'a.yaml:2:15: `id` must be a whole number, and "${env:P}" gives text: write the value itself',
    ]);
  });

  test('neither does a name', () => {
    expect(errorsIn(spec('ips: {"${env:P}": {}}'), { P: 'web' })).toEqual([
      'a.yaml:3:7: "${env:P}" cannot be a name: a name cannot come from the environment',
    ]);
  });

  test.each(['${ENV:HOST}', '${env.HOST}', '${ env:HOST}'])('%s is nearly a variable', (text) => {
    const [error] = errorsIn(spec(`isos: {a: {url: "https://${text}/a.iso"}}`), { HOST: 'example.com' });
    expect(error).toContain('write `${env:NAME}`');
  });

  test('with another dollar it is plain text', () => {
    const { environment } = read(spec('isos: {a: {url: "https://$${env.HOST}/a.iso"}}'));
    expect([...(environment?.texts.values() ?? [])]).toEqual(['https://${env.HOST}/a.iso']);
  });
});
