import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { pricesSchema, profileSchema } from '../src/cli/settings/profile.ts';
import { planSchema } from '../src/core/plan-schema.ts';
import { projectViewSchema } from '../src/view/project-view.ts';
import { daemonStatusSchema } from './daemon-status-schema.ts';
import { manPages } from './man.ts';
import { cliPage, codesPage, metricsPage, specPage } from './pages.ts';
import { projectJsonSchema } from './project-schema.ts';
import {
  billSchema,
  doctorSchema,
  errorSchema,
  explainSchema,
  historySchema,
  outputSchema,
  rehearsalSchema,
  settledSchema,
  validationSchema,
} from './result-schemas.ts';

const results = {
  status: projectViewSchema,
  bill: billSchema,
  explain: explainSchema,
  history: historySchema,
  output: outputSchema,
  doctor: doctorSchema,
  rehearse: rehearsalSchema,
  validate: validationSchema,
  settled: settledSchema,
  error: errorSchema,
  'daemon-status': daemonStatusSchema,
};

/** Every generated file: its path from the repository's root, and its text. */
export function generatedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ['schemas/project.schema.json', `${JSON.stringify(projectJsonSchema(), null, 2)}\n`],
    ['schemas/plan.schema.json', planJsonSchema()],
    ['schemas/profile.schema.json', profileJsonSchema()],
    ['schemas/prices.schema.json', pricesJsonSchema()],
    ['docs/reference/cli.md', cliPage()],
    ...[...manPages()].map(([name, text]) => [`man/${name}`, text] as const),
    ['package.json', packageText()],
    ['docs/reference/file.md', specPage()],
    ['docs/reference/codes.md', codesPage()],
    ['docs/reference/metrics.md', metricsPage()],
    ...Object.entries(results).map(
      ([name, schema]) =>
        [
          `schemas/${name}.schema.json`,
          rendered(
            name,
            name === 'daemon-status' ? 'GET /status of vdcsync run' : `Result of vdcsync ${name}`,
            z.toJSONSchema(schema, { io: 'output' }),
          ),
        ] as const,
    ),
  ]);
}

/** The package installs every page of the manual. */
function packageText(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const man = [...manPages().keys()].map((name) => `./man/${name}`);
  return `${JSON.stringify({ ...JSON.parse(text), man }, null, 2)}\n`;
}

/** JSON Schema of a plan. */
function planJsonSchema(): string {
  return rendered('plan', 'Plan of vdcsync', z.toJSONSchema(planSchema, { io: 'output' }));
}

/** JSON Schema of an API profile. */
function profileJsonSchema(): string {
  return rendered('profile', 'API profile of vdcsync', z.toJSONSchema(profileSchema, { io: 'input' }));
}

/** JSON Schema of a price list. */
function pricesJsonSchema(): string {
  return rendered('prices', 'Price list of vdcsync', z.toJSONSchema(pricesSchema, { io: 'input' }));
}

function rendered(name: string, title: string, schema: { readonly $schema?: string | undefined }): string {
  const { $schema, ...rest } = schema;
  return `${JSON.stringify({ $schema, $id: `urn:vdcsync:${name}`, title, ...rest }, null, 2)}\n`;
}
