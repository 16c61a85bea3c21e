// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { projectSchemaText, schemaPath } from '../../src/spec/generate-schema.ts';
import { projectJsonSchema } from '../../src/spec/json-schema.ts';
import { spec } from './read.ts';

const validate = new Ajv({ strict: false, allErrors: true }).compile(projectJsonSchema());

describe('spec/json-schema', () => {
  test('is committed as the code makes it', () => {
    expect(readFileSync(schemaPath, 'utf8')).toBe(projectSchemaText());
  });

  test.each(['shop', 'gpu', 'full'])('accepts examples/%s.yaml', (name) => {
    validate(parse(readFileSync(`examples/${name}.yaml`, 'utf8')));
    expect(validate.errors).toBeNull();
  });

  test.each([
    ['an empty address and empty maps', spec('settings:', 'networks:', 'ips:', '  web:')],
    ['a bound network without a cidr', spec('networks: {a: {id: 3}}')],
    ['a value from the environment', spec('networks: {a: {cidr: "${env:CIDR}"}}')],
    ['rule fields that are not shown', spec('servers: {a: {id: 1, firewall: {rules: [{x: [1]}]}}}')],
  ])('accepts %s', (_what, text) => {
    validate(parse(text));
    expect(validate.errors).toBeNull();
  });

  test.each([
    ['no version', 'project: {id: 1}'],
    ['an unknown field', spec('netwroks: {}')],
    ['an unknown field of a server', spec('servers: {a: {id: 1, coers: 1}}')],
    ['a word that is no choice', spec('settings: {drift: corect}')],
    ['a server name with a dot', spec('servers: {a.b: {id: 1}}')],
    ['a network without a cidr', spec('networks: {a: {}}')],
    ['a cidr that is none', spec('networks: {a: {cidr: x}}')],
    ['a managed entry without what it needs', spec('isos: {a: {managed: true}}')],
    ['a moment without an offset', spec('settings: {suspend: {reason: x, until: "2027-01-31"}}')],
    ['two ways to size a server', spec('servers: {a: {id: 1, cores: 1, plan_id: 3}}')],
    ['a server without a size', spec('servers: {a: {server_type: 3, image: x}}')],
    ['graphics cards beside a package', spec('servers: {a: {id: 1, gpu_package: x, gpus: 1}}')],
    ['two forms of an address', spec('servers: {a: {id: 1, public_ipv4: {new: true, reuse: true}}}')],
    ['an id of another kind', spec('isos: {a: {id: 3}}')],
  ])('refuses %s', (_what, text) => {
    expect(validate(parse(text))).toBe(false);
  });

  test('has words for every field, and the defaults', () => {
    const schema = projectJsonSchema() as { properties: Record<string, { description?: string }> };
    for (const [name, { description }] of Object.entries(schema.properties)) {
      expect(description, name).toBeTruthy();
    }
    expect(JSON.stringify(schema)).toContain('"default":"never"');
  });
});
