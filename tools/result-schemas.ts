import * as z from 'zod';
import { keyStatuses } from '../src/core/key-status.ts';
import { collections } from '../src/core/kind-facts.ts';
import {
  blockedSchema,
  changeSchema,
  positionSchema,
  remediesSchema,
  warningSchema,
} from '../src/core/plan-schema.ts';

const text = z.string();
const moment = z.iso.datetime();
const count = z.int().min(0);
const format = z.literal(1).describe('Goes up with the first change that breaks a reader.');
const named = { key: text, id: text };

/** `vdcsync output` */
export const outputSchema = z.strictObject({
  format_version: format,
  project_id: z.int().nullable(),
  observed_at: moment.nullable().describe('When the API was read; null with `--offline`.'),
  ...Object.fromEntries(collections.map((each) => [each, z.record(text, z.strictObject(named))])),
  servers: z
    .record(
      text,
      z.strictObject({
        ...named,
        name: text,
        public_ipv4: z.ipv4().nullable(),
        network_interfaces: z
          .record(text, z.strictObject({ id: text, addresses: z.array(z.ipv4()) }))
          .describe("By the network's name in the file. With `--offline` no address is known."),
      }),
    )
    .describe('By the name in the spec, like every map here.'),
  ips: z.record(text, z.strictObject({ ...named, address: z.ipv4().nullable() })),
  networks: z.record(text, z.strictObject({ ...named, name: text, cidr: text.nullable() })),
});

const write = {
  verb: text,
  phase: text,
  since: moment,
  detail: text.nullable(),
  task_id: text.nullable(),
  request_id: text.nullable(),
};

/** `vdcsync explain CODE --format json`, and `vdcsync explain KEY --format json` */
export const explainSchema = z.union([
  z
    .strictObject({
      format_version: format,
      code: text,
      meaning: text,
      cause: text.nullable().describe('The reason why vdcsync asks the operator; null if it does not ask.'),
      class: text.nullable(),
      next_step: text,
      example: z.strictObject({
        situation: text,
        ways: z.array(text).describe('Alternatives: commands, or lines of the spec.'),
      }),
    })
    .describe('Of a code.'),
  z
    .strictObject({
      format_version: format,
      key: text,
      declared: z
        .strictObject({
          position: positionSchema,
          managed: z.boolean(),
          protect: z.boolean(),
          entry: z.unknown(),
        })
        .nullable()
        .describe('The entry in the spec.'),
      file_read: z.boolean(),
      bound: z
        .strictObject({ id: text, since: moment, standing: z.enum(keyStatuses), addresses: z.array(text) })
        .nullable(),
      observed_at: moment.nullable().describe('Time of the refresh; null if the API was not read.'),
      offline: text.nullable().describe('The reason why the API was not read.'),
      planned: z.array(
        z.strictObject({ verb: text, changes: z.array(changeSchema), reason: text.optional() }),
      ),
      open_writes: z.array(z.strictObject(write)),
      blocked: z.array(blockedSchema),
      warnings: z.array(warningSchema),
      past_writes: z.array(z.strictObject({ ...write, outcome: text, closed_at: moment })),
    })
    .describe('Of a key.'),
]);

const amount = text.regex(/^-?\d+\.\d{2,}$/).describe('Decimal.');

/** `vdcsync bill --format json` */
export const billSchema = z.strictObject({
  format_version: format,
  project_id: z.int().nullable(),
  month: text.describe('In UTC, such as 2026-11.'),
  from: moment,
  until: moment.describe('The end of the month; in the current month the present.'),
  known_since: moment.describe('When the state began. The cost before that moment is not known.'),
  currency: text.nullable(),
  cost: amount.describe('Until `until`, without parts that have no price. The sum of the items.'),
  cost_at_least: amount.describe('Lower than `cost` where a moment is known only within bounds.'),
  run_rate: amount.describe('The monthly price of everything that is billed at `until`.'),
  forecast: amount.describe('The cost of the whole month, if nothing changes.'),
  items: z.array(
    z.strictObject({
      key: text,
      kind: text,
      id: text,
      from: moment,
      until: moment,
      began: z
        .enum(['created', 'known'])
        .describe('`known`: the resource is older than its binding, and the cost before is not known.'),
      ended: z
        .enum(['deleted', 'gone', 'released'])
        .nullable()
        .describe('`released`: it is still billed, and the cost after is not known.'),
      monthly: amount.nullable(),
      cost: amount,
      cost_at_least: amount,
      unpriced: text.nullable().describe('The reason why a part has no price.'),
      assumed: text.nullable().describe('The reason why the live resource may have another price.'),
    }),
  ),
  unconfirmed: z.array(text).describe('Keys of creations that the API may have carried out.'),
});

