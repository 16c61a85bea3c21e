import {
  Composer,
  CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type ParsedNode,
  Parser,
  type YAMLError,
} from 'yaml';
import type { Position } from '../core/desired.ts';
import { type Environment, expand, marker, type SpecTrust } from './environment.ts';
import { formatPosition, type Located, type Report } from './located.ts';

/** Assigning one of these would change an object's nature instead of adding a field. */
const forbiddenKeys = new Set(['__proto__', 'constructor', 'prototype']);

interface Reading {
  readonly environment: Environment;
  readonly trust: SpecTrust;
  readonly report: Report;
  at(offset: number): Position;
}

/**
 * One YAML 1.2 document as located values; `undefined` where there is none. Every
 * error of the YAML itself is reported with its position.
 */
export function readYaml(
  file: string,
  source: string,
  { environment, trust }: Pick<Reading, 'environment' | 'trust'>,
  report: Report,
): Located | undefined {
  const text = source.startsWith('\uFEFF') ? source.slice(1) : source;
  const lines = new LineCounter();
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const tokens = tokenize(text, lines, at, report);
  const node = tokens && compose(tokens, text, at, report);
  return node && locate(node, { environment, trust, report, at });
}

function compose(
  tokens: readonly CST.Token[],
  source: string,
  at: (offset: number) => Position,
  report: Report,
): ParsedNode | undefined {
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    intAsBigInt: true,
    // The check of the library is quadratic; `locate` finds duplicates with a map.
    uniqueKeys: false,
    logLevel: 'silent',
  });
  const [document, second] = [...composer.compose(tokens, true, source.length)];
  const errors = document?.errors ?? [];
  const unquoted = errors.filter(({ pos: [at] }) => source.startsWith('${env:', at - 1));
  for (const { pos } of unquoted) {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the syntax being explained
    report(at(pos[0] - 1), 'inside braces and brackets a variable needs quotes: write "${env:NAME}"');
  }
  // YAML reads the braces as a map. All further errors are consequences.
  if (unquoted.length > 0) return undefined;
  // A syntax error moves the structure of all lines below it, so each further error may be its consequence.
  const [wrong] = errors.toSorted((one, other) => one.pos[0] - other.pos[0]);
  if (wrong !== undefined) reportSyntax(wrong, source, at, report);
  if (wrong !== undefined || document === undefined) return undefined;
  if (second !== undefined) {
    report(
      at((second.contents as ParsedNode | null)?.range?.[0] ?? second.range[0]),
      'a second document begins here: one file holds one document',
    );
    return undefined;
  }
  const contents = document.contents as ParsedNode | null;
  if (contents === null || (isScalar(contents) && contents.value === null)) {
    report(
      at(0),
      'the file is empty: a spec has at least `version: 1` and `project: {id: …}`, an overlay `{}`',
    );
    return undefined;
  }
  return contents;
}

function locate(node: ParsedNode | null, reading: Reading, keyPosition?: Position): Located {
  const own = node === null ? undefined : reading.at(node.range[0]);
  const implied = node === null || (isScalar(node) && node.value === null && (node.source ?? '') === '');
  const position = (implied ? keyPosition : own) ?? own ?? reading.at(0);
  const base = { position, ...(keyPosition && { keyPosition }), secret: false, broken: false };
  // Refused as a token already.
  if (isAlias(node) || (isScalar(node) && hasForeignTag(node)))
    return { ...base, value: null, shown: '', broken: true };
  if (isMap(node)) return { ...base, ...locateMap(node.items as never, reading), shown: 'a map' };
  if (isSeq(node)) {
    const items = (node.items as (ParsedNode | null)[]).map((item) => locate(item, reading));
    return { ...base, items, value: items.map(({ value }) => value), shown: 'a list' };
  }
  return { ...base, ...scalar(isScalar(node) ? node.value : null, position, reading) };
}

function hasForeignTag({ tag }: { readonly tag?: string | undefined }): boolean {
  return tag !== undefined && !coreTags.has(tag.replace('tag:yaml.org,2002:', '!!'));
}

function locateMap(
  pairs: readonly { readonly key: ParsedNode; readonly value: ParsedNode | null }[],
  reading: Reading,
): Pick<Located, 'value' | 'fields' | 'partial'> {
  const fields = new Map<string, Located>();
  const value: Record<string, unknown> = {};
  let partial = false;
  for (const pair of pairs) {
    const position = reading.at(pair.key.range[0]);
    const name = fieldName(pair.key);
    const earlier = name === undefined ? undefined : fields.get(name);
    const problem =
      name === undefined
        ? 'the name of a field must be plain text'
        : name === '<<'
          ? 'merge keys are not accepted: write the fields out'
          : forbiddenKeys.has(name)
            ? `\`${name}\` cannot be a name`
            : earlier &&
              `duplicate field \`${name}\`: first at ${formatPosition(earlier.keyPosition ?? earlier.position)}`;
    partial ||= name === undefined || name === '<<';
    if (problem !== undefined || name === undefined) {
      reading.report(position, problem ?? '');
      continue;
    }
    const located = locate(pair.value, reading, position);
    fields.set(name, located);
    value[name] = located.value;
  }
  return { fields, value, ...(partial ? { partial } : {}) };
}

