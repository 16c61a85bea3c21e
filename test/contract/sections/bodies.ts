import { describe, expect } from 'vitest';
import { document, open, test, writes } from '../contract.ts';
import { rule, validWrite } from '../valid-write.ts';
import { trimmed } from '../violations.ts';

type Fields = Readonly<Record<string, unknown>>;

interface FieldSchema {
  readonly properties?: Fields;
  readonly items?: unknown;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
}

/** A value of each JSON type. */
const ANY: readonly unknown[] = [7, 1.5, '1', true, null, {}, []];

/** Further values of fields whose form the document describes by more than a type and a length. */
const FORMS: Fields = {
  name: ['Az 09_.-', 'a/b', 'a:b', 'a,b', 'ü?', 'a\nb', 'a+b', '   '],
  cidr: [
    ...['10.0.0.0/8', ' 1.0.0.0/8 ', '192.168.100.100/32', '1.0.0.0/', '1.0.0/8', '10.0.0.0', '10.0.0.0/244'],
    ...['1000.0.0.0/24', '10.0.0.0.0/24', 'a.b.c.d/24', '::1/128'],
  ],
  public_ipv4: [{ new: 1 }, { new: 'true' }, { new: null }, { new: false }, { new: true, colour: 'red' }],
  rules: ['comment', 'note', 'name', 'desc'].map((name) => [{ ...rule, [name]: 'web' }]),
};

/** Texts at both ends of the permitted length, and just beyond them. */
function lengths(text: unknown, { minLength = 0, maxLength }: FieldSchema): string[] {
  if (maxLength === undefined) return [];
  return [minLength - 1, minLength, maxLength, maxLength + 1].flatMap((length) => {
    const fitted = String(text ?? '')
      .padEnd(length, 'n')
      .slice(0, length);
    return [fitted, ` ${fitted}\t`];
  });
}

/** Values in the place of a value with this schema: of other types, of other lengths, and with other members. */
function others(at: string, value: unknown): unknown[] {
  const pointer = document.follow(at);
  const schema = document.at(pointer) as FieldSchema;
  const { items, minimum = 1 } = schema;
  return [
    ...ANY,
    minimum - 1,
    ...lengths(value, schema),
    ...(Array.isArray(value) && items ? others(`${pointer}/items`, value[0]).map((each) => [each]) : []),
    ...(Array.isArray(value) ? [] : bodies(pointer, value as Fields).map(([, body]) => body)),
  ];
}

/** Bodies that differ from the given one in one field. */
function bodies(at: string, body: Fields): [field: string, body: Fields][] {
  const pointer = document.follow(at);
  const { properties = {} } = document.at(pointer) as FieldSchema;
  return Object.keys(properties).flatMap((field) => {
    const { [field]: value, ...rest } = body;
    const further = (FORMS[field] ?? []) as readonly unknown[];
    return [
      [field, rest] as [string, Fields],
      ...[...others(`${pointer}/properties/${field}`, value), ...further].map((other): [string, Fields] => [
        field,
        { ...body, [field]: other },
      ]),
    ];
  });
}

describe('§4.3 the fields of a body', () => {
  const shown = writes.flatMap((operation) => {
    const schema = `${operation.pointer}/requestBody/content/application~1json/schema`;
    if (document.find(schema) === undefined) return [];
    const pointer = document.follow(schema);
    return document.find(`${pointer}/properties`) === undefined ? [] : [{ ...operation, schema: pointer }];
  });

  // A success for a body that the schema refuses is a violation, so the suite's check of each answer reports it.
  test.each(
    shown,
  )('§4, §8 a body that does not match the schema gets 422 that names the field: $id', async (operation) => {
    const { method, schema } = operation;
    const api = await open();
    const [path, valid = {}] = await validWrite(api, operation);
    let refused = 0;
    for (const [field, body] of bodies(schema, valid)) {
      const answer = await api.send(method, path, { json: body });
      const [complaint] = document.complaints(schema, trimmed(body));
      if (complaint === undefined) {
        const isLimited = document.find(`${schema}/properties/${field}/maxLength`) !== undefined;
        // The value may be impossible, but its length is right.
        if (isLimited) expect(JSON.stringify(answer.problem ?? {})).not.toMatch(/characters/);
        continue;
      }
      refused += 1;
      const named = answer.invalidParams.map((name) => name.split(/[.[]/)[0]);
      expect([body, answer.status, answer.code, [...new Set(named)]]).toEqual([
        body,
        422,
        'invalid_request',
        [field],
      ]);
    }
    expect(refused).toBeGreaterThan(3);
  });

  test.each(
    writes,
  )('§4.3 unknown fields are refused with 422 that names the fields: $id', async (operation) => {
    const api = await open();
    const [path, valid] = await validWrite(api, operation);
    const answer = await api.send(operation.method, path, { json: { ...valid, colour: 'red' } });
    expect([answer.status, answer.code, answer.invalidParams]).toEqual([422, 'invalid_request', ['colour']]);
  });

  test('§4.3 a refusal names every offending field at once', async ({ api }) => {
    const answer = await api.post('/networks', { name: '', cidr: 7, colour: 'red' });
    expect(answer.invalidParams.toSorted()).toEqual(['cidr', 'colour', 'name']);
  });

  test('§4.3 types are strict and strings are trimmed in undocumented payloads too', async ({ api }) => {
    const { id } = await api.server();
    const image = await api.post('/server-images', { server_id: String(id), name: 'image' });
    expect([image.status, image.invalidParams]).toEqual([422, ['server_id']]);
    for (const iso_id of [1, null, 'rescue']) {
      const drive = await api.insertIso(id, iso_id as string);
      expect([drive.status, drive.invalidParams]).toEqual([422, ['iso_id']]);
    }
    expect((await api.insertIso(id, ` ${(await api.iso()).id} `)).status).toBe(200);
  });

  test('§4.3 the strings of a server are trimmed', async ({ api }) => {
    const body = await api.gpuBody();
    const { name, gpu_package, image } = body;
    const padded = { ...body, name: `  ${name}\n`, gpu_package: ` ${gpu_package} `, image: `\t${image}` };
    const answer = await api.post('/servers', padded);
    expect([answer.status, answer.data.name]).toEqual([202, name]);
  });

  test.each([
    ...['{"name":', '[]', '"text"', '7', 'name=backend', 'null'].map(
      (raw) => ['/networks', raw, [400, 422]] as const,
    ),
    ['/ips', 'null', [422]] as const,
  ])('§4.3 refuses a body that is no JSON object, also where a body is optional: %s %s', async (path, raw, statuses) => {
    const api = await open();
    expect(statuses).toContain((await api.send('POST', path, { raw, type: 'application/json' })).status);
    expect((await api.get('/ips')).data).toEqual([]);
  });
});
