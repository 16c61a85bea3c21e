// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a shell would expand these texts
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { folderWith } from '../cli/run.ts';

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

function scriptsIn(file: string): string[] {
  const documents = readFileSync(join(root, file), 'utf8').split(/^---$/m);
  return documents.flatMap((each) => scriptsOf(parse(each)));
}

describe('action.yml and templates', () => {
  test.each(files)('no script of %s contains a value that the author of a merge request chooses', (file) => {
    const scripts = scriptsIn(file);
    expect(scripts.length).toBeGreaterThan(1);
    for (const script of scripts) {
      // The runner puts these values into the text of the script before a shell reads it.
      expect(script).not.toMatch(/\$\{\{/);
      expect(script).not.toMatch(chosenByAuthors);
    }
  });

  test.each(files)('%s allows no variable and no token file to a spec', (file) => {
    expect(readFileSync(join(root, file), 'utf8')).not.toMatch(
      /allow-env|ALLOW_ENV|token-env|token-folder|TOKEN_FOLDER/,
    );
  });

  /** Names that run a program if a shell reads them as more than a text. */
  const names = [
    '$(touch pwned)',
    '`touch pwned`',
    '"; touch pwned; "',
    "'; touch pwned; '",
    '--upload-pack=touch pwned',
    'a b*\\n${IFS}&&touch${IFS}pwned|tee pwned',
  ];

  const chosen = [
    'CI_COMMIT_REF_NAME CI_COMMIT_BRANCH CI_COMMIT_TITLE CI_COMMIT_MESSAGE CI_MERGE_REQUEST_TITLE',
    'GITHUB_REF_NAME GITHUB_HEAD_REF GITHUB_ACTOR BRANCH FILE VDCSYNC_FILE TIMEOUT VDCSYNC_TIMEOUT',
    'PACKAGE VDCSYNC_PACKAGE NUMBER NOTE_MARK VDC_TOKEN_READ LOCK STATE_BEFORE',
  ].flatMap((variables) => variables.split(' '));

  /** Each of these programs notes its words, one a line, and succeeds. */
  const programs = ['vdcsync', 'npm', 'git', 'gh', 'tar', 'curl', 'kill'];

  /** Every script of the file in a real shell, as the runner starts it, with the name wherever authors choose. */
  function played(file: string, name: string) {
    const folder = folderWith();
    const bin = join(folder, 'bin');
    const words = join(folder, 'words.txt');
    mkdirSync(bin);
    for (const program of programs) {
      writeFileSync(join(bin, program), `#!/bin/sh\nprintf '%s\\n' ${program} "$@" >> "$WORDS"\n`);
      chmodSync(join(bin, program), 0o755);
    }
    for (const [at, script] of scriptsIn(file).entries()) {
      const cwd = join(folder, `job-${at}`);
      mkdirSync(join(cwd, '.vdcsync'), { recursive: true });
      writeFileSync(join(cwd, '.vdcsync', 'state.db'), '');
      try {
        execFileSync('bash', ['-e', '-o', 'pipefail', '-c', script], {
          cwd,
          env: {
            ...Object.fromEntries(chosen.map((variable) => [variable, name])),
            ...{ PATH: [bin, dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter), WORDS: words },
            ...{ GITHUB_ENV: join(cwd, 'env'), GITHUB_STEP_SUMMARY: join(cwd, 'summary') },
            // Nobody answers there.
            ...{ STATE_URL: 'http://127.0.0.1:1/state.tgz', CI_API_V4_URL: 'http://127.0.0.1:1', HOME: cwd },
          },
          stdio: 'ignore',
          timeout: 20_000,
        });
      } catch {
        // A job that fails is as good: the name has run nothing.
      }
    }
    const made = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    return { made, words: existsSync(words) ? readFileSync(words, 'utf8') : '' };
  }

  test.each(
    files
      .filter((file) => !file.startsWith('examples/'))
      .flatMap((file) => names.map((name) => [file, name])),
  )(
    'in a real shell, %s runs no part of the name %s',
    (file = '', name = '') => {
      const { made, words } = played(file, name);
      expect(made.filter((each) => each.endsWith('pwned'))).toEqual([]);
      // The spec has arrived as one word.
      expect(words).toContain(`-f\n${name}\n`);
    },
    60_000,
  );
});
