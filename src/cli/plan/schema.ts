import * as z from 'zod';

const text = z.string();
const count = z.int().min(0);
const verb = z.enum(['create', 'update', 'delete', 'adopt']);
const kind = z.enum([
  'network',
  'ip',
  'iso',
  'server',
  'network_interface',
  'firewall',
  'backup',
  'backup_policy',
  'drive',
  'server_image',
]);

const decimal = z.string().regex(/^-?\d+(\.\d+)?$/);

const change = z
  .strictObject({
    path: text.describe('Field of the resource, dotted.'),
    from: z.unknown().describe('Before; null where there is nothing yet.'),
    to: z.unknown().describe('After; null where nothing stays.'),
  })
  .describe('One field.');

const operation = z
  .strictObject({
    id: text.describe('The same step of the same resource has the same id in every plan.'),
    key: text,
    kind,
    verb,
    changes: z.array(change),
    needs: z.array(text).describe('Ids of operations that have to be done first.'),
    spend: z.enum(['adds', 'reduces', 'none']).describe('`adds` is held back while the project cannot pay.'),
    risk: z.enum(['safe', 'billed', 'destructive']),
    replacement: text.optional().describe('Id of the other half of a replacement.'),
    reason: text.optional().describe('Why, where the changes do not say it.'),
    traffic: z
      .strictObject({ opened: z.array(text), closed: z.array(text), open: z.array(text) })
      .optional()
      .describe('Of a firewall: what it opens and closes, and all that is let in afterwards.'),
    cause: z.literal('drift').optional().describe('The live side was changed elsewhere.'),
    loses: text.optional().describe('Data that goes with a change in place.'),
    target: text.optional().describe('Id of the live resource that is adopted or deleted.'),
  })
  .describe('One step. Steps stand in the order in which they may be carried out.');

/** The public JSON form of a plan; `core/plan.ts` is its type, and the compiler holds the two together. */
export const planSchema = z
  .strictObject({
    format_version: z.literal(1),
    project: z.strictObject({ id: z.int(), name: text, status: text }),
    selection: z
      .strictObject({
        targets: z.array(text).describe('Only these and what they need; all, where there are none.'),
        excludes: z.array(text).describe('Not these, nor what needs them.'),
      })
      .optional()
      .describe('The part that was asked for, by key; left out where that was all of it.'),
    observed_at: z.iso.datetime().describe('When the project was looked at.'),
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/)
      .describe('Over what is to be done and the spec it comes from: equal digests mean the same plan.'),
    summary: z.strictObject({
      create: count,
      update: count,
      replace: count,
      delete: count,
      adopt: count,
      blocked: count,
      unchanged: count,
      unseen: count.optional().describe('Servers of which no read shows all that the file says.'),
    }),
    operations: z.array(operation),
    blocked: z
      .array(
        z.strictObject({
          key: text,
          verb,
          code: text.describe('Stable and machine-readable.'),
          reason: text,
          resolve: text.describe('The command, or the edit, that settles it.'),
        }),
      )
      .describe('What needs an operator.'),
    warnings: z.array(z.strictObject({ code: text, key: text.nullable(), message: text })),
    cost: z.strictObject({
      monthly: z
        .strictObject({
          currency: text.nullable(),
          known_before: decimal,
          known_after: decimal,
          unknown: z.array(text).describe('Keys of what is there, and has a price that is not known.'),
        })
        .describe('A month of all that is managed, as far as prices are known.'),
      known_monthly_delta: z
        .string()
        .regex(/^-?\d+(\.\d+)?$/)
        .describe('Decimal; what the catalogue prices.'),
      known_monthly_most: z
        .string()
        .regex(/^-?\d+(\.\d+)?$/)
        .optional()
        .describe('The most that it may come to, where the file leaves a choice that tells.'),
      unknown: z.array(text).describe('What has a price that is not known. It is not counted as zero.'),
      left_billed: z.array(text).describe('What goes on being billed once the plan is carried out.'),
    }),
    effort: z.strictObject({
      writes: count,
      reads: count,
      seconds_at_least: z.number().min(0).describe('What the request limits alone take.'),
    }),
  })
  .describe('A plan of vdcsync, as `vdcsync plan --format json` prints it and `apply --plan` takes it.');