/** Names are text, also where YAML would read `1` or `true`. */
function fieldName(key: ParsedNode): string | undefined {
  if (!isScalar(key) || key.value === null) return undefined;
  return typeof key.value === 'string' ? key.value : key.source;
}

function scalar(
  value: unknown,
  position: Position,
  { environment, trust, report }: Reading,
): Pick<Located, 'value' | 'shown' | 'secret' | 'broken' | 'written' | 'variables'> {
  const refuse = (message: string) => {
    report(position, message);
    return { value: null, shown: '', secret: false, broken: true };
  };
  const plain = (each: unknown, shown: string) => ({ value: each, shown, secret: false, broken: false });
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number)
      ? plain(number, String(number))
      : refuse(`${abridge(String(value))} is too large: whole numbers end at ±${Number.MAX_SAFE_INTEGER}`);
  }
  if (typeof value === 'number') {
    return Number.isFinite(value) ? plain(value, String(value)) : refuse('this number cannot be used');
  }
  if (typeof value !== 'string') return plain(value, String(value));
  if (!marker.test(value)) return plain(value, quote(value));
  const expansion = expand(value, environment, trust);
  if ('problem' in expansion) return refuse(expansion.problem);
  const { text, used } = expansion;
  const written = text === value ? {} : { written: value };
  if (used.length === 0) return { ...plain(text, quote(value)), ...written };
  const variables = new Map(used.map((name) => [name, environment[name] ?? '']));
  return { value: text, shown: quote(value), secret: true, broken: false, written: value, variables };
}

function quote(text: string): string {
  return JSON.stringify(abridge(text));
}

function abridge(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57).toWellFormed()}...` : text;
}

/** Reports one syntax error in plain words, with the line of the file and a mark under the column. */
function reportSyntax(
  { code, message, pos: [offset] }: Pick<YAMLError, 'code' | 'message' | 'pos'>,
  source: string,
  at: (offset: number) => Position,
  report: Report,
): void {
  const position = at(offset);
  report(position, wordsFor(code, message), excerpt(source, position));
}

function wordsFor(code: string, message: string): string {
  // The library reports a brace that never closes as a wrong indentation of the next line.
  if (code === 'MISSING_CHAR' || / end with a /.test(message))
    return missing.find(([pattern]) => pattern.test(message))?.[1] ?? message;
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
  [/end with|must end/i, 'the closing brace or bracket is missing, here or in a line above'],
  [/, between/i, 'a comma between two entries is missing'],
  [/followed by map values/i, 'a colon and a value are missing after this name: `name: value`'],
  [/space/i, 'a space is missing'],
];

/** The limits that the format promises. */
const maxBytes = 1024 * 1024;
const maxDepth = 32;
/** Entries of one list or one map: every rule is checked for each. */
const maxEntries = { list: 1_000, map: 10_000 } as const;
/** Pieces of syntax: a file of 1 MiB that is a spec has fewer. */
const maxLexemes = 800_000;
/** A broken file breaks over and over: the first few say it, and the rest would only take time. */
const maxSyntaxErrors = 20;
const coreTags = new Set([
  '!',
  ...['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((tag) => `!!${tag}`),
]);

/**
 * Cuts YAML into tokens and checks the limits before any collection is built:
 * building nested collections recurses, so a file of brackets alone would exhaust the
 * stack. Reports all errors. Returns `undefined` if the rest is not worth building.
 */
function tokenize(
  text: string,
  lines: LineCounter,
  at: Reading['at'],
  report: Report,
): readonly CST.Token[] | undefined {
  const refuse = (offset: number, problem: string, shown?: string) => void report(at(offset), problem, shown);
  if (Buffer.byteLength(text) > maxBytes) return refuse(0, 'the file is larger than 1 MiB');
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  lines.addNewLine(0);
  let wrong = 0;
  let content = false;
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    const { offset } = parser;
    lexemes += 1;
    if (lexemes > maxLexemes) return refuse(0, 'the file holds too many values: split it into several files');
    // All lines up to the end belong to the text: the place where it begins shows the mistake.
    if (!content && /^(?:"|'[^']*$)/.test(lexeme) && !/^(["']).*\1$/s.test(lexeme))
      return refuse(offset, 'the closing quote of this text is missing', excerpt(text, at(offset)));
    for (const token of parser.next(lexeme)) {
      tokens.push(token);
      if (token.type === 'error') wrong += 1;
    }
    const refused = content ? undefined : refusal(lexeme);
    const long = tooLong(parser.stack);
    if (long !== undefined) return refuse(long.offset, long.problem);
    const problem = refused ?? tooDeep(parser.stack);
    // The text of a scalar follows this mark. It may begin with any character.
    content = lexeme === CST.SCALAR;
    if (problem !== undefined) {
      refuse(offset, problem);
      if (refused === undefined) return undefined;
      wrong += 1;
    }
    if (wrong >= maxSyntaxErrors) break;
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

function refusal(lexeme: string): string | undefined {
  switch (CST.tokenType(lexeme)) {
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
function excerpt(source: string, { line, column }: Position): string | undefined {
  const text = (source.split('\n')[line - 1] ?? '').replaceAll('\t', ' ').replace(/\r$/, '');
  if (text.trim() === '' || column > mostShown) return undefined;
  return `  ${text.slice(0, mostShown)}\n  ${' '.repeat(column - 1)}^`;
}
