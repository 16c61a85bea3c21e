import type { YAMLError } from 'yaml';
import type { Position } from '../core/desired.ts';
import type { Report } from './located.ts';

/** Reports one syntax error in plain words, with the line of the file and a mark under the column. */
export function reportSyntax(
  { code, message, pos: [offset] }: Pick<YAMLError, 'code' | 'message' | 'pos'>,
  source: string,
  at: (offset: number) => Position,
  report: Report,
): void {
  const position = at(offset);
  report(position, wordsFor(code, message), excerpt(source, position));
}

function wordsFor(code: string, message: string): string {
  if (code === 'MISSING_CHAR') return missing.find(([pattern]) => pattern.test(message))?.[1] ?? message;
  return words[code] ?? message;
}

const words: Readonly<Record<string, string>> = {
  BAD_DQ_ESCAPE: 'this escape is unknown: write `\\\\` for a backslash, or put the text in single quotes',
  BAD_INDENT: 'the indentation does not fit the lines above: give all fields of one map the same indentation',
  BAD_SCALAR_START: 'a text cannot begin with this character: put the text in quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'a second `: ` on one line: put the text in quotes, or begin the nested map on a new line',
  BLOCK_IN_FLOW: 'inside braces and brackets, lists and maps need braces and brackets too',
  MULTILINE_IMPLICIT_KEY: 'a field needs its name and a colon on one line: `name: value`',
  TAB_AS_INDENT: 'a tab indents this line: indent with spaces',
  UNEXPECTED_TOKEN: 'unexpected text: check quotes, brackets and indentation here and in the line above',
};

/** The kinds of missing characters, by the message of the library. */
const missing: readonly (readonly [RegExp, string])[] = [
  [/closing .*quote/i, 'the closing quote of a text is missing'],
  [/end with|must end/i, 'the closing brace or bracket is missing'],
  [/, between/i, 'a comma between two entries is missing'],
  [/followed by map values/i, 'a colon and a value are missing after this name: `name: value`'],
  [/space/i, 'a space is missing'],
];

const mostShown = 120;

/** The line up to its most useful length, with a caret; `undefined` where the caret would be outside. */
function excerpt(source: string, { line, column }: Position): string | undefined {
  const text = (source.split('\n')[line - 1] ?? '').replaceAll('\t', ' ').replace(/\r$/, '');
  if (text.trim() === '' || column > mostShown) return undefined;
  return `  ${text.slice(0, mostShown)}\n  ${' '.repeat(column - 1)}^`;
}
