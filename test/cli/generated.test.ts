import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { generatedFiles } from '../../src/cli/json-schemas.ts';

describe('generated files', () => {
  test.each([...generatedFiles()])('%s is what the code says: npm run generate', (name, text) => {
    expect(readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')).toBe(text);
  });
});