/** `vdcsync history --format json` */
export const historySchema = z.strictObject({
  format_version: format,
  writes: z.array(
    z.strictObject({
      run: z.string().describe('When the first write of its run was recorded; `history RUN` takes it.'),
      begun_at: moment,
      last_sent_at: moment.nullable(),
      closed_at: moment.nullable(),
      key: text,
      verb: text,
      operation: text,
      idempotency_key: text,
      incarnation: text,
      attempt: count,
      sends: count,
      phase: text,
      outcome: text.nullable(),
      detail: text.nullable(),
      request_id: text.nullable(),
      task_id: text.nullable(),
      resource_id: text.nullable(),
      why: text.nullable(),
    }),
  ),
  proofs: z
    .array(
      z.strictObject({
        sent_at: moment,
        answered_at: moment.nullable(),
        key: text,
        purpose: z.enum(['proof', 'calibration']),
        operation: text,
        idempotency_key: text,
        answer: text.nullable(),
        request_id: text.nullable(),
      }),
    )
    .describe(
      'Requests that the API must refuse, and that show whether it accepts the values of a creation.',
    ),
});

/** The output of any command with `--format json` that fails. */
export const errorSchema = z.strictObject({
  format_version: format,
  type: z.literal('error'),
  error: text.describe(
    'SpecError, ConfigError, StateError, FenceError, PlanStaleError, ApiProblem, TransportError or Error.',
  ),
  message: text,
  code: text.nullable().describe("The API's own code, or that of a broken connection."),
  status: z.int().nullable(),
  request_id: text.nullable(),
  remedies: remediesSchema,
  exit_code: z.int(),
});

/** `vdcsync doctor --format json` */
export const doctorSchema = z.strictObject({
  format_version: format,
  healthy: z.boolean(),
  project: z.strictObject({ id: z.int(), name: text, status: text }).nullable(),
  findings: z.array(
    z.strictObject({
      id: text,
      level: z.enum(['ok', 'info', 'unknown', 'warning', 'error']),
      message: text,
      advice: text.nullable().describe('The next step, as one text.'),
      remedies: remediesSchema,
    }),
  ),
});

/** `vdcsync rehearse --format json` */
export const rehearsalSchema = z.strictObject({
  format_version: format,
  project: z.strictObject({ id: z.int() }),
  outcome: text.describe('Outcome of the run without faults.'),
  trials: count,
  converged: count,
  needed_an_operator: count.describe('Trials that needed a decision of the operator.'),
  asked_by_code: z
    .record(z.string(), count)
    .describe('Trials that asked, by code. A trial may ask by several.'),
  stopped_by_refusal: count.describe(
    'Trials that asked nothing, and stopped at a refusal that the file, the token, the payment or the provider lifts, or at a late task.',
  ),
  duplicates: count,
  left_unseen: count.describe('Trials that left a billed resource that no report names.'),
  settled: z.boolean().describe('After the run without faults, a second plan is empty.'),
  duration_ms: count,
  seconds_at_least: z.number().min(0),
  requests: z.strictObject({ reads: count, writes: count, polls: count, probes: count, throttled: count }),
  operations: z.array(z.strictObject({ id: text, start_ms: count, end_ms: count, outcome: text })),
  cost: z.looseObject({}).describe('As in a plan.'),
  blocked: z.array(blockedSchema),
  failures: z.array(z.strictObject({ name: text, rule: text.nullable(), message: text.nullable() })),
  notes: z.array(text),
});

const told = z.strictObject({ file: text, line: count, column: count, message: text });

/** `vdcsync validate --format json` */
export const validationSchema = z.strictObject({
  format_version: format,
  valid: z.boolean(),
  project_id: z.int().nullable(),
  resources: count,
  errors: z.array(told),
  warnings: z.array(told).describe('Probable mistakes. The values are sent unchanged.'),
});

/** `vdcsync adopt`, `resolve`, `forget` and `ignore` with `--format json` */
export const settledSchema = z.strictObject({
  format_version: format,
  key: text.nullable().describe('null for `ignore`.'),
  message: text,
  remedies: remediesSchema,
});
