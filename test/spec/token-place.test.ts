import { describe, expect, test } from 'vitest';
import { SpecError } from '../../src/core/errors.ts';
import { loadSpec } from '../../src/spec/load.ts';

const load = (project: string) =>
  loadSpec([{ file: 'vdcsync.yaml', text: `version: 1\nproject: ${project}\n` }], {});

function problems(project: string): string {
  try {
    load(project);
    return '';
  } catch (error) {
    if (error instanceof SpecError) return error.message;
    throw error;
  }
}

describe('src/spec: where a project names its token', () => {
  test('takes the name of a variable, or of a file', () => {
    expect(load('{id: 1, token_env: SHOP_TOKEN}').token).toMatchObject({ env: 'SHOP_TOKEN' });
    expect(load('{id: 1, token_file: /run/secrets/shop}').token).toMatchObject({ file: '/run/secrets/shop' });
    expect(load('{id: 1}').token).toBeUndefined();
  });

  test('is not part of the desired state: another place plans nothing', () => {
    expect(load('{id: 1, token_env: SHOP_TOKEN}').digest).toBe(load('{id: 1}').digest);
  });

  test('refuses both at once, and a value that looks like a token', () => {
    expect(problems('{id: 1, token_env: A, token_file: b}')).toMatch(/both given/);
    expect(problems('{id: 1, token_env: "vdc_pat-1234.abcd"}')).toMatch(
      /vdcsync.yaml:2:\d+: .*name of an environment variable/,
    );
  });
});
