import { z } from 'zod';
import { cronProblem, isTimeZone } from '../core/calendar.ts';
import { containers } from '../core/keys.ts';
import type { ResourceKind } from '../core/kind.ts';
import type { SectionTraits } from '../core/kind-entry.ts';
import { type Collection, collections, factsOf } from '../core/kind-facts.ts';
import { parseDuration } from '../core/time.ts';
import { kinds } from '../reconcilers/registry.ts';

/** RFC 3339 with an offset; a moment without one would mean another instant on another machine. */
const momentPattern =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** A time with its offset. */
function momentSchema(description: string) {
  return z
    .string()
    .refine(isRealMoment, 'write a valid time, such as 2027-01-31T00:00:00Z')
    .optional()
    .meta({ description, pattern: momentPattern.source, examples: ['2027-01-31T00:00:00Z'] });
}

const windowSchema = z.strictObject({
  cron: z
    .string()
    .superRefine((cron, { addIssue }) => {
      const message = cronProblem(cron);
      if (message !== undefined) addIssue({ code: 'custom', message });
    })
    .describe('The times at which the window opens: five fields, for minute, hour, day, month and weekday.'),
  duration: z
    .string()
    .refine((text) => (parseDuration(text) ?? 0) >= 60_000, 'write a duration of at least 1m, such as 4h')
    .describe('How long the window stays open, such as 90m or 4h.'),
  timezone: z
    .string()
    .refine(isTimeZone, 'write the IANA name of a time zone, such as Europe/Berlin or UTC')
    .describe('The time zone of `cron`, by its IANA name.'),
  allow: z
    .array(z.enum(['create', 'update', 'delete', 'replace']))
    .min(1, 'name at least one of create, update, delete and replace')
    .describe('The changes that may start while the window is open.'),
});

/** `settings` of the spec, with the defaults of every field. */
export const settingsSchema = z.strictObject({
  prune: z
    .boolean()
    .default(false)
    .describe('Delete resources that this spec managed before and no longer declares.'),
  max_deletions: z
    .int()
    .min(0)
    .default(2)
    .describe(
      'A run with more deletions is blocked. Replacements, removals of network interfaces and deletions of backups count.',
    ),
  max_monthly_increase: z
    .number()
    .min(0)
    .nullable()
    .default(null)
    .describe(
      "A run that adds a higher monthly cost, by known prices in the account's currency, is blocked.",
    ),
  exclusive: z
    .boolean()
    .default(false)
    .describe(
      'true: only vdcsync creates resources in this project. After a lost answer, vdcsync then adopts the only new address or server.',
    ),
  unconfirmed_servers: z
    .enum(['retry', 'ask'])
    .default('retry')
    .describe(
      'If no answer, read or idempotency key shows whether a server or server image was created. retry: create it again. ask: wait for the operator.',
    ),
  unmanaged: z
    .enum(['ask', 'ignore'])
    .default('ask')
    .describe(
      'ask: unmanaged servers and addresses block creations that could be duplicates of them. ignore: they block nothing.',
    ),
  drift: z
    .enum(['correct', 'report'])
    .default('correct')
    .describe(
      'correct: vdcsync corrects changes that were made outside vdcsync. report: it only reports them.',
    ),
  approval: z
    .union([
      z.enum(['none', 'plan']),
      z.strictObject({
        deletions: z.boolean().default(false).describe('A plan that deletes a resource waits.'),
        replacements: z.boolean().default(false).describe('A plan that replaces a resource waits.'),
        monthly_increase: z
          .number()
          .min(0)
          .nullable()
          .default(null)
          .describe('A plan that adds a higher monthly cost waits. For known prices only.'),
      }),
    ])
    .default('none')
    .describe(
      'Plans of the daemon that wait for `vdcsync approve DIGEST`: none, plan (every one), or a map.',
    ),
  on_failure: z
    .enum(['stay', 'back'])
    .optional()
    .describe(
      'stay (default): a spec that is blocked or refused stays in force. back: if a new spec is blocked or refused before anything irreversible is done, the daemon returns to the last spec that converged, and waits for the next commit.',
    ),
  suspend: z
    .strictObject({
      reason: z.string().trim().min(1).describe('vdcsync shows this text with each suspended operation.'),
      until: momentSchema(
        'A time in RFC 3339. Without this field, the suspension lasts until you remove `suspend`.',
      ),
    })
    .nullable()
    .default(null)
    .describe('Stops all changes.'),
  windows: z
    .array(windowSchema)
    .max(20, 'write at most 20 windows')
    .optional()
    .describe('Times at which changes may start. Outside, changes wait. Without windows, none waits.'),
});

