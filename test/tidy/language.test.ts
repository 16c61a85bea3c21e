import { describe, expect, test } from 'vitest';
import { complaints } from './banned-language.ts';
import { commentsOf, descriptionsOf, filesIn, type Line, proseOf, textsOf, titlesOf } from './texts.ts';

const pages = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', ...filesIn('docs', /\.md$/)];
const examples = filesIn('examples', /\.(ya?ml|service)$/);
const schemas = filesIn('schemas', /\.json$/);

function check(lines: readonly Line[]): void {
  expect(complaints(lines)).toEqual([]);
}

describe('src', () => {
  test.each(pages)('%s uses standard terms', (page) => check(proseOf(page)));

  test.each(examples)('%s uses standard terms', (file) => check(commentsOf(file)));

  test.each(schemas)('%s uses standard terms', (file) => check(descriptionsOf(file)));

  const sources = Map.groupBy([...filesIn('src', /\.ts$/), ...filesIn('tools', /\.ts$/)], (file) =>
    file.split('/').slice(0, 2).join('/'),
  );
  test.each([...sources])('%s uses standard terms', (_folder, files) => check(files.flatMap(textsOf)));

  const tests = Map.groupBy(filesIn('test', /\.ts$/), (file) => file.split('/').slice(0, 2).join('/'));
  test.each([...tests])('the titles of %s use standard terms', (_folder, files) =>
    check(files.flatMap(titlesOf)));

  test('the list detects the words in its examples', () => {
    const found = (text: string) => complaints([{ file: 'a', line: 1, text }]).length;
    expect(found("What it stood for is nobody's now")).toBeGreaterThan(2);
    expect(found('lets such be decided without a person')).toBeGreaterThan(1);
    expect(found('a card')).toBe(1);
    expect(found('a graphics card, such as one of these')).toBe(0);
    expect(found('What does the plan show?')).toBe(0);
    expect(found('vdcsync looks up the name')).toBe(0);
  });
});
