// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { share } from '../support/drawn.ts';
import { errorsIn, read, spec } from './read.ts';

const text = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter((each) => each.trim() === each && each !== '' && !each.includes('$'));
const name = fc
  .stringMatching(/^[a-z][a-z0-9-]{0,11}$/)
  .filter((each) => each !== 'constructor' && each !== 'prototype');
const optional = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined });
const size = fc.integer({ min: 1, max: 1_000_000 });

const rule = fc.record(
  {
    direction: text,
    action: text,
    enabled: fc.boolean(),
    destination_port: fc.integer({ min: 1, max: 65_535 }).map(String),
    other: fc.oneof(text, size, fc.boolean()),
  },
  { requiredKeys: [] },
);

const server = fc.record(
  {
    server_type: fc.oneof(text, size),
    image: text,
    cores: size,
    memory_mb: size,
    ssh_keys: fc.array(size),
    firewall: fc.record({ enabled: fc.boolean(), rules: fc.array(rule) }, { requiredKeys: [] }),
    protect: fc.boolean(),
    public_ipv4: fc.constantFrom({ new: true }, { reuse: true }),
    replace: fc.constantFrom('never', 'allowed'),
  },
  { requiredKeys: ['server_type', 'image', 'cores'] },
);

const wanted = fc.record({
  version: fc.constant(1),
  project: fc.record({ id: size }),
  settings: optional(fc.record({ prune: fc.boolean(), max_deletions: fc.nat() }, { requiredKeys: [] })),
  networks: optional(fc.dictionary(name, fc.constant({ managed: false }))),
  ips: optional(fc.dictionary(name, fc.record({ server_type_id: size }, { requiredKeys: [] }))),
  servers: optional(fc.dictionary(name, server, { maxKeys: 4 })),
});

const stringify = (data: unknown) => yaml.stringify(data, { aliasDuplicateObjects: false });

/** The same data with the fields of every map the other way round. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [key, reversed(inner)] as const)
      .reverse(),
  );
}

describe('src/spec: properties', () => {
  test('any text loads as a spec or gives a list of errors', () => {
    const words = fc.constantFrom(
      'version: 1\n',
      'servers',
      'ips',
      ': ',
      '\n',
      '  ',
      '- ',
      '{',
      '}',
      '[',
      ']',
      '&a ',
      '*a',
      '!!int ',
      '? ',
      '|\n',
      '"',
      "'",
      '#',
      '${env:',
      '<<',
      '__proto__',
      '\t',
      '%',
      '---',
      '0x',
      'null',
      '1e999',
    );
    const anything = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.array(words, { maxLength: 30 }).map((parts) => parts.join('')),
      fc.array(words, { maxLength: 20 }).map((parts) => spec(parts.join(''))),
    );
    fc.assert(
      fc.property(anything, (each) => {
        for (const message of errorsIn(each)) expect(typeof message).toBe('string');
      }),
      { numRuns: share(1500) },
    );
  });

  test('any data loads as a spec or gives errors with a position in the file', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('version', 'project', 'settings', 'servers', 'ips', 'isos', 'networks'),
          fc.jsonValue(),
        ),
        (data) => {
          for (const message of errorsIn(stringify(data))) expect(message.length).toBeGreaterThan(0);
        },
      ),
      { numRuns: share(500) },
    );
  });

  test('a valid spec loads without a change', () => {
    fc.assert(
      fc.property(wanted, (data) => {
        const { resources, projectId, settings } = read(stringify(data));
        expect(projectId).toBe(data.project.id);
        expect(settings).toMatchObject(data.settings ?? {});
        for (const [key, { firewall, protect, ...own }] of Object.entries(data.servers ?? {})) {
          const found = (suffix: string) => resources.find((each) => each.key === `servers.${key}${suffix}`);
          expect(found('')).toMatchObject({ value: { name: key, ...own }, protect: protect ?? false });
          expect(found('.firewall')?.value).toEqual(firewall);
          expect(found('.public_ipv4') !== undefined).toBe(own.public_ipv4 !== undefined);
        }
        for (const [key, value] of Object.entries(data.ips ?? {})) {
          expect(resources.find((each) => each.key === `ips.${key}`)?.value).toEqual(value);
        }
      }),
    );
  });

  test('the digest depends on the data, not on order or form', () => {
    fc.assert(
      fc.property(wanted, (data) => {
        const { digest } = read(stringify(data));
        expect(read(stringify(reversed(data))).digest).toBe(digest);
        expect(read(JSON.stringify(data)).digest).toBe(digest);
      }),
    );
  });
});
