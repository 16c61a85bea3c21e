import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

function filesOf(folder: string): { file: string; lines: string[] }[] {
  return readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => ({
      file: `${folder}/${name}`,
      lines: readFileSync(`${root}${folder}/${name}`, 'utf8').split('\n'),
    }));
}

/** Code without its comments, line by line. */
function code(lines: readonly string[]): string[] {
  return lines.map((line) => (/^\s*(\*|\/\*|\/\/)/.test(line) ? '' : line.replace(/\s\/\/ .*$/, '')));
}

const source = filesOf('src');
const tests = filesOf('test');
/** The only rooms that touch the process's globals. */
const edges = /^src\/(platform|cli)\//;

const banned: readonly (readonly [RegExp, string])[] = [
  [/\bDate\.now\b/, 'the Clock that was handed in'],
  [/\bnew Date\(\s*\)/, 'the Clock that was handed in'],
  [/\bperformance\.now\b/, "the Clock's monotonic()"],
  [/\bMath\.random\b/, 'the Random that was handed in'],
  [/(?<![.\w])(setTimeout|setInterval)\(/, "the Clock's sleep()"],
  [/\bprocess\.env\b/, 'an argument: the environment is read in src/cli'],
  [/(?<![.\w])console\./, 'the logger, or an event'],
  [/(?<![.\w])fetch\(/, 'the Transport that was handed in'],
];

describe('src: tidiness', () => {
  test.each(banned)('src outside platform and cli has no %s: use %s', (pattern) => {
    const found = source
      .filter(({ file }) => !edges.test(file))
      .flatMap(({ file, lines }) =>
        code(lines).flatMap((line, index) =>
          pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [],
        ),
      );
    expect(found).toEqual([]);
  });

  test('only src/cli sets the exit code', () => {
    const found = source.filter(
      ({ file, lines }) =>
        !file.startsWith('src/cli/') && /process\.exit(Code)?\b/.test(code(lines).join('\n')),
    );
    expect(found.map(({ file }) => file)).toEqual([]);
  });

  test('no file is longer than 400 lines', () => {
    const long = source
      .filter(({ lines }) => lines.length > 401)
      .map(({ file, lines }) => `${file}: ${lines.length}`);
    expect(long).toEqual([]);
  });

  test('no file has a TODO comment, and no test is skipped or run alone', () => {
    const later = /\b(TODO|FIXME|XXX)\b/;
    const partial = /\b(test|it|describe)\.(skip|only|todo)\b|\b[xf](it|describe)\(/;
    const found = [...source, ...tests].flatMap(({ file, lines }) =>
      lines.flatMap((line, index) =>
        file !== 'test/tidy.test.ts' && (later.test(line) || partial.test(line))
          ? [`${file}:${index + 1}`]
          : [],
      ),
    );
    expect(found).toEqual([]);
  });

  test('no file contains an absolute path of a machine', () => {
    const path = /(^|[\s'"`(])\/(home|Users|root|work|mnt)\/\w/;
    const found = [...source, ...tests].flatMap(({ file, lines }) =>
      lines.flatMap((line, index) => (path.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
    );
    expect(found).toEqual([]);
  });

  test('finds the source files', () => {
    expect(source.length).toBeGreaterThan(100);
  });

  test('each describe begins with the file or folder under test', () => {
    const suites = tests.filter(({ file }) => file.endsWith('.test.ts'));
    const found = suites.flatMap(({ file, lines }) =>
      [...lines.join('\n').matchAll(/^describe(?:\.\w+(?:\([^\n]*?\))?)*\(\s*(['`])(.*?)\1/gm)]
        .map(([, , title = '']) => title)
        .filter((title) => !existsSync(`${root}${title.split(/: | /)[0]}`))
        .map((title) => `${file}: ${title}`),
    );
    expect(found).toEqual([]);
  });
});
