import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/cli/settings/profile.ts';
import { ConfigError } from '../../src/core/errors.ts';
import { casesIn, reportedOf } from './read.ts';

describe.each(['yaml', 'fields', 'references', 'files', 'environment', 'warned'])('src/spec: %s', (name) => {
  test.each(casesIn(name))('reports %s', (_what, sources, expected) => {
    expect(reportedOf(sources)).toEqual(expected);
  });
});

describe('src/cli/settings/profile.ts', () => {
  test.each(casesIn('profile'))('refuses %s', (_what, [source], errors) => {
    const message = ['the API profile cannot be used:', ...errors].join('\n');
    expect(() => loadProfile(source?.text ?? '', 'p.yaml')).toThrow(new ConfigError(message));
  });
});
