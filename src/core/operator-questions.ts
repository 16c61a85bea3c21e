import type { Code } from './codes.ts';

/**
 * Why an operator is asked: the closed list. `settles`: the answer settles the outcome of a write, or says to whom a
 * resource belongs, so `rehearse` counts the question; the other questions are about an outcome that is known.
 */
export const questionClasses = {
  policy: { title: 'a decision that the file and its settings leave to the operator', settles: false },
  unmanaged: { title: 'an unmanaged resource that a purchase could duplicate', settles: true },
  refusal: {
    title: 'a refusal that only the file, the token, the payment or the provider can lift',
    settles: false,
  },
  task: { title: 'a task that failed and left something billed, or is past its deadline', settles: false },
  unseen: { title: 'a resource that no documented read shows', settles: true },
  candidates: { title: 'resources that the documented reads cannot distinguish', settles: true },
  expired: { title: 'an idempotency key that is 23 hours old', settles: true },
  none: { title: 'no question: a later run or another entry settles it', settles: false },
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
    'the API takes any free address, and the file means one of several',
  ],
  bound_already: ['policy', 'two entries claim one resource, or one entry two resources'],
  check_refused: ['policy', 'the command of the operator refuses the plan'],
  default_network: ['refusal', 'the file asks for a change of the default network'],
  dependency_blocked: ['none', 'it continues once the entry that it needs is settled'],
  disk_would_shrink: ['policy', 'only the operator knows whether the data may be lost'],
  entry_incomplete: ['refusal', 'the file lacks fields that the replacement needs'],
  firewall_no_public_iface: ['refusal', 'the API puts no firewall on a server without a public address'],
  firewall_would_lose: ['policy', 'live rules carry fields of other users, which the API may not take back'],
  gpu_package_not_found: ['refusal', 'the type does not sell the package that the file names'],
  gpu_package_required: ['refusal', 'the file does not choose a package'],
  id_conflict: ['policy', 'the file and the state name two resources for one entry'],
  identity_changed: ['candidates', 'the id may belong to another resource now'],
  image_ambiguous: ['refusal', 'the file names several images'],
  image_not_found: ['refusal', 'the type has no image that the file names'],
  image_not_supported: ['refusal', 'no server can be created from that image'],
  image_taken_before: ['unmanaged', 'no documented read lists server images'],
  immutable: ['refusal', 'the file changes a field that no operation can change'],
  ip_in_use: ['refusal', 'the address is attached to a server that stays'],
  iso_in_use: ['refusal', 'the ISO is in a drive that the plan does not change'],
  key_conflict: ['unmanaged', 'another state used the key: the purchase may be that of another file'],
  key_not_answered: ['none', 'the next run asks the key again'],
  key_too_old: ['expired', 'the API no longer stores the answer to the key, and reads may end early'],
  released_before: ['policy', 'the resource that the entry managed before still exists'],
  max_deletions: ['policy', 'the run deletes more than the file permits'],
  max_monthly_increase: ['policy', 'the run costs more than the file permits'],
  moved_from_unknown: ['refusal', 'the file names a previous key that the state does not have'],
  moved_in_flight: ['none', 'it continues once the open write is settled'],
  moved_onto_bound: ['policy', 'each of the two keys is bound to a resource'],
  name_ambiguous: ['refusal', 'the file names several networks'],
  name_exists: ['unmanaged', 'an unmanaged resource has the name, and the purchase could duplicate it'],
  network_in_use: ['refusal', 'servers that stay are in the network'],
  no_gpu_capacity: ['refusal', 'the provider had no capacity for a day'],
  not_found: ['refusal', 'the file or the request names a resource that the project does not have'],
  not_shown: ['none', 'the next run shows the deletion, and carries it out'],
  not_there: ['unseen', 'only a list could show the resource, and a list may end early'],
  outcome_unknown: ['unseen', 'reads do not show the resource, or show one that may belong to another user'],
  plan_not_found: ['refusal', 'the type has no plan that the file names'],
  profile_changed: ['refusal', 'the API profile or a variable changed the request of an open write'],
  project_not_active: ['refusal', 'the project is suspended'],
  protected: ['policy', 'the file protects the resource'],
  prune_disabled: ['policy', 'the file does not permit deletions'],
  read_failed: ['none', 'the next run reads again'],
  replace_not_allowed: ['policy', 'the file does not permit the replacement'],
  server_error: ['refusal', 'the API answers with server errors only, and reads show no effect'],
  server_type_not_found: ['refusal', 'the catalogue has no type that the file names'],
  server_type_not_supported: ['refusal', 'no image can be taken from the server'],
  size_unconfirmed: ['policy', 'no documented read shows the size that the resize would overwrite'],
  sizing_mode_mismatch: ['refusal', 'the type is sized in another way'],
  stuck: ['task', 'the task is past its deadline'],
  superseded: ['none', 'the next run creates the resource again'],
  suspended: ['policy', 'the file suspends all changes'],
  tainted: ['task', 'a failed task left a resource: the operator keeps or deletes it'],
  task_failed: ['candidates', 'a resource that appeared during a failed task may belong to another user'],
  unlisted_servers: ['unmanaged', 'unmanaged servers exist that the purchase could duplicate'],
  unmanaged_resources: ['unmanaged', 'unmanaged resources exist that the purchase could duplicate'],
  unreachable: ['none', 'the next run sends the write'],
  unresolved_create: ['none', 'it continues once the other creation is settled'],
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
