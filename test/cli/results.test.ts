import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, test } from 'vitest';
import { folderWith, inProcess, shop } from './run.ts';

let cwd: string;

beforeAll(async () => {
  cwd = folderWith({
    'vdcsync.yaml': shop,
    'wrong.yaml': 'version: 1\nproject: {id: x}\nservers: {a: 1}\n',
    'one.yaml': 'version: 1\nproject: {id: 1}\nips: {a: {}}\n',
  });
  await inProcess(['apply', '--emulator', '--yes', '--exclude', 'networks.backend'], { cwd });
});

function schemaOf(name: string) {
  const ajv = new Ajv2020({ strict: false });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  const path = new URL(`../../schemas/${name}.schema.json`, import.meta.url);
  return ajv.compile(JSON.parse(readFileSync(path, 'utf8')));
}

describe('schemas: results as JSON, as their schemas say', () => {
  test.each([
    ['status', ['status', '--emulator']],
    ['status', ['status', '--offline']],
    ['history', ['history']],
    ['bill', ['bill', '--emulator']],
    ['bill', ['bill', '--offline', '--month', '2026-01']],
    ['explain', ['explain', 'outcome_unknown']],
    ['explain', ['explain', 'networks.backend', '--emulator']],
    ['explain', ['explain', 'servers.web-1', '--offline']],
    ['output', ['output', '--emulator']],
    ['output', ['output', '--offline']],
    ['doctor', ['doctor', '--emulator']],
    ['rehearse', ['rehearse', '-f', 'one.yaml', '--trials', '1']],
    ['validate', ['validate']],
    ['validate', ['validate', '-f', 'wrong.yaml']],
    ['settled', ['adopt', 'networks.backend', '32', '--emulator']],
    ['plan', ['plan', '--emulator', '--target', 'networks.backend']],
    ['plan', ['plan', '--emulator', '--state', 'new/state.db']],
  ])('%s: %j', async (name, args) => {
    if (name === 'settled') await inProcess(['apply', '--emulator', '--yes'], { cwd });
    const { stdout, stderr } = await inProcess([...args, '--format', 'json'], { cwd });
    const validate = schemaOf(name);
    expect(validate(JSON.parse(stdout)), `${JSON.stringify(validate.errors)} ${stderr}`).toBe(true);
  });
});
