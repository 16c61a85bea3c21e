import type { Code } from './codes.ts';

/**
 * Why an operator is asked: the closed list. `settles`: the answer settles the outcome of a write, or says to whom a
 * resource belongs, so `rehearse` counts the question; the other questions are about an outcome that is known.
 */
export const questionClasses = {
  policy: { title: 'a decision that the file and its settings leave to the operator', settles: false },
  unmanaged: { title: 'an unmanaged resource that a creation could duplicate', settles: true },
  refusal: {
    title: 'a refusal that only the file, the token, the payment or the provider can lift',
    settles: false,
  },
  task: { title: 'a task that failed and left a billed resource, or is past its deadline', settles: false },
  unseen: { title: 'a resource that no documented read shows', settles: true },
  candidates: { title: 'resources that the documented reads cannot distinguish', settles: true },
  expired: { title: 'an idempotency key that is 23 hours old', settles: true },
  none: { title: 'no question: a later run continues, or another operation comes first', settles: false },
} as const;

export type QuestionClass = keyof typeof questionClasses;

/**
 * Each code of vdcsync under which a plan or a run reports something as blocked: its class, and the reason why no
 * machine can know the answer. All other codes are those of the API's refusals, and are questions of the class
 * *refusal*.
 */
const questions = {
  address_in_use: ['refusal', 'the file names an address that another server holds'],
  address_not_the_only_free_one: [
    'policy',
    'the API attaches any free address, and the file names one of several',
  ],
  bound_already: ['policy', 'two entries have the same resource, or one entry has two'],
  check_refused: ['policy', 'the command of the operator refuses the plan'],
  default_network: ['refusal', 'the file asks for a change of the default network'],
  dependency_blocked: ['none', 'the operation continues after the operation that it depends on'],
  disk_would_shrink: ['policy', 'only the operator knows whether the data may be lost'],
  entry_incomplete: ['refusal', 'the file lacks fields that the replacement needs'],
  firewall_no_public_iface: ['refusal', 'the API puts no firewall on a server without a public address'],
  firewall_would_lose: [
    'policy',
    'other users set fields in the live rules, and a change could delete these fields',
  ],
  gpu_package_not_found: ['refusal', 'the type does not sell the package that the file names'],
  gpu_package_required: ['refusal', 'the file does not choose a package'],
  id_conflict: ['policy', 'the file and the state have different ids for the entry'],
  identity_changed: ['candidates', 'the id may belong to another resource now'],
  image_ambiguous: ['refusal', 'several images have the name in the file'],
  image_not_found: ['refusal', 'the server type does not have the image in the file'],
  image_not_supported: ['refusal', 'no server can be created from that image'],
  image_taken_before: ['unmanaged', 'no documented read lists server images'],
  immutable: ['refusal', 'the file changes a field that no operation can change'],
  ip_in_use: ['refusal', 'the address is attached to a server that stays'],
  iso_in_use: ['refusal', 'the ISO is in a drive that the plan does not change'],
  key_conflict: [
    'unmanaged',
    'another file or state used the idempotency key: the resource may belong to that file',
  ],
  key_not_answered: ['none', 'the next run asks the API again'],
  key_too_old: [
    'expired',
    'the API no longer stores the answer under the idempotency key, and lists may be incomplete',
  ],
  released_before: ['policy', 'the resource that the entry managed before still exists'],
  max_deletions: ['policy', 'the run deletes more than the file permits'],
  max_monthly_increase: ['policy', 'the run costs more than the file permits'],
  moved_from_unknown: ['refusal', 'the file names a previous key that the state does not have'],
  moved_in_flight: ['none', 'the operation continues after the open write'],
  moved_onto_bound: ['policy', 'each of the two keys is bound to a resource'],
  name_ambiguous: ['refusal', 'several networks have the name in the file'],
  name_exists: ['unmanaged', 'an unmanaged resource has the name, and the creation could duplicate it'],
  network_in_use: ['refusal', 'servers that stay are in the network'],
  no_gpu_capacity: ['refusal', 'the provider had no capacity for a day'],
  not_found: ['refusal', 'the file or the request names a resource that the project does not have'],
  not_shown: ['none', 'the next run shows the deletion, and carries it out'],
  not_there: ['unseen', 'only a list could show the effect, and a list may be incomplete'],
  outcome_unknown: [
    'unseen',
    'reads do not show the resource, or show a resource that may belong to another user',
  ],
  plan_not_found: ['refusal', 'the server type does not have the plan in the file'],
  profile_changed: [
    'refusal',
    'the API profile or an environment variable changed the request of an open write',
  ],
  project_not_active: ['refusal', 'the project is suspended'],
  protected: ['policy', 'the file protects the resource'],
  prune_disabled: ['policy', 'the file does not permit deletions'],
  read_failed: ['none', 'the next run reads again'],
  replace_not_allowed: ['policy', 'the file does not permit the replacement'],
  server_error: ['refusal', 'the API answers with server errors only, and reads show no effect'],
  server_type_not_found: ['refusal', 'the catalogue does not have the server type in the file'],
  server_type_not_supported: ['refusal', 'the API takes no image from the server'],
  size_unconfirmed: ['policy', 'no documented read shows the size that the resize would overwrite'],
  sizing_mode_mismatch: ['refusal', 'the server type has other size fields'],
  stuck: ['task', 'the task is past its deadline'],
  superseded: ['none', 'the next run creates the resource again'],
  suspended: ['policy', 'the file suspends all changes'],
  tainted: ['task', 'a failed task left a resource, which may work or not'],
  task_failed: ['candidates', 'a resource that appeared during a failed task may belong to another user'],
  unlisted_servers: ['unmanaged', 'the creation could duplicate one of these servers'],
  unmanaged_resources: ['unmanaged', 'the creation could duplicate one of these resources'],
  unreachable: ['none', 'the next run sends the write'],
  unresolved_create: ['none', 'the operation continues after the other creation'],
  url_missing: ['refusal', 'the file lacks the URL'],
} as const satisfies Readonly<Partial<Record<Code, readonly [QuestionClass, why: string]>>>;

/** A code of vdcsync under which something is blocked. */
export type BlockCode = keyof typeof questions;

export const operatorQuestions: Readonly<Record<string, readonly [kind: QuestionClass, why: string]>> =
  questions;

/** The class of the question that the code asks; `undefined`: a code of the API, of the class *refusal*. */
export function questionClass(code: string): QuestionClass | undefined {
  return operatorQuestions[code]?.[0];
}

/** Whether the answer of the operator settles the outcome of a write, or says to whom a resource belongs. */
export function settlesAnOutcome(code: string): boolean {
  return questionClasses[questionClass(code) ?? 'refusal'].settles;
}
