import * as z from 'zod';
import type { Claim } from '../core/claims.ts';
import { keyStatuses } from '../core/key-status.ts';
import { kindsWith } from '../core/kind-facts.ts';
import * as plan from '../core/plan-schema.ts';
import {
  countSchema,
  type Fixed,
  keySchema,
  kindSchema,
  timeSchema,
  typed,
  verbSchema,
} from '../core/plan-schema.ts';
import { conditions } from './condition.ts';

const text = z.string();
const maybe = timeSchema.nullable();

export const commitSchema = z.strictObject({
  id: text,
  ref: text,
  subject: text,
  author: text,
  url: text.nullable().describe('The page of the commit, if the address of the repository shows it.'),
  committed_at: timeSchema,
});

export const diagnosticSchema = z.strictObject({
  file: text,
  line: countSchema,
  column: countSchema,
  message: text,
});

const billed = z.strictObject({
  id: text,
  what: text,
  key: keySchema.nullable(),
  since: maybe.describe('When vdcsync first recorded or saw this; null if it did not.'),
});

const found = typed<IgnoredObject>(
  z.strictObject({ kind: z.enum(kindsWith('bought')), id: text, addresses: z.array(text) }),
);

const budget = z.strictObject({ used: countSchema, limit: countSchema });
const price = z.strictObject({ currency: text.nullable(), known: text });

const spec = z.strictObject({
  files: z.array(text).describe('The files of the spec in force; empty if there is none.'),
  digest: text.nullable().describe('Null without a spec, and if the spec has values of the environment.'),
  commit: commitSchema.nullable(),
  suspend: z.strictObject({ reason: text, until: text.optional() }).nullable(),
  drift: z.enum(['correct', 'report']).nullable(),
  broken: z.array(diagnosticSchema).describe('The errors of the newest spec; empty if it is valid.'),
  broken_since: maybe,
});

const counts = z.strictObject({
  blocked: countSchema.describe('Keys that need a manual decision.'),
  waiting: countSchema.describe('Keys with an operation that waits, and that needs no decision.'),
  pending: countSchema.describe('Operations of the plan that have not begun, and that are not blocked.'),
  in_flight: countSchema.describe('Entries of `in_flight`.'),
  open_writes: countSchema.describe('Writes whose outcome or task is open, blocked ones included.'),
  exposed: countSchema.describe('Entries of `exposed`.'),
  leaking: countSchema.describe(
    'Billed addresses that no server uses and that no entry asks for, and backups of deleted servers.',
  ),
  standings: z.record(z.enum(keyStatuses), countSchema).describe('Managed resources by their status.'),
});

const resource = z.strictObject({
  key: keySchema,
  kind: kindSchema,
  id: text.nullable().describe('The live id; null if no id is known.'),
  standing: z.enum(keyStatuses),
  presence: z
    .enum(['known', 'not_created', 'being_created', 'unconfirmed'])
    .describe('`unconfirmed`: the result of the creation is not known, so the resource may be billed.'),
  managed: z.boolean(),
  protect: z.boolean(),
  tainted: text.nullable(),
  identity: z.record(text, text),
  detail: text.nullable().describe('The type of a server, or the range of a network.'),
  addresses: z.array(text).describe('Public addresses; those of the last run if the API was not read.'),
  exposed_since: maybe.describe('Since when the daemon has seen the server exposed.'),
  linked: z.array(keySchema).describe('Of a server: its networks, and the addresses that are resources.'),
  bound_at: maybe,
  observed_at: maybe.describe('The time of the read that the status rests on; null without a read.'),
});

const address = z.strictObject({
  id: text,
  address: text,
  key: keySchema.nullable(),
  server_id: text.nullable(),
  server: keySchema.nullable().describe('The key of the server; null for a server that is not managed.'),
  use: z
    .enum(['attached', 'idle', 'unconfirmed', 'ignored'])
    .describe('`unconfirmed`: an open write may have bought the address.'),
  since: maybe.describe(
    'Of an attached address: when its key was bound. Otherwise since when no server has used the address; null if vdcsync has not seen that.',
  ),
});

const flight = z.strictObject({
  key: keySchema,
  verb: verbSchema,
  step: z
    .enum(['queued', 'sent', 'task', 'failed', 'checking', 'waiting'])
    .nullable()
    .describe('The current step in this process; null for a write of an earlier run.'),
  phase: text.nullable().describe('The phase of the recorded write; null before the write is recorded.'),
  detail: text.nullable().describe('Why the write waits, or why its outcome is not known.'),
  since: timeSchema,
  usual_end: maybe.describe('When the step usually ends.'),
  deadline: maybe.describe('When vdcsync stops waiting.'),
  request_id: text.nullable(),
  task_id: text.nullable(),
});

const write = z.strictObject({
  key: keySchema,
  verb: verbSchema,
  kind: kindSchema,
  phase: text,
  outcome: text.nullable(),
  detail: text.nullable(),
  queued_at: maybe.describe(
    'When the write was ready; null if it did not wait for its turn or the request limit.',
  ),
  since: timeSchema,
  last_sent_at: maybe,
  closed_at: maybe,
  public: z.boolean().describe('Whether it creates a server with a public address.'),
  request_id: text.nullable(),
});

const reconciliation = z.strictObject({
  triggers: z.array(text),
  started_at: timeSchema,
  ended_at: timeSchema,
  outcome: text,
  operations: countSchema,
  commit: text.nullable(),
});

