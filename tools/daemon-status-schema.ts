import * as z from 'zod';
import { commitSchema, diagnosticSchema, projectViewSchema } from '../src/view/project-view.ts';

const text = z.string();
const moment = z.iso.datetime();

const project = projectViewSchema.extend({
  next: text
    .nullable()
    .describe(
      'The path with the next entries of the lists; null if no list has more. A list has at most 100 entries in one answer, and 5 if the answer has several projects.',
    ),
});

/** `GET /status` of the daemon. Fields only get added, so others may be there. */
export const daemonStatusSchema = z.looseObject({
  format_version: z.literal(1),
  version: text,
  at: moment,
  ready: z.boolean(),
  not_ready: z.array(text),
  source: z.looseObject({
    name: text,
    read_at: moment.nullable(),
    error: text.nullable(),
    commit: commitSchema.nullable(),
    broken: z.array(diagnosticSchema),
  }),
  fleet: z.looseObject({ replica: text, leads: z.boolean() }).optional(),
  projects: z.array(project).describe('At most 50 in one answer.'),
  next: text.nullable().describe('The path with the next projects; null if this answer has the last ones.'),
});
