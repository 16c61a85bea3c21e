import * as z from 'zod';
import { defaultPolicy, type RolloutPolicy, wave } from '../../daemon/fleet/rollout.ts';
import { find, type Located, type Report } from '../../spec/located.ts';
import { durationOf, readDocument } from './profile.ts';

const duration = durationOf(0, 'must be a duration such as 10m');

/** The content of a fleet file. Every key is optional. */
const fleetSchema = z.strictObject({
  fleet: z
    .strictObject({
      max_deletions: z.int().min(0).optional(),
      waves: z.array(wave).max(20).optional(),
      stay: duration.optional(),
      deadline: duration.optional(),
      supersede: duration.optional(),
    })
    .optional(),
  labels: z.record(z.string().min(1), z.array(z.int().min(1))).optional(),
  tenants: z.record(z.string().min(1), z.array(z.int().min(1))).optional(),
});

/**
 * Reads the file in which the operator of a fleet limits a single change. A user who may only push specs cannot change it.
 *
 * @throws ConfigError with one `file:line:col: message` a line, for every error at once.
 */
export function loadFleetConfig(text: string, file: string): RolloutPolicy {
  const {
    fleet = {},
    labels,
    tenants,
  } = readDocument(text, file, 'the fleet file', fleetSchema, checkLabels);
  return {
    maxDeletions: fleet.max_deletions ?? defaultPolicy.maxDeletions,
    waves: fleet.waves ?? defaultPolicy.waves,
    stayMs: fleet.stay ?? defaultPolicy.stayMs,
    deadlineMs: fleet.deadline ?? defaultPolicy.deadlineMs,
    supersedeMs: fleet.supersede ?? defaultPolicy.supersedeMs,
    labels: labels ?? defaultPolicy.labels,
    tenants: tenants ?? defaultPolicy.tenants,
  };
}

/** A wave without projects would let every change pass unseen. */
function checkLabels(root: Located, report: Report): void {
  const known = [...(find(root, ['labels'])?.fields?.keys() ?? [])];
  for (const each of find(root, ['fleet', 'waves'])?.items ?? []) {
    const label = find(each, ['match', 'label']);
    if (typeof label?.value !== 'string' || known.includes(label.value)) continue;
    report(label.position, `no project has the label ${label.shown}: list its projects under \`labels\``);
  }
}
