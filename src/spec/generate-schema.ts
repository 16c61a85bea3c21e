import { projectJsonSchema } from './json-schema.ts';

/** Where the schema is kept, from the repository's root. */
export const schemaPath = 'schemas/project.schema.json';

/** The exact text of that file: it is generated, committed, and compared in CI. */
export function projectSchemaText(): string {
  return `${JSON.stringify(projectJsonSchema(), null, 2)}\n`;
}
