import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const source = join(import.meta.dirname, '../../src');
/** The parts that must not know the shape of a body. Only a kind reads the fields of its entries and requests. */
const folders = ['core', 'plan', 'queue', 'engine', 'daemon', 'cli', 'spec'];

/** A brand names a text or a number and reads no field. */
const brands = /^(ResourceKey|OperationId|\w+Id)$/;

/** The casts that remain, with the reason. `most` goes down with each one that goes. */
const permitted: Readonly<Record<string, readonly [most: number, reason: string]>> = {
  'core/intent.ts': [1, 'a stage replaces all fields of the previous stage'],
  'core/kind-facts.ts': [1, 'each fact is true of some kind'],
  'core/json.ts': [2, 'a value with other texts keeps its form; the keys of a constant table'],
  'core/plan-schema.ts': [1, 'zod has no type for the brand of a key'],
  'plan/bill/billed-time.ts': [1, 'the journal of this program holds its bindings'],
  'engine/observe.ts': [2, 'the methods of the port, each with the same cache'],
  'engine/run.ts': [1, 'the fields of two objects in one'],
  'spec/entries.ts': [1, 'the schema of the kind has accepted the fields'],
  'spec/load.ts': [1, 'the schema of the file has accepted the id of the project'],
  'spec/located.ts': [6, 'zod gives its inner schemas without their types'],
  'spec/schemas.ts': [2, 'a map of schemas, made from the kinds'],
  'spec/yaml-tree.ts': [4, 'the types of yaml leave out the positions'],
  'daemon/fleet/board.ts': [2, 'the head of a publication is JSON'],
  'daemon/http/server.ts': [2, 'the types of Node permit servers that this one is not'],
  'daemon/http/webhooks.ts': [1, 'the types of the web stream leave out its iterator'],
  'daemon/operator-commands/control.ts': [1, 'the answer of the same release at its own socket'],
  'daemon/sources/spec-thread.ts': [1, 'the answer of its own thread'],
  'cli/commands/render.ts': [1, 'a module of the user, checked in the next line'],
  'cli/export/yaml.ts': [2, 'the types of yaml leave out the comments'],
  'cli/outputs/outputs.ts': [1, 'one field for each map of the spec file'],
  'cli/rehearse/adapt.ts': [7, 'the entries of a file, as plain data'],
};

/** `as` with a type, except for `as const` and brands. */
function castsIn(path: string): readonly string[] {
  const file = ts.createSourceFile(
    path,
    readFileSync(join(source, path), 'utf8'),
    ts.ScriptTarget.Latest,
    true,
  );
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    node.forEachChild(visit);
    if (!ts.isAsExpression(node) && !ts.isTypeAssertionExpression(node)) return;
    const type = node.type.getText();
    // `as unknown as T` is one cast.
    if (type === 'const' || brands.test(type) || ts.isAsExpression(node.parent)) return;
    const { line } = file.getLineAndCharacterOfPosition(node.getStart());
    found.push(`src/${path}:${line + 1}: as ${type}`);
  };
  visit(file);
  return found;
}

const files = folders
  .flatMap((folder) =>
    readdirSync(join(source, folder), { recursive: true, encoding: 'utf8' }).map((path) =>
      join(folder, path),
    ),
  )
  .filter((path) => path.endsWith('.ts'));

describe('src', () => {
  test('has no cast outside the kinds, except for the casts in the list', () => {
    const found = files.flatMap((path) => {
      const casts = castsIn(path);
      return casts.length > (permitted[path]?.[0] ?? 0) ? casts : [];
    });
    expect(found).toEqual([]);
  });

  test('the list has no file with fewer casts than it permits', () => {
    const left = Object.entries(permitted).filter(
      ([path, [most]]) => !files.includes(path) || castsIn(path).length < most,
    );
    expect(left.map(([path]) => path)).toEqual([]);
  });
});
