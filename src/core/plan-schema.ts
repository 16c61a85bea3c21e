import * as z from 'zod';
import type { Code } from './codes.ts';
import type { ResourceKey } from './keys.ts';
import { kindNames } from './kind-facts.ts';
import type { Remedy } from './remedy.ts';

const text = z.string();
const operationId = typed<string & { readonly __brand: 'OperationId' }>(text);
/** A resource key such as `servers.web-1.firewall`. The schema does not check its form. */
export const keySchema = typed<ResourceKey>(text);
/** A number of things, at least 0. */
export const countSchema = z.int().min(0);
/** A time in RFC 3339, in UTC. */
export const timeSchema = z.iso.datetime();
/** The verb of an operation. A replacement is a `create` and a `delete`, each with the id of the other one. */
export const verbSchema = z.enum(['create', 'update', 'delete', 'adopt']);
/** The kind of a resource, with the noun of the API. */
export const kindSchema = z.enum(kindNames);

/** The schema of a value whose exact type stands elsewhere. */
export function typed<Type>(schema: z.ZodType): z.ZodType<Type> {
  return schema as z.ZodType<Type>;
}

/** JSON without a value that may be changed. */
export type Fixed<Value> = unknown extends Value
  ? Value
  : Value extends string | number | boolean | null | undefined
    ? Value
    : Value extends readonly (infer Entry)[]
      ? readonly Fixed<Entry>[]
      : { readonly [Name in keyof Value]: Fixed<Value[Name]> };

const decimal = z.string().regex(/^-?\d+(\.\d+)?$/);

/** A place in the spec. */
export const positionSchema = z
  .strictObject({ file: text, line: countSchema, column: countSchema })
  .describe('Place of the entry in the spec. Absent if the spec does not have it.');

const id = z.union([z.string(), z.int()]);

/** One changed field, in every result that has some. */
export const changeSchema = z
  .strictObject({
    path: text.describe('Field of the resource, dotted.'),
    from: z.unknown().describe('Value before; null if the resource or field does not exist yet.'),
    to: z.unknown().describe('Value after; null if the resource or field is deleted.'),
    from_id: id.exactOptional().describe('The id behind `from`, if `from` is a name.'),
    to_id: id.exactOptional().describe('The id behind `to`, if `to` is a name.'),
  })
  .describe('One field.');

/**
 * The effect of a change of a firewall on incoming traffic, and of a new public server without a firewall. Each entry is
 * one of these:
 *
 * - a protocol and a port: `tcp 443`, `udp 1000-2000`, `any protocol every port`
 * - the same with the undocumented fields of the rule: `tcp 22 (source 198.51.100.0/24)`
 * - `everything`, or `everything else` than the other entries
 * - one of these after `unknown: `, if a value decides that the API's document does not show: the traffic may be open
 */
export const trafficSchema = z.strictObject({
  opened: z.array(text),
  closed: z.array(text),
  open: z.array(text),
});

/** One step of a plan: plain data, so that `apply --plan` can read a saved plan again. */
export const operationSchema = z
  .strictObject({
    id: operationId.describe('The same step of the same resource has the same id in every plan.'),
    key: keySchema,
    kind: kindSchema,
    verb: verbSchema,
    changes: z.array(changeSchema),
    needs: z.array(operationId).describe('Ids of operations that must be done first.'),
    spend: z.enum(['adds', 'reduces', 'none']).describe('`adds` is paused while the project cannot pay.'),
    risk: z.enum(['safe', 'billed', 'destructive']),
    replacement: operationId.exactOptional().describe('Id of the other half of a replacement.'),
    reason: text.exactOptional().describe('The reason, if the changes do not show it.'),
    traffic: trafficSchema
      .exactOptional()
      .describe(
        'Of a firewall: the traffic that it opens and closes, and all traffic that it then allows. Of a new public server without a firewall: everything.',
      ),
    position: positionSchema.exactOptional(),
    open: z
      .literal(true)
      .exactOptional()
      .describe('An earlier run has sent the write. The next apply only finishes it.'),
    cause: z.literal('drift').exactOptional().describe('The resource was changed outside vdcsync.'),
    loses: text.exactOptional().describe('Data that a change in place destroys.'),
    undo: z
      .enum(['wholly', 'another_address', 'data_lost', 'stays'])
      .exactOptional()
      .describe(
        'How far the operation can be undone. `another_address`, `data_lost`: the resource comes back so. `stays`: it cannot be removed. Absent in plans of earlier releases.',
      ),
    target: text.exactOptional().describe('Id of the live resource that is adopted or deleted.'),
  })
  .describe('One operation. The list is in a valid order of execution.');

