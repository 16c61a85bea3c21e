import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import addFormats from 'ajv-formats';

const store = createRequire(import.meta.url)
  .resolve('schemastore/package.json')
  .replace('package.json', 'schemas/json/');

/** What a published schema has against a document; nothing where it holds. */
export function complaints(
  schema: string,
  document: unknown,
  draft: 'draft-07' | '2019-09' = 'draft-07',
): string[] {
  const options = { strict: false, allErrors: true, validateFormats: true };
  const ajv = draft === 'draft-07' ? new Ajv(options) : new Ajv2019(options);
  addFormats.default(ajv);
  // Compose's durations are its own: 15s, 1m30s.
  ajv.addFormat('duration', /^(\d+(\.\d+)?(us|ms|s|m|h))+$/);
  const text = readFileSync(`${store}${schema}`, 'utf8');
  // Names of older drafts that refer to nothing.
  const validate = ajv.compile(
    JSON.parse(text, (key, value) => {
      const isOld = key === '$schema' || (key === 'id' && typeof value === 'string');
      return isOld ? undefined : value;
    }),
  );
  validate(document);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}
