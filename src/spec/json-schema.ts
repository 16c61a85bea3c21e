import { z } from 'zod';
import type { Section } from './schemas.ts';
import { defaultsSchema, nameRules, projectSchema, sections, settingsSchema } from './schemas.ts';

type Schema = Record<string, unknown>;

/**
 * The JSON Schema of the spec file, for editors: completion, hovers and red underlines.
 *
 * Draft 7, because yaml-language-server understands all of it; of 2020-12 it ignores
 * parts. The schema covers the rules that a schema can express. The loader covers the rest: references, overlaps,
 * dates. The schema never refuses a file that the loader accepts, with two exceptions that help in an
 * editor: `${env:…}` where only certain words are allowed, and a server that lacks a field whose
 * default is in another file.
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
      version: { const: 1, description: 'The version of this format.' },
      project: {
        ...convert(projectSchema),
        description: 'The project of this file.',
        examples: [{ id: 4711 }],
      },
      settings: nullable({
        ...convert(settingsSchema),
        description: 'Limits and policies. All fields are optional.',
      }),
      defaults: nullable({
        ...convert(defaultsSchema),
        description:
          '`servers`: fields of every server that does not set them itself. All fields of a server except `name`, `id`, `managed` and `moved` are possible. A field of a server replaces the default without being merged with it; `null` removes the default.',
        examples: [{ servers: { server_type: 'sliders-1', image: 'ubuntu-24.04' } }],
      }),
      ...Object.fromEntries(sections.map((section) => [section.collection, sectionSchema(section)])),
    },
    if: { required: ['defaults'] },
    else: { properties: { servers: { additionalProperties: neededOfServers() } } },
  };
}

const sectionTexts: Readonly<Record<Section['collection'], Schema>> = {
  networks: {
    description: 'Private networks by name.',
    examples: [{ default: { managed: false }, backend: { cidr: '10.20.0.0/24' } }],
  },
  ips: {
    description: 'Public addresses by a name of your choice; billed while they exist, attached or not.',
    examples: [{ web: {} }],
  },
  isos: {
    description: "The project's own images by name.",
    examples: [{ rescue: { url: 'https://mirror.example.com/rescue.iso' } }],
  },
  server_images: {
    description:
      'Images taken from servers, by name. vdcsync takes them only if the API profile has take_server_image.',
    examples: [{ golden: { server: 'web-1' } }],
  },
  servers: {
    description: 'Servers by name, with the resources inside them.',
    examples: [
      {
        'web-1': { server_type: 'sliders-1', image: 'ubuntu-24.04', cores: 4, memory_mb: 8192, disk_gb: 80 },
      },
    ],
  },
};

function sectionSchema(section: Section): Schema {
  const { pattern, text } = nameRules[section.collection];
  return nullable({
    type: 'object',
    ...sectionTexts[section.collection],
    propertyNames: { pattern: pattern.source, description: `A name: ${text}.` },
    additionalProperties: entrySchema(section),
  });
}

function entrySchema({ kind, schema }: Section): Schema {
  const entry = { ...convert(schema), ...ruleOfKind(kind.name) };
  if (kind.neededToCreate.length === 0) return nullable(entry);
  // A default may provide a field that the server needs, and `null` leaves it out.
  if (kind.name === 'server') return nullable({ ...entry, properties: withNull(entry.properties) });
  return { ...entry, ...needed(kind) };
}

function neededOfServers(): Schema {
  const servers = sections.find(({ collection }) => collection === 'servers');
  return servers === undefined ? {} : { type: 'object', ...needed(servers.kind) };
}

function needed(kind: Section['kind']): Schema {
  return {
    anyOf: [
      {
        required: [...kind.neededToCreate],
        ...(kind.name === 'server' ? { anyOf: sizes.map(requiring) } : {}),
      },
      { required: ['id'] },
      { required: ['managed'], properties: { managed: { const: false } } },
    ],
  };
}

const sliders = ['cores', 'memory_mb', 'disk_gb'];
const sizes = [...sliders, 'plan_id', 'gpu_package'];

/** Rules across fields, which the kinds check in code. */
function ruleOfKind(kind: string): Schema {
  if (kind !== 'server') return {};
  const notWith = (fields: readonly string[]) => ({ not: { anyOf: fields.map(requiring) } });
  return {
    dependencies: {
      plan_id: notWith([...sliders, 'gpu_package']),
      gpu_package: notWith([...sliders, 'plan_id', 'gpus', 'disk_type']),
    },
  };
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
      .map(([name, value]) => [
        name,
        name === 'pattern' && typeof value === 'string' ? orEnvironment(value) : adapt(value),
      ]),
  );
}

/** A value may also come from the environment. No pattern applies to the variable. */
function orEnvironment(pattern: string): string {
  return `${pattern}|\\$\\{env:[A-Za-z_][A-Za-z0-9_]*\\}`;
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
    ...(description === undefined ? {} : { description }),
    ...(examples === undefined ? {} : { examples }),
    ...schema,
    type: ['object', 'null'],
  };
}
