import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** One line that people read. */
export interface Line {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

function read(file: string): string {
  return readFileSync(`${root}${file}`, 'utf8');
}

/** The files of a folder whose name ends so, by their path from the root. */
export function filesIn(folder: string, ending: RegExp): string[] {
  return readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name))
    .map((name) => `${folder}/${name}`)
    .sort();
}

/**
 * The prose of a Markdown page, with its lines. Code in the text is left out. Of a code block only the comments are kept:
 * the rest is output, which the checks of `src` cover, or code.
 */
export function proseOf(file: string): Line[] {
  let fence = false;
  return read(file)
    .split('\n')
    .map((text, index) => {
      if (/^\s*```/.test(text)) {
        fence = !fence;
        return { file, line: index + 1, text: '' };
      }
      const shown = fence ? commentOf(text) : text;
      return { file, line: index + 1, text: withoutCode(shown) };
    });
}

/** The comments of a YAML file or a unit. */
export function commentsOf(file: string): Line[] {
  return read(file)
    .split('\n')
    .map((text, index) => ({ file, line: index + 1, text: withoutCode(commentOf(text)) }));
}

function commentOf(line: string): string {
  return /(?:^|\s)#+ (.*)$/.exec(line)?.[1] ?? '';
}

function withoutCode(text: string): string {
  return text
    .replace(/`[^`]*`/g, '·')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/<!--.*?-->/g, '');
}

/** Each `description` and `title` of a JSON Schema. */
export function descriptionsOf(file: string): Line[] {
  return read(file)
    .split('\n')
    .flatMap((text, index) => {
      const [, value] = /^\s*"(?:description|title)": "(.*)",?$/.exec(text) ?? [];
      return value === undefined ? [] : [{ file, line: index + 1, text: withoutCode(value) }];
    });
}

/** Texts and comments of a source file: comments, and every string of more than one word. */
export function textsOf(file: string): Line[] {
  const text = read(file);
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lines: Line[] = [];
  const add = (at: number, found: string) => {
    const start = source.getLineAndCharacterOfPosition(at).line + 1;
    for (const [index, each] of found.split('\n').entries()) {
      lines.push({ file, line: start + index, text: withoutCode(each) });
    }
  };
  const visit = (node: ts.Node): void => {
    const isText = ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node);
    const isPart = ts.isTemplateHead(node) || ts.isTemplateMiddle(node) || ts.isTemplateTail(node);
    if ((isText || isPart) && /\S\s+\S/.test(node.text)) add(node.getStart(source), node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  for (const [index, line] of text.split('\n').entries()) {
    const [, comment] = /^\s*(?:\/\*\*?|\*|\/\/) ?(.*)$/.exec(line) ?? [];
    if (comment !== undefined) lines.push({ file, line: index + 1, text: withoutCode(comment) });
  }
  return lines;
}

/** The titles of the tests in a file. */
export function titlesOf(file: string): Line[] {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true);
  const titles: Line[] = [];
  const add = (node: ts.Node | undefined) => {
    if (node === undefined || !(ts.isStringLiteralLike(node) || ts.isTemplateExpression(node))) return;
    const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
    titles.push({ file, line, text: withoutCode(node.getText(source).slice(1, -1)) });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && /^(describe|test)\b/.test(node.expression.getText(source)))
      add(node.arguments[0]);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return titles;
}