const step = {
  type: z.enum(['run', 'edit', 'outside']).describe('A command, an edit of the spec, or a step elsewhere.'),
  command: text.optional().describe('Of a run: the command of vdcsync.'),
  args: z
    .array(text)
    .optional()
    .describe('Of a run: its arguments, not quoted. The operator fills in KEY and ID.'),
  path: text.optional().describe('Of an edit: a key, a collection, `settings` or `project`.'),
  set: z.record(text, z.unknown()).optional().describe('Of an edit: fields with their new values.'),
  choose: z
    .record(text, z.array(text))
    .optional()
    .describe('Of an edit: fields to set, with the possible values.'),
  remove: z.array(text).optional().describe('Of an edit: fields to remove.'),
  entry: z
    .enum(['remove', 'restore', 'replace'])
    .optional()
    .describe('Of an edit: the change to the whole entry.'),
  at: z.array(text).optional().describe('Of an edit: places in the spec, as file:line:column.'),
  text: text.optional().describe('Of a step elsewhere: the instruction.'),
  about: z.array(text).optional().describe('Of a step elsewhere: ids and addresses.'),
};

/** The ways out of a blocked operation or a warning: alternatives, each with its steps. */
export const remediesSchema = typed<readonly Remedy[]>(
  z.array(
    z.strictObject({
      ...step,
      when: text.optional().describe('The case in which the remedy is right.'),
      next: z.array(z.strictObject(step)).optional().describe('The steps that follow.'),
    }),
  ),
).describe('The remedies as data.');

/** One blocked operation, in every result that has some. */
export const blockedSchema = z.strictObject({
  key: keySchema,
  verb: verbSchema,
  code: text.describe('Stable and machine-readable.'),
  reason: text,
  position: positionSchema.exactOptional(),
  starts_at: timeSchema.exactOptional().describe('When the window opens that the operation waits for.'),
  since: text.exactOptional().describe('When a run first found the operation blocked with this code.'),
  decision: z.boolean().describe('False: the operation continues without a manual decision.'),
  resolve: text.describe('The remedies as one text, separated by ` | `.'),
  remedies: remediesSchema,
});

/** A danger, a difference or a limit that blocks no operation. `key`: `null` if it concerns the whole project. */
export const warningSchema = z.strictObject({
  code: typed<Code>(text),
  key: keySchema.nullable(),
  message: text,
  remedies: remediesSchema.exactOptional(),
});

/** The number of operations by verb. A replacement counts once, and a write that an earlier run has sent not at all. */
export const summarySchema = z.strictObject({
  create: countSchema,
  update: countSchema,
  replace: countSchema,
  delete: countSchema,
  adopt: countSchema,
  blocked: countSchema,
  in_progress: countSchema.exactOptional().describe('Keys with an open write of an earlier run.'),
  unchanged: countSchema,
  unseen: countSchema.exactOptional().describe('Servers with declared fields that no read shows.'),
});

