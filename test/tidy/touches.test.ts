import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { codes } from '../../src/core/codes.ts';
import { factsOf, type KindName, kindNames } from '../../src/core/kind-facts.ts';
import { describeMetrics } from '../../tools/metrics.ts';
import { operations } from '../simulation/operations.ts';

/** The most source files that may name one of a sort: each of them is a file to change for another one. */
const most = { kind: 12, operation: 6, command: 3, fault: 2, metric: 1 };

const source = join(import.meta.dirname, '../../src');

/** The emulator and the simulation are a second reading of the API, with their own names. */
const isCounted = (path: string) => !/^(emulator|simulation)\//.test(path);

interface Names {
  readonly path: string;
  /** Identifiers, names of properties, and strings. Comments do not count. */
  readonly names: ReadonlySet<string>;
}

const all: readonly Names[] = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .sort()
  .map((path) => ({ path, names: namesIn(path) }));

function namesIn(path: string): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node) && isStandard(node.getText())) return;
    // A message may propose any command. The commands themselves are in one file.
    const isCommands = path === 'cli/program.ts';
    if (
      !isCommands &&
      ts.isStringLiteralLike(node) &&
      ts.isCallExpression(node.parent) &&
      isAdvice(node.parent)
    )
      return;
    if (ts.isImportDeclaration(node)) node.importClause?.forEachChild(visit);
    else if (ts.isIdentifier(node)) names.add(node.text);
    else if (ts.isStringLiteralLike(node)) names.add(node.text);
    else node.forEachChild(visit);
  };
  visit(ts.createSourceFile(path, readFileSync(join(source, path), 'utf8'), ts.ScriptTarget.Latest, true));
  return names;
}

function isAdvice({ expression }: ts.CallExpression): boolean {
  return ts.isIdentifier(expression) && expression.text === 'command';
}

/** ISO 8601 is no image. */
function isStandard(text: string): boolean {
  return text.startsWith('z.iso.') || text.endsWith('.isoTime');
}

/** `isoSchema`, `findIso` and `isos` are words of `iso`; `backup_policy` has two words. */
function wordsOf(name: string): readonly string[] {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return words.map((word) => word.replace(/ies$/, 'y').replace(/s$/, ''));
}

function has(words: readonly string[], wanted: readonly string[]): boolean {
  return words.some((_, at) => wanted.every((word, next) => words[at + next] === word));
}

/** The files of a kind: `iso.ts`, `firewall.ts` and the folder `firewall/`. They count as one. */
function ownerOf(path: string): KindName | undefined {
  const [folder, file = ''] = path.split('/');
  if (folder !== 'reconcilers') return undefined;
  const words = wordsOf(file.replace(/\.ts$/, ''));
  const own = kindNames.filter((kind) => wordsOf(kind).every((word, at) => words[at] === word));
  return own.toSorted((one, other) => other.length - one.length)[0];
}

/** The kind whose file sends the operation. */
function senderOf(operation: string): KindName | undefined {
  const sent = `name: '${operation}'`;
  const path = all.find((each) => ownerOf(each.path) && textOf(each.path).includes(sent))?.path;
  return path === undefined ? undefined : ownerOf(path);
}

function textOf(path: string): string {
  return readFileSync(join(source, path), 'utf8');
}

const senders = new Map(operations.map((operation) => [operation as string, senderOf(operation)]));

/**
 * The places that name a kind, in a name or in a string that is one name. An operation belongs to the kind that sends it. A code has a count of its own, and
 * the files of another kind belong to that kind.
 */
function placesOf(kind: KindName): readonly string[] {
  const wanted = [wordsOf(kind)];
  const longer = kindNames.filter((each) => each !== kind && has(wordsOf(each), wordsOf(kind)));
  const isIts = (name: string) => {
    if (Object.hasOwn(codes, name) || !/^[\w.-]+$/.test(name)) return false;
    if (senders.has(name)) return senders.get(name) === kind;
    const words = wordsOf(name);
    return wanted.some((each) => has(words, each)) && !longer.some((each) => has(words, wordsOf(each)));
  };
  const places = all
    .filter(({ path, names }) => isCounted(path) && [...names].some(isIts))
    .filter(({ path }) => (ownerOf(path) ?? kind) === kind)
    .map(({ path }) => (ownerOf(path) === undefined ? path : `reconcilers: ${kind}`));
  return [...new Set(places)];
}

function naming(name: string, counts = isCounted): readonly string[] {
  return all.filter(({ path, names }) => counts(path) && names.has(name)).map(({ path }) => path);
}

/**
 * The rules about money, exposure and attachment are stated with these nouns, as they are in the document of the API.
 * Other kinds have no rule outside their own file.
 */
const vocabulary: ReadonlySet<KindName> = new Set([
  'server',
  'ip',
  'network',
  'network_interface',
  'firewall',
  'backup',
]);

describe('src/core/kind-facts.ts', () => {
  test.each(
    kindNames.filter((kind) => !vocabulary.has(kind)),
  )(`%s is named by at most ${most.kind} source files`, (kind) => {
    const places = placesOf(kind);
    expect(places).toContain('core/kind-facts.ts');
    expect(places.length > most.kind ? places : []).toEqual([]);
  });

  test('a kind without a role in the table is not part of the vocabulary', () => {
    const roles = ['container', 'bought', 'endsExposure', 'staysBilled', 'namedAfter'] as const;
    const others = kindNames.filter((kind) => !vocabulary.has(kind));
    expect(others.filter((kind) => roles.some((role) => factsOf(kind)[role] !== undefined))).toEqual([]);
  });
});

describe('src/core/ports.ts', () => {
  test.each(
    operations,
  )(`the operation %s is named by at most ${most.operation} source files`, (operation) => {
    const places = naming(operation);
    expect(places.length > most.operation ? places : []).toEqual([]);
  });
});

describe('src/cli/program.ts', () => {
  test(`the command \`export\` touches at most ${most.command} source files`, () => {
    const places = all
      .filter(({ path }) => path.startsWith('cli/'))
      .filter(({ path, names }) => path === 'cli/commands/export.ts' || names.has('export'))
      .map(({ path }) => path);
    expect(places).toContain('cli/program.ts');
    expect(places.length > most.command ? places : []).toEqual([]);
  });
});

describe('src/simulation/fault-kinds.ts', () => {
  test.each([
    'task stuck',
    'list cut off',
  ])(`the fault "%s" is named by at most ${most.fault} source files`, (name) => {
    const places = naming(name, () => true);
    expect(places).toContain('simulation/fault-kinds.ts');
    expect(places.length > most.fault ? places : []).toEqual([]);
  });
});

describe('src/daemon/http/metrics.ts', () => {
  const names = describeMetrics().map(({ name }) => name.replace(/^vdcsync_/, ''));
  const measures = names.filter((name) =>
    /_(seconds|total|scopes|keys|addresses|resources|length)$/.test(name),
  );
  test.each(measures)(`the metric %s is named by at most ${most.metric} source file`, (name) => {
    const places = naming(name);
    expect(places.length > most.metric ? places : []).toEqual([]);
  });
});
