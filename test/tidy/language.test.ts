import { describe, expect, test } from 'vitest';
import { complaints } from './banned-language.ts';
import { commentsOf, descriptionsOf, filesIn, type Line, proseOf, textsOf } from './texts.ts';

const pages = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', ...filesIn('docs', /\.md$/)];
const examples = filesIn('examples', /\.(ya?ml|service)$/);
const schemas = filesIn('schemas', /\.json$/);

/**
 * The number of banned words that are still in a file, or in a folder of `src`. A number may only fall: lower it when you
 * rewrite a text. A file or folder without a number has none.
 */
const left: Readonly<Record<string, number>> = {
  'src/api': 1,
  'src/engine': 11,
  'src/plan': 4,
  'src/reconcilers': 6,
};

function check(name: string, lines: readonly Line[]): void {
  const found = complaints(lines);
  expect(found.length > (left[name] ?? 0) ? found : []).toEqual([]);
}

describe('src', () => {
  test.each(pages)('%s uses standard terms', (page) => check(page, proseOf(page)));

  test.each(examples)('%s uses standard terms', (file) => check(file, commentsOf(file)));

  test.each(schemas)('%s uses standard terms', (file) => check(file, descriptionsOf(file)));

  const sources = Map.groupBy(filesIn('src', /\.ts$/), (file) => file.split('/').slice(0, 2).join('/'));
  test.each([...sources])('%s uses standard terms', (folder, files) => check(folder, files.flatMap(textsOf)));

  test('the list finds the words of its own examples', () => {
    const found = (text: string) => complaints([{ file: 'a', line: 1, text }]).length;
    expect(found("What it stood for is nobody's now")).toBeGreaterThan(2);
    expect(found('lets such be decided without a person')).toBeGreaterThan(1);
    expect(found('a card')).toBe(1);
    expect(found('a graphics card, such as one of these')).toBe(0);
    expect(found('What does the plan show?')).toBe(0);
    expect(found('vdcsync looks up the name')).toBe(0);
  });
});