/** The change of the monthly bill by a plan. Amounts are decimal text in the currency of the account. */
export const costSchema = z.strictObject({
  monthly: z
    .strictObject({
      currency: text.nullable(),
      known_before: decimal,
      known_after: decimal,
      unknown: z.array(text).describe('Keys of existing resources without a known price.'),
    })
    .describe('Monthly cost of all managed resources with a known price.'),
  month: z
    .strictObject({
      name: z
        .string()
        .regex(/^\d{4}-\d\d$/)
        .describe('In UTC.'),
      cost: decimal.describe('So far, as in `vdcsync bill`.'),
      cost_at_least: decimal.describe('Less than `cost` if a moment is known only within bounds.'),
      run_rate: decimal.describe('Monthly price of everything that is billed now.'),
      forecast: decimal.describe('Cost of the whole month if nothing changes.'),
      incomplete: z
        .array(keySchema)
        .describe(
          'Keys of resources whose cost in the month is not fully known. `vdcsync bill` has the reasons.',
        ),
    })
    .exactOptional()
    .describe('The current month, by the journal of the state. Absent without a price list.'),
  known_monthly_delta: decimal.describe('Decimal. Change of the known monthly cost.'),
  known_monthly_most: decimal
    .exactOptional()
    .describe('The highest possible value, if the spec allows alternatives with different prices.'),
  known_monthly_freed: decimal
    .exactOptional()
    .describe(
      'Monthly price of the servers that the created ones replace, if an earlier run deleted them. The limits of the settings count only the difference.',
    ),
  unknown: z.array(text).describe('Resources without a known price. They are not counted as zero.'),
  unpriced: z
    .array(keySchema)
    .describe('Keys of resources that the plan buys, or makes dearer, at an unknown price.'),
  left_billed: z.array(text).describe('Resources that stay billed after the plan is applied.'),
});

/** The part of a plan that `--target` and `--exclude` select. */
export const selectionSchema = z.strictObject({
  targets: z
    .array(keySchema)
    .describe('Keys of --target: these resources and their dependencies. Empty: all.'),
  excludes: z.array(keySchema).describe('Keys of --exclude: not these resources, nor their dependents.'),
});

/** The least number of requests for an apply, and their least duration by the request limits. @source API §8 */
export const effortSchema = z.strictObject({
  writes: countSchema,
  reads: countSchema,
  seconds_at_least: z.number().min(0).describe('The minimum duration that follows from the request limits.'),
});

/** The answers to `plan --prove`, which sends creations with an unknown field. `writes`: all requests for them. */
export const proofsSchema = z.strictObject({
  writes: countSchema,
  results: z.array(
    z.strictObject({
      key: keySchema,
      outcome: z.enum(['accepted', 'refused', 'unanswered', 'not_sent']),
      unproven: z.array(text).describe('Fields that the API may check in a creation alone.'),
    }),
  ),
});

/** The public JSON form of a plan, with the types of its parts in `core/plan.ts`. */
export const planSchema = z
  .strictObject({
    format_version: z.literal(1),
    project: z.strictObject({ id: z.int(), name: text, status: text }),
    selection: selectionSchema
      .exactOptional()
      .describe('The selected part of the plan. Absent for a complete plan.'),
    observed_at: timeSchema.describe('Time of the refresh.'),
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/)
      .describe('Digest of the operations and the spec. Equal digests mean the same plan.'),
    summary: summarySchema,
    new_state: z
      .literal(true)
      .exactOptional()
      .describe(
        'The state is new. An apply finds a resource that an earlier state created in the last 24 hours by its idempotency key.',
      ),
    operations: z.array(operationSchema),
    blocked: z.array(blockedSchema).describe('Operations that need a manual decision, or that wait.'),
    warnings: z.array(warningSchema),
    more_warnings: countSchema
      .exactOptional()
      .describe('How many warnings are left out: a plan shows at most 500.'),
    cost: costSchema,
    effort: effortSchema,
    proofs: proofsSchema.exactOptional().describe('The answers of the API to `plan --prove`.'),
  })
  .describe('A plan of vdcsync, as `vdcsync plan --format json` prints it and `apply --plan` takes it.');
