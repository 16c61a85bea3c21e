import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/cli/settings/profile.ts';
import { ConfigError } from '../../src/core/errors.ts';
import { casesIn, errorsIn } from './read.ts';

describe.each(['yaml', 'fields', 'references'])('src/spec: %s', (name) => {
  test.each(casesIn(name))('refuses %s', (_what, text, expected) => {
    expect(errorsIn(text)).toEqual(expected);
  });
});

describe('src/cli/settings/profile.ts', () => {
  test.each(casesIn('profile'))('refuses %s', (_what, text, errors) => {
    const message = ['the API profile cannot be used:', ...errors].join('\n');
    expect(() => loadProfile(text, 'p.yaml')).toThrow(new ConfigError(message));
  });
});