const daemon = z.strictObject({
  flags: text.describe('The flags that select this project in a command.'),
  mode: z.enum(['correct', 'observe']),
  interval_seconds: z.number().min(0),
  error: text.nullable().describe('The error of the last reconciliation.'),
  waiting_for: text.nullable().describe('The owner of the state that this process waits for.'),
  reconciling: z.boolean(),
  reconciliations: countSchema.describe('Since the daemon started.'),
  last_reconciliations: z.array(reconciliation).describe('The last ones, newest first.'),
  next_reconciliation_at: maybe,
  oldest_read_seconds: countSchema.describe('The age of the oldest answer about a server.'),
  pauses: z.array(
    z.strictObject({ scope: text, code: text, reason: text, since: timeSchema, probe_at: maybe }),
  ),
  back_off: z.array(
    z.strictObject({ key: keySchema, failures: countSchema, until: timeSchema, code: text, reason: text }),
  ),
  requests: z
    .strictObject({
      window_seconds: z.number().min(0),
      reads: budget,
      writes: budget,
      since_start: z.strictObject({
        reads: countSchema,
        writes: countSchema,
        polls: countSchema,
        probes: countSchema,
        throttled: countSchema,
      }),
    })
    .nullable(),
});

/**
 * One project at one moment: the result of `vdcsync status --format json`, and each project of `GET /status`. Page,
 * metrics and the text of `status` show nothing else.
 */
export const projectViewSchema = z.strictObject({
  format_version: z.literal(1).describe('Goes up with the first change that breaks a reader.'),
  project: z.strictObject({ id: z.int().nullable(), name: text.nullable(), status: text.nullable() }),
  at: maybe.describe('The current time on the clock of all times here.'),
  observed_at: maybe.describe('Time of the last refresh; null if the API was not read.'),
  offline: text.nullable().describe('The reason why the API was not read.'),
  state: z
    .strictObject({
      location: text,
      exists: z.boolean(),
      lineage: text,
      serial: countSchema,
      changed_at: maybe,
    })
    .nullable()
    .describe('The state that the command has read; null in the status of a daemon.'),
  condition: z.enum(conditions).nullable().describe('Null if neither a plan nor a daemon shows it.'),
  condition_since: maybe,
  converged: z.boolean().nullable(),
  differs_since: maybe.describe('Since when the project has differed from the spec.'),
  spec,
  counts,
  plan: z
    .strictObject({
      digest: text,
      summary: plan.summarySchema,
      cost: plan.costSchema,
      awaits_approval: z.boolean().describe('Whether its operations wait for the approval of the operator.'),
    })
    .nullable()
    .describe('The last plan; null if there is none.'),
  operations: z.array(plan.operationSchema).describe('The operations of the last plan.'),
  blocked: z.array(plan.blockedSchema),
  warnings: z.array(plan.warningSchema),
  more_warnings: countSchema
    .optional()
    .describe('How many warnings are left out: an output has at most 500.'),
  differs: z
    .array(text)
    .describe('Differences between project and spec, one line each, as in log and notifications.'),
  exposed: z
    .array(keySchema)
    .nullable()
    .describe(
      'Servers with a public address, a declared firewall, and no firewall in force; null if the API was not read.',
    ),
  in_flight: z.array(flight).describe('Operations in progress, and open writes of earlier runs.'),
  resources: z.array(resource).describe('The resources that the state binds.'),
  unbound: z.array(resource).describe('The resources that the spec declares, and the state does not bind.'),
  addresses: z.array(address).nullable().describe('All addresses; null if the API was not read.'),
  address_price: price.nullable().describe('The monthly price of an address; null if it is not known.'),
  billed: z
    .array(billed)
    .describe('The resources that cost money: from the API if it was read, else from the state.'),
  idle: z
    .array(billed)
    .nullable()
    .describe('Billed addresses that no server uses, without ignored ones; null if the API was not read.'),
  idle_monthly: price.nullable().describe('Monthly cost of idle addresses; null if the price is not known.'),
  unconfirmed: z
    .array(billed)
    .nullable()
    .describe('Billed addresses that an open write may have bought. They do not count as idle.'),
  unconfirmed_creations: z
    .array(keySchema)
    .describe('Keys of open creations that may have created a billed resource whose id is not known.'),
  unmanaged: z
    .array(found)
    .nullable()
    .describe('Resources in neither spec nor state; null if the API was not read.'),
  ignored: z
    .array(found)
    .describe('Ignored resources. They are billed as long as they exist. `vdcsync ignore --undo` ends this.'),
  left_backups: z
    .array(z.strictObject({ server_id: text, key: keySchema, backups: z.array(text), since: timeSchema }))
    .describe('Backups of deleted servers. They count as billed until `vdcsync ignore SERVER_ID`.'),
  writes: z.array(write).describe('The last writes, newest first.'),
  daemon: daemon
    .nullable()
    .describe('The daemon that works on the project; null in the result of a command.'),
});

export type ProjectView = Fixed<z.infer<typeof projectViewSchema>>;
/** The resources of spec and state, in the order of their keys. */
export function resourcesIn({ resources, unbound }: ProjectView): readonly ResourceView[] {
  return [...resources, ...unbound].sort((a, b) => (a.key < b.key ? -1 : 1));
}

export type ResourceView = ProjectView['resources'][number];
export type BilledView = ProjectView['billed'][number];

/** A server that is not managed, with the addresses that it holds now, or an address without a server. */
export interface IgnoredObject {
  readonly kind: Claim['kind'];
  readonly id: string;
  readonly addresses: readonly string[];
}
