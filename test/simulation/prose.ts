import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/*
 * Plays seeds and prints the rule that each breaks. Every message of core, plan, engine and reconcilers is replaced by one word
 * before the modules load, so a decision that reads a text goes wrong. `--plant FROM=>TO` changes the source first.
 */
const args = process.argv.slice(2);
const seeds = Number(args[args.indexOf('--seeds') + 1]);
const plant = args.includes('--plant') ? (args[args.indexOf('--plant') + 1] ?? '').split('=>') : undefined;
const engine = /\/src\/(core|plan|engine|reconcilers)\/.*\.ts$/;

/** Two words or more are a message, unless they are the arguments of a command. */
const isProse = (text: string) => !text.startsWith('--') && /[A-Za-z]{2,}[,:;]? +[A-Za-z]{2,}/.test(text);

function replaced(source: string): string {
  const file = ts.createSourceFile('a.ts', source, ts.ScriptTarget.Latest, true);
  const edits: (readonly [from: number, to: number, text: string])[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTemplateExpression(node)) {
      const literals = [node.head, ...node.templateSpans.map(({ literal }) => literal)];
      if (isProse(literals.map(({ text }) => text).join('x')))
        edits.push(...literals.map((each) => [each.getStart(), each.getEnd(), shortened(each)] as const));
      for (const { expression } of node.templateSpans) visit(expression);
    } else if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      if (isProse(node.text) && !ts.isImportDeclaration(node.parent))
        edits.push([node.getStart(), node.getEnd(), "'message'"]);
    } else ts.forEachChild(node, visit);
  };
  visit(file);
  const last = edits.sort(([one], [other]) => other - one);
  return last.reduce((done, [from, to, text]) => `${done.slice(0, from)}${text}${done.slice(to)}`, source);
}

/** The part of a template without its words: the values in it stay, as a report that names no id reports nothing. */
function shortened(literal: ts.TemplateHead | ts.TemplateMiddle | ts.TemplateTail): string {
  if (ts.isTemplateHead(literal)) return '`message ${';
  return ts.isTemplateMiddle(literal) ? '} ${' : '} `';
}

registerHooks({
  load(url, context, next) {
    if (!engine.test(url)) return next(url, context);
    const [from = '', to = ''] = plant ?? [];
    const text = readFileSync(fileURLToPath(url), 'utf8');
    const planted = from === '' ? text : text.replace(from, to);
    return { format: 'module-typescript', shortCircuit: true, source: replaced(planted) };
  },
});

const { createCoverage } = await import('./coverage.ts');
const { generateStory } = await import('./generator.ts');
const { play } = await import('./play.ts');
for (let seed = 0; seed < seeds; seed++) {
  const { violation } = await play(generateStory(seed), createCoverage());
  process.stdout.write(`${seed} ${violation?.rule ?? 'sound'}\n`);
}
