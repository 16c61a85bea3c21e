import { z } from 'zod';
import { given } from '../src/core/json.ts';
import { containers } from '../src/core/keys.ts';
import type { Section } from '../src/spec/schemas.ts';
import { defaultsSchema, projectSchema, sections, settingsSchema } from '../src/spec/schemas.ts';

type Schema = Record<string, unknown>;

/**
 * The JSON Schema of the spec file, for editors: completion, hovers and red underlines.
 *
 * Draft 7, because yaml-language-server understands all of it; of 2020-12 it ignores
 * parts. The schema covers the rules that a schema can express. The loader covers the rest: references, overlaps,
 * dates. The schema never refuses a file that the loader accepts, with one exception that helps in an
 * editor: a server that lacks a field whose default is in another file.
 */
export function projectJsonSchema(): object {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'vdcsync spec',
    description: 'The desired resources of one Virtual Data Center project.',
    type: 'object',
    additionalProperties: false,
    required: ['version'],
    properties: {
      version: { const: 1, description: 'The version of this format: 1.' },
      project: {
        ...convert(projectSchema),
        description:
          'The project of this spec. If several files form one spec, one of them needs this field.',
        examples: [{ id: 4711 }],
      },
      settings: nullable({
        ...convert(settingsSchema),
        description: 'Limits and policies. All fields are optional.',
      }),
      defaults: nullable({
        ...convert(defaultsSchema),
        description:
          '`servers`: fields for every server that does not have them itself. All fields of a server except `name`, `id`, `managed` and `moved` are possible. vdcsync does not merge a field with its default. `null` in a server removes the default.',
        examples: [{ servers: { server_type: 'sliders-1', image: 'ubuntu-24.04' } }],
      }),
      ...Object.fromEntries(sections.map((section) => [section.collection, sectionSchema(section)])),
    },
    if: { required: ['defaults'] },
    else: { properties: { servers: { additionalProperties: neededOfServers() } } },
  };
}

function sectionSchema(section: Section): Schema {
  const { pattern, text } = section.names;
  return nullable({
    type: 'object',
    description: section.description,
    examples: [section.example],
    propertyNames: { pattern: pattern.source, description: `A name: ${text}.` },
    additionalProperties: entrySchema(section),
  });
}

function entrySchema(section: Section): Schema {
  const { kind, schema, notWith, collection } = section;
  const entry: Schema = {
    ...convert(schema),
    ...(notWith === undefined ? {} : { dependencies: excluding(notWith) }),
  };
  if (kind.entry.neededToCreate === undefined) return nullable(entry);
  // A default may provide a field that the server needs, and `null` leaves it out.
  if (collection === containers) return nullable({ ...entry, properties: withNull(entry.properties) });
  return { ...entry, ...needed(section) };
}

function neededOfServers(): Schema {
  const servers = sections.find(({ collection }) => collection === containers);
  return servers === undefined ? {} : { type: 'object', ...needed(servers) };
}

function needed({ kind, oneOf }: Section): Schema {
  return {
    anyOf: [
      {
        required: [...(kind.entry.neededToCreate ?? [])],
        ...(oneOf === undefined ? {} : { anyOf: oneOf.map(requiring) }),
      },
      { required: ['id'] },
      { required: ['managed'], properties: { managed: { const: false } } },
    ],
  };
}

/** Rules across fields, which the kinds check in code. */
function excluding(notWith: Readonly<Record<string, readonly string[]>>): Schema {
  return Object.fromEntries(
    Object.entries(notWith).map(([field, others]) => [field, { not: { anyOf: others.map(requiring) } }]),
  );
}

function requiring(field: string): Schema {
  return { required: [field] };
}

function convert(schema: z.ZodType): Schema {
  // A refinement checks more than JSON Schema can express. The schema under the refinement is still converted.
  const { $schema: _, ...converted } = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
  });
  return adapt(converted) as Schema;
}

function adapt(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(adapt);
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(
    Object.entries(node)
      // Every whole number has the maximum of JavaScript: true, but useless in a hover.
      .filter(([name, value]) => name !== 'maximum' || value !== Number.MAX_SAFE_INTEGER)
      .map(([name, value]) => [name, adapt(value)]),
  );
}

function withNull(properties: unknown): Schema {
  const entries = Object.entries((properties ?? {}) as Record<string, Schema>);
  const withDefault = defaultsSchema.shape.servers.unwrap().shape;
  return Object.fromEntries(
    entries.map(([name, each]) => [name, Object.hasOwn(withDefault, name) ? orNull(each) : each]),
  );
}

function orNull(schema: Schema): Schema {
  if (typeof schema.type === 'string') {
    const { enum: words } = schema as { enum?: readonly unknown[] };
    return {
      ...schema,
      type: [schema.type, 'null'],
      ...(words === undefined ? {} : { enum: [...words, null] }),
    };
  }
  return Array.isArray(schema.anyOf) ? { ...schema, anyOf: [...schema.anyOf, { type: 'null' }] } : schema;
}

/** An entry with nothing after its colon is an empty one. */
function nullable({ description, examples, ...schema }: Schema): Schema {
  return {
    ...given({ description, examples }),
    ...schema,
    type: ['object', 'null'],
  };
}
