import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, test } from 'vitest';
import { shop } from './run.ts';
import { emulated, type Workspace } from './workspace.ts';

let place: Workspace;
beforeAll(async () => {
  place = emulated(shop, {
    'wrong.yaml': 'version: 1\nproject: {id: x}\nservers: {a: 1}\n',
    'one.yaml': 'version: 1\nproject: {id: 1}\nips: {a: {}}\n',
  });
  await place.out('apply --yes --exclude networks.backend');
});

function schemaOf(name: string) {
  const ajv = new Ajv2020({ strict: false });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  const path = new URL(`../../schemas/${name}.schema.json`, import.meta.url);
  return ajv.compile(JSON.parse(readFileSync(path, 'utf8')));
}

describe('schemas: JSON results match their schemas', () => {
  test.each([
    ['status', 'status'],
    ['status', 'status --offline'],
    ['history', 'history'],
    ['bill', 'bill'],
    ['bill', 'bill --offline --month 2026-01'],
    ['explain', 'explain outcome_unknown'],
    ['explain', 'explain networks.backend'],
    ['explain', 'explain servers.web-1 --offline'],
    ['output', 'output'],
    ['output', 'output --offline'],
    ['doctor', 'doctor'],
    ['rehearse', 'rehearse -f one.yaml --trials 1'],
    ['validate', 'validate'],
    ['validate', 'validate -f wrong.yaml'],
    ['settled', 'adopt networks.backend 32'],
    ['plan', 'plan --target networks.backend'],
    ['plan', 'plan --state new/state.db'],
  ])('%s: %s', async (name, words) => {
    if (name === 'settled') await place.out('apply --yes');
    const { stdout, stderr } = await place.run(`${words} --format json`);
    const validate = schemaOf(name);
    expect(validate(JSON.parse(stdout)), `${JSON.stringify(validate.errors)} ${stderr}`).toBe(true);
  });
});
