import type { CST } from 'yaml';
import { Lexer, LineCounter, Parser, CST as Syntax } from 'yaml';
import type { Position } from '../core/desired.ts';
import type { Report } from './located.ts';

/** The limits that the format promises. */
const maxBytes = 1024 * 1024;
const maxDepth = 32;
/** Entries of one list or one map: every rule is checked for each. */
const maxEntries = { list: 1_000, map: 10_000 } as const;
/** Pieces of syntax: a file of 1 MiB that is a spec has fewer. */
const maxLexemes = 800_000;
/** A broken file breaks over and over: the first few say it, and the rest would only take time. */
const maxSyntaxErrors = 20;
export const coreTags = new Set([
  '!',
  ...['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((tag) => `!!${tag}`),
]);

export interface Tokens {
  readonly tokens: readonly CST.Token[];
  readonly lines: LineCounter;
}

/**
 * Cuts YAML into tokens and checks the limits before any collection is built:
 * building nested collections recurses, so a file of brackets alone would exhaust the
 * stack. Reports all errors. Returns `undefined` if the rest is not worth building.
 */
export function tokenize(file: string, text: string, report: Report): Tokens | undefined {
  if (Buffer.byteLength(text) > maxBytes) {
    report({ file, line: 1, column: 1 }, 'the file is larger than 1 MiB');
    return undefined;
  }
  const lines = new LineCounter();
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  lines.addNewLine(0);
  let wrong = 0;
  let content = false;
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    const { offset } = parser;
    lexemes += 1;
    if (lexemes > maxLexemes) {
      report({ file, line: 1, column: 1 }, 'the file holds too many values: split it into several files');
      return undefined;
    }
    if (!content && /^(?:"|'[^']*$)/.test(lexeme) && !/^(["']).*\1$/s.test(lexeme)) {
      // All lines up to the end belong to the text: the place where it begins shows the mistake.
      const { line, col: column } = lines.linePos(offset);
      const position = { file, line, column };
      report(position, 'the closing quote of this text is missing', excerpt(text, position));
      return undefined;
    }
    for (const token of parser.next(lexeme)) {
      tokens.push(token);
      if (token.type === 'error') wrong += 1;
    }
    const refused = content ? undefined : refusal(lexeme);
    const long = tooLong(parser.stack);
    if (long !== undefined) {
      const { line, col } = lines.linePos(long.offset);
      report({ file, line, column: col }, long.problem);
      return undefined;
    }
    const problem = refused ?? tooDeep(parser.stack);
    // The text of a scalar follows this mark. It may begin with any character.
    content = lexeme === Syntax.SCALAR;
    if (problem !== undefined) {
      const { line, col } = lines.linePos(offset);
      report({ file, line, column: col }, problem);
      if (refused === undefined) return undefined;
      wrong += 1;
    }
    if (wrong >= maxSyntaxErrors) break;
  }
  for (const token of parser.end()) tokens.push(token);
  return { tokens, lines };
}

function refusal(lexeme: string): string | undefined {
  switch (Syntax.tokenType(lexeme)) {
    case 'alias':
      return `aliases are not accepted: replace \`${lexeme}\` by its value`;
    case 'tag':
      return coreTags.has(lexeme) ? undefined : `the tag \`${lexeme}\` is not accepted: remove it`;
    case 'directive-line':
      return lexeme.trim() === '%YAML 1.2' ? undefined : 'directives are not accepted: remove the line';
    default:
      return undefined;
  }
}

/** The list or map that is being built, where it has too many entries: the rest is not even cut into tokens. */
function tooLong(
  stack: readonly CST.Token[],
): { readonly offset: number; readonly problem: string } | undefined {
  for (const token of stack.slice(-2)) {
    if (!('items' in token) || !Array.isArray(token.items)) continue;
    const isList =
      token.type === 'block-seq' || (token.type === 'flow-collection' && token.start.source === '[');
    const most = isList ? maxEntries.list : maxEntries.map;
    // The last one has only begun.
    if (token.items.length <= most + 1) continue;
    const what = isList ? 'list' : 'map';
    return {
      offset: token.offset,
      problem: `a ${what} has at most ${most} entries: split it, or remove the rest`,
    };
  }
  return undefined;
}

function tooDeep(stack: readonly CST.Token[]): string | undefined {
  if (stack.length <= maxDepth) return undefined;
  const collections = stack.filter(
    ({ type }) => (type.startsWith('block-') && type !== 'block-scalar') || type === 'flow-collection',
  );
  return collections.length > maxDepth ? `nested deeper than ${maxDepth} levels` : undefined;
}

const mostShown = 120;

/** The line up to its most useful length, with a caret; `undefined` where the caret would be outside. */
export function excerpt(source: string, { line, column }: Position): string | undefined {
  const text = (source.split('\n')[line - 1] ?? '').replaceAll('\t', ' ').replace(/\r$/, '');
  if (text.trim() === '' || column > mostShown) return undefined;
  return `  ${text.slice(0, mostShown)}\n  ${' '.repeat(column - 1)}^`;
}
