import { stripVTControlCharacters } from 'node:util';

/**
 * The display of a terminal over time, without colours: lines that stay, and after each change the
 * rows that are redrawn, marked by `┆`. A write that only turns the spinner is left out.
 */
export function screens(written: readonly (readonly [mark: string, text: string])[]): string {
  let shown = '';
  let last = '';
  for (const [, text] of written) {
    const lines = stripVTControlCharacters(text).split('\n').slice(0, -1);
    const rows = lines
      .filter(isRow)
      .map((line) => `┆ ${line.replace(spinner, '⠋')}\n`)
      .join('');
    const stay = lines
      .filter((line) => !isRow(line))
      .map((line) => `${line}\n`)
      .join('');
    shown += rows === last ? stay : stay + rows;
    last = rows;
  }
  return shown;
}

const spinner = /^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏](?= )/;

/** The count of operations, an operation in flight, or the number of further operations. */
function isRow(line: string): boolean {
  return spinner.test(line) || /^(· | {2}\d+ of \d+ done$| {2}… \d+ more$)/.test(line);
}