export const projectSchema = z.strictObject({
  id: z
    .int()
    .min(1)
    .describe("The project's id. vdcsync refuses a token of another project before the first write."),
  scope: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/, 'up to 63 letters, digits, underscores, dots or hyphens')
    .nullable()
    .optional()
    .describe('A name for this spec, if another spec of the project has the same keys.'),
  token_env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'write the name of an environment variable, never the token itself')
    .optional()
    .describe("Name of the environment variable that holds this project's token, instead of VDC_TOKEN."),
  token_file: z
    .string()
    .min(1)
    .optional()
    .describe("File that holds this project's token, instead of VDC_TOKEN_FILE; read again when it changes."),
  expires: momentSchema('A time in RFC 3339, from which all entries count as removed from the spec.'),
});

/** The top-level fields. The entries of each map are validated one by one. */
export const fileSchema = z.strictObject({
  version: z.literal(1, 'write `version: 1`'),
  project: projectSchema.optional(),
  settings: settingsSchema.nullish(),
  defaults: z.strictObject({ servers: z.record(z.string(), z.unknown()).nullish() }).nullish(),
  ...(Object.fromEntries(
    collections.map((collection) => [collection, z.record(z.string(), z.unknown()).nullish()]),
  ) as Record<Collection, z.ZodOptional<z.ZodNullable<z.ZodRecord<z.ZodString, z.ZodUnknown>>>>),
});

/** The fields that every top-level entry may have in addition to its own fields and an id. */
export const commonSchema = z.strictObject({
  managed: z
    .boolean()
    .default(true)
    .describe('false: the resource must exist, and is never created, changed or deleted.'),
  moved: z
    .strictObject({
      from: z.string().min(1).describe('The previous key, such as servers.web-1.'),
    })
    .optional()
    .describe('For a renamed entry: the resource of the previous key moves to this key.'),
  protect: z
    .boolean()
    .default(false)
    .describe('true: the resource is never deleted or replaced, not even after its entry has left the spec.'),
  expires: momentSchema('A time in RFC 3339, from which the entry counts as removed from the spec.'),
});

/** Names of the fields that every top-level entry may have in addition to the fields of its kind. */
export const commonFields = ['id', 'managed', 'moved', 'protect', 'expires'] as const;

/** Everything about the entries of one of the spec's maps. */
export interface Section extends SectionTraits {
  readonly collection: Collection;
  readonly kind: ResourceKind;
  readonly schema: z.ZodObject;
  /** Kinds inside an entry, by field. */
  readonly children: ReadonlyMap<string, ResourceKind>;
}

/** Whether the kind is declared by a field of the container's own schema: it has entries in a map of its own as well. */
export function isOwnField(child: ResourceKind): boolean {
  return child.entry.section !== undefined;
}

/** The kinds inside a server, by field; those with a map of their own last. */
const childKinds = [...kinds.values()]
  .flatMap((each) => {
    const { field } = factsOf(each.name);
    return field === undefined ? [] : [[field, each] as const];
  })
  .sort(([, a], [, b]) => Number(isOwnField(a)) - Number(isOwnField(b)));

/** The maps of the spec, in the registry's order. */
export const sections: readonly Section[] = [...kinds.values()].flatMap((kind) => {
  const { collection, container } = factsOf(kind.name);
  if (collection === undefined || kind.entry.section === undefined) return [];
  const children = new Map(container ? childKinds : []);
  const schema = entrySchema(kind, children, kind.entry.section);
  return [{ ...kind.entry.section, collection: collection as Collection, kind, schema, children }];
});

function entrySchema(
  kind: ResourceKind,
  children: ReadonlyMap<string, ResourceKind>,
  { id = z.int().min(1) }: SectionTraits,
): z.ZodObject {
  if (!(kind.entry.schema instanceof z.ZodObject))
    throw new Error(`The schema of ${kind.name} is not an object`);
  const fields = [...children].flatMap(([field, child]) =>
    isOwnField(child) ? [] : [[field, child.entry.schema.optional()] as const],
  );
  return kind.entry.schema.extend({
    ...Object.fromEntries(fields),
    id: id
      .optional()
      .describe(
        'Binds the entry to the live resource with this id. vdcsync then never creates or replaces this resource.',
      ),
    ...commonSchema.shape,
  });
}

/** Fields that say which server it is, or whether it is managed: they differ from server to server. */
const notDefault = { id: true, name: true, moved: true, managed: true } as const;

/** `defaults` of the spec: the values of every server that does not set its own. */
export const defaultsSchema = z.strictObject({
  servers: serverSchema().omit(notDefault).partial().optional(),
});

function serverSchema(): Section['schema'] {
  const found = sections.find(({ collection }) => collection === containers);
  if (found === undefined) throw new Error(`There is no section ${containers}`);
  return found.schema;
}

/** Whether the text is a moment of a day that exists: `Date` would silently read 30 February as 2 March. */
function isRealMoment(text: string): boolean {
  return momentPattern.test(text) && z.iso.date().safeParse(text.slice(0, 'YYYY-MM-DD'.length)).success;
}
