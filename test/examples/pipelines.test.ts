import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = ['action.yml', 'examples/github-actions/vdcsync.yml', 'templates/vdcsync.yml'];

/** Values that the author of a merge request chooses: names of branches and tags, titles, texts, user names. */
const chosenByAuthors =
  /CI_COMMIT_(REF|BRANCH|TAG|TITLE|MESSAGE|DESCRIPTION|AUTHOR)|CI_MERGE_REQUEST_(TITLE|DESCRIPTION|LABELS|SOURCE_BRANCH)|GITLAB_USER_|GITHUB_(HEAD_REF|REF_NAME|ACTOR)/;

/** Each shell script of a pipeline. */
function scriptsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) =>
    ['run', 'script', 'before_script', 'after_script'].includes(name)
      ? [each].flat().filter((line): line is string => typeof line === 'string')
      : scriptsOf(each),
  );
}

describe('action.yml and templates', () => {
  test.each(files)('no script of %s contains a value that the author of a merge request chooses', (file) => {
    const documents = readFileSync(join(root, file), 'utf8').split(/^---$/m);
    const scripts = documents.flatMap((each) => scriptsOf(parse(each)));
    expect(scripts.length).toBeGreaterThan(1);
    for (const script of scripts) {
      // The runner puts these values into the text of the script before a shell reads it.
      expect(script).not.toMatch(/\$\{\{/);
      expect(script).not.toMatch(chosenByAuthors);
    }
  });

  test.each(files)('%s allows a spec no variable and no token file', (file) => {
    expect(readFileSync(join(root, file), 'utf8')).not.toMatch(
      /allow-env|ALLOW_ENV|token-env|token-folder|TOKEN_FOLDER/,
    );
  });
});
