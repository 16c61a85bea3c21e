import * as z from 'zod';
import { remedies } from '../src/cli/plan/schema.ts';
import { keyStatuses } from '../src/core/key-status.ts';
import { kindsWith } from '../src/core/kind-facts.ts';

const text = z.string();
const moment = z.iso.datetime();
const maybe = moment.nullable();
const count = z.number().min(0);

const diagnostic = z.looseObject({ file: text, line: count, column: count, message: text });
const commit = z.looseObject({ id: text, ref: text, subject: text, committed_at: maybe }).nullable();
const blocked = z.looseObject({ key: text, verb: text, code: text, reason: text, resolve: text, remedies });
const warning = z.looseObject({ code: text, key: text.nullable(), message: text });
const address = z.looseObject({ id: text, address: text, key: text.nullable() });
const budget = z.looseObject({ used: count, limit: count });

const project = z.looseObject({
  id: z.int(),
  at: maybe.describe('The current time on the clock of this project; null until its state is open.'),
  name: text.nullable(),
  status: text.nullable(),
  mode: z.enum(['correct', 'observe']),
  condition: text.describe(
    'The condition of the project: converged, converging, drifting, blocked, paused, …',
  ),
  condition_since: maybe,
  converged: z.boolean(),
  error: text.nullable().describe('The error of the last reconciliation.'),
  waiting_for: text.nullable().describe('The owner of the state that this process waits for.'),
  spec: z.looseObject({
    files: z.array(text),
    digest: text.nullable(),
    commit,
    broken: z.array(diagnostic).describe('The errors of the newest spec; empty if it is valid.'),
    suspend: z.looseObject({ reason: text }).nullable(),
    drift: text.nullable(),
  }),
  reconciling: z.boolean(),
  reconciliations: count,
  last_reconciliation: z
    .looseObject({
      triggers: z.array(text),
      started_at: maybe,
      ended_at: maybe,
      outcome: text,
      operations: count,
      commit: text.nullable(),
    })
    .nullable(),
  next_reconciliation_at: maybe,
  differs_since: maybe.describe('Since when the project has differed from the file.'),
  observed_at: maybe,
  oldest_read_seconds: count,
  summary: z.record(text, count).nullable(),
  operations: z.array(z.looseObject({ id: text, key: text, verb: text })),
  blocked: z.array(blocked),
  exposed: z
    .array(text)
    .describe('Servers with a public address, a declared firewall, and no firewall in force.'),
  differs: z
    .array(text)
    .describe('Differences between project and file, one line each, as in log and notifications.'),
  drift: z
    .array(warning)
    .describe('Differences that were made outside vdcsync, and that `drift: report` does not correct.'),
  warnings: z.array(warning),
  in_flight: z.array(z.looseObject({ key: text, verb: text, since: maybe, at: maybe, until: maybe })),
  open_writes: z.array(
    z.looseObject({
      key: text,
      verb: text,
      phase: text,
      since: maybe,
      detail: text.nullable().describe('Why the write waits, or why its outcome is not known.'),
      task_id: text.nullable(),
      request_id: text.nullable(),
    }),
  ),
  pauses: z.array(z.looseObject({ scope: text, code: text, reason: text, since: maybe, probe_at: maybe })),
  back_off: z.array(z.looseObject({ key: text, until: maybe })),
  resources: z.array(
    z.looseObject({
      key: text,
      kind: text,
      id: text,
      standing: z.enum(keyStatuses),
      identity: z.record(text, text),
      protect: z.boolean(),
      tainted: text.nullable(),
    }),
  ),
  idle: z.array(address).describe('Addresses that are billed and attached to nothing.'),
  unconfirmed: z
    .array(address)
    .describe('Billed addresses that an unconfirmed write may have bought. They do not count as idle.'),
  left_billed: z.array(text),
  ignored: z
    .array(z.looseObject({ kind: z.enum(kindsWith('bought')), id: text, addresses: z.array(text) }))
    .describe('Ignored resources. They are billed as long as they exist.'),
  left_backups: z
    .array(z.looseObject({ server_id: text, key: text, backups: z.array(text), since: moment }))
    .describe('Billed backups of deleted servers.'),
  requests: z
    .looseObject({
      window_seconds: count,
      reads: budget,
      writes: budget,
      polls: count,
      throttled: count,
    })
    .nullable(),
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
    read_at: maybe,
    error: text.nullable(),
    commit,
    broken: z.array(diagnostic),
  }),
  fleet: z.looseObject({ replica: text, leads: z.boolean() }).optional(),
  projects: z.array(project).describe('At most 50 in one answer.'),
  next: text.nullable().describe('The path with the next projects; null if this answer has the last ones.'),
});
