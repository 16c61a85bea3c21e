// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { projectJsonSchema } from '../../tools/project-schema.ts';
import { spec } from './read.ts';

const validate = new Ajv({ strict: false, allErrors: true }).compile(projectJsonSchema());

const schemaPath = 'schemas/project.schema.json';

describe('tools/project-schema.ts', () => {
  test.each(['shop', 'gpu', 'full'])('accepts examples/%s.yaml', (name) => {
    validate(parse(readFileSync(`examples/${name}.yaml`, 'utf8')));
    expect(validate.errors).toBeNull();
  });

  test.each([
    ['an empty address and empty maps', spec('settings:', 'networks:', 'ips:', '  web:')],
    ['a bound network without a cidr', spec('networks: {a: {id: 3}}')],
    ['a value from the environment', spec('isos: {a: {url: "${env:URL}"}}')],
    ['undocumented rule fields', spec('servers: {a: {id: 1, firewall: {rules: [{x: [1]}]}}}')],
  ])('accepts %s', (_what, text) => {
    validate(parse(text));
    expect(validate.errors).toBeNull();
  });

  test.each([
    ['no version', 'project: {id: 1}'],
    ['an unknown field', spec('netwroks: {}')],
    ['an unknown field of a server', spec('servers: {a: {id: 1, coers: 1}}')],
    ['an unknown choice', spec('settings: {drift: corect}')],
    ['a server name with a dot', spec('servers: {a.b: {id: 1}}')],
    ['a network without a cidr', spec('networks: {a: {}}')],
    ['an invalid cidr', spec('networks: {a: {cidr: x}}')],
    ['a managed entry without a required field', spec('isos: {a: {managed: true}}')],
    ['a moment without an offset', spec('settings: {suspend: {reason: x, until: "2027-01-31"}}')],
    ['two sizes of a server', spec('servers: {a: {id: 1, cores: 1, plan_id: 3}}')],
    ['a server without a size', spec('servers: {a: {server_type: 3, image: x}}')],
    ['graphics cards beside a package', spec('servers: {a: {id: 1, gpu_package: x, gpus: 1}}')],
    ['two forms of an address', spec('servers: {a: {id: 1, public_ipv4: {new: true, reuse: true}}}')],
    ['an unknown default', spec('defaults: {servers: {coers: 2}}')],
    ['an id of another kind', spec('isos: {a: {id: 3}}')],
  ])('refuses %s', (_what, text) => {
    expect(validate(parse(text))).toBe(false);
  });

  test('examples/full.yaml has every field, and names the fields that the operator must allow', () => {
    const text = readFileSync('examples/full.yaml', 'utf8');
    const given = new Set(pathsOf(parse(text)));
    const fields = [...new Set(fieldsOf(JSON.parse(readFileSync(schemaPath, 'utf8'))))];
    expect(fields.length).toBeGreaterThan(60);
    // A default is a field of a server, and is described there.
    const own = fields.filter((field) => !field.startsWith('defaults.servers.'));
    expect(own.filter((field) => !given.has(field))).toEqual(['project.token_env', 'project.token_file']);
    for (const name of ['token_env', 'token_file']) expect(text).toMatch(new RegExp(`^ +# ${name}: `, 'm'));
  });

  test('has a description of every field, and the defaults', () => {
    const schema = projectJsonSchema() as { properties: Record<string, { description?: string }> };
    for (const [name, { description }] of Object.entries(schema.properties)) {
      expect(description, name).toBeTruthy();
    }
    expect(JSON.stringify(schema)).toContain('"default":"never"');
  });
});

interface Node {
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node | boolean;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
}

/** What an entry of any collection may have is one field. */
const common = /^(networks|ips|isos|servers|server_images)\.\*\.(id|managed|moved|protect)\b/;
const entry = '*';

function fieldsOf({ properties = {}, additionalProperties, items, anyOf = [] }: Node, path = ''): string[] {
  const inside = (node: Node, step: string) => fieldsOf(node, under(path, step));
  return [
    ...Object.entries(properties).flatMap(([name, node]) => [under(path, name), ...inside(node, name)]),
    ...(typeof additionalProperties === 'object' ? inside(additionalProperties, entry) : []),
    ...(items === undefined ? [] : inside(items, entry)),
    ...anyOf.flatMap((node) => fieldsOf(node, path)),
  ];
}

function pathsOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const named = path === '' || !/^(networks|ips|isos|servers|server_images)$/.test(path);
  return Object.entries(value).flatMap(([name, each]) => {
    const here = under(path, named && !Array.isArray(value) ? name : entry);
    return [here, ...pathsOf(each, here)];
  });
}

function under(path: string, step: string): string {
  return (path === '' ? step : `${path}.${step}`).replace(common, '*.$2');
}
