import { describe, expect, test } from 'vitest';
import { fieldOf } from '../../src/core/desired.ts';

const entry = {
  position: { file: 'shop.yaml', line: 3, column: 5 },
  fields: { server_type: [4, 7], rules: [5, 7], 'rules[1]': [7, 9], 'rules[1].source': [8, 11, 'more.yaml'] },
} as const;

describe('src/core/desired.ts: a parameter that the API names', () => {
  test.each([
    ['rules[1].source', 'rules[1].source', 8],
    ['/body/rules/1/source', 'rules[1].source', 8],
    ['rules.1.port', 'rules[1]', 7],
    ['rules[4].source', 'rules', 5],
    ['server_type_id', 'server_type', 4],
  ])('%s is %s of the entry', (parameter, name, line) => {
    expect(fieldOf(entry, parameter)).toMatchObject({ name, position: { line } });
  });

  test('has its position in the file that declares it, and none if the entry does not declare it', () => {
    expect(fieldOf(entry, 'rules[1].source')?.position.file).toBe('more.yaml');
    expect(fieldOf(entry, 'rules')?.position.file).toBe('shop.yaml');
    expect(fieldOf(entry, 'name')).toBeUndefined();
  });
});
