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
  address_in_use: [
    'refusal',
    'the file names an address that another server holds, and vdcsync detaches no address',
  ],
  address_not_as_declared: [
    'policy',
    'the server has taken a free address of the project, which may belong to another user',
  ],
  address_not_the_only_free_one: [
    'policy',
    'the API attaches any free address, and the file names one of several',
  ],
  bound_already: [
    'policy',
    '`id:` names a resource of another entry, or the API created a resource for a key that is already bound',
  ],
  check_refused: ['policy', 'the plan breaks a rule of that command'],
  default_network: ['refusal', 'the file asks for a change of the default network'],
  dependency_blocked: ['none', 'the operation continues after the operation that it depends on'],
  disk_would_shrink: ['policy', 'only the operator knows whether the data is still needed'],
  entry_incomplete: ['refusal', 'an entry with `id:` may omit the fields that only a creation needs'],
  firewall_no_public_iface: ['refusal', 'the API puts no firewall on a server without a public address'],
  firewall_would_lose: ['policy', 'only the operator knows whether these values are needed'],
  gpu_package_not_found: [
    'refusal',
    'the name in the file has a typing error, or the API no longer offers the package',
  ],
  gpu_package_required: ['refusal', 'the file does not choose a package'],
  id_conflict: ['policy', 'the entry was given another `id:` after its resource was bound'],
  identity_changed: ['candidates', 'the id may belong to another resource now'],
  image_ambiguous: ['refusal', 'image names are not unique, so the file has to give the id'],
  image_not_found: [
    'refusal',
    'the name in the file has a typing error, or the API no longer offers the image',
  ],
  image_not_supported: ['refusal', 'the file names an ISO as the image of a server'],
  image_taken_before: ['unmanaged', 'no documented read lists server images'],
  immutable: ['refusal', 'the file changes a field that no operation can change'],
  ip_in_use: [
    'refusal',
    'the API does not release an attached address, and the run does not delete the server',
  ],
  iso_in_use: [
    'refusal',
    'the API does not delete an ISO that a drive holds, and the plan does not eject the ISO',
  ],
  key_conflict: [
    'unmanaged',
    'another file or state used the idempotency key: the resource may belong to that file',
  ],
  key_not_answered: ['none', 'the next run asks the API again'],
  key_too_old: [
    'expired',
    'the API no longer stores the answer under the idempotency key, and lists may be incomplete',
  ],
  max_deletions: ['policy', 'entries have left the file, or their changes need replacements'],
  max_monthly_increase: ['policy', 'the run buys resources, or makes them larger'],
  moved_from_unknown: [
    'refusal',
    'the previous key in the file has a typing error, or this state has never bound it',
  ],
  moved_in_flight: ['none', 'the operation continues after the open write'],
  moved_onto_bound: ['policy', 'both resources existed before the rename'],
  name_ambiguous: ['refusal', 'network names are not unique, so the file has to give the id'],
  name_exists: ['unmanaged', 'the planned creation could duplicate that resource'],
  network_in_use: ['refusal', 'the change deletes the network, and servers that stay are in it'],
  no_gpu_capacity: ['refusal', 'the provider had no capacity for a day'],
  not_found: [
    'refusal',
    'the id or name in the file has a typing error, or the resource was deleted outside vdcsync',
  ],
  not_shown: ['none', 'the next run shows the deletion, and carries it out'],
  not_there: ['unseen', 'only a list could show the effect, and a list may be incomplete'],
  outcome_unknown: [
    'unseen',
    'reads do not show the resource, or show a resource that may belong to another user',
  ],
  plan_not_found: [
    'refusal',
    'the number in the file has a typing error, or the API no longer offers the plan',
  ],
  profile_changed: [
    'refusal',
    'the API accepts an idempotency key only with the request that first used the key',
  ],
  project_not_active: ['refusal', 'the API refuses new spending while the project is not Active'],
  protected: ['policy', 'the file protects the resource'],
  prune_disabled: ['policy', 'the file does not permit deletions'],
  rate_limit_exceeded: ['none', 'the next run sends the write'],
  read_failed: ['none', 'the next run reads again'],
  recovered_unconfirmed: [
    'policy',
    'the resource was found under an idempotency key, and another file may manage it',
  ],
  replace_not_allowed: ['policy', 'the file does not permit the replacement'],
  server_error: ['refusal', 'the fault is in the API, so only the provider can remove it'],
  server_type_not_found: [
    'refusal',
    'the name in the file has a typing error, or the API no longer offers the type',
  ],
  server_type_not_supported: [
    'refusal',
    'the file names a server with a `gpu_package` as the source of an image',
  ],
  size_unconfirmed: ['policy', 'no documented read shows the size that the resize would overwrite'],
  sizing_mode_mismatch: ['refusal', 'the size fields in the entry belong to another server type'],
  stuck: ['task', 'the API did not report the end of the task in the time that vdcsync allows for it'],
  superseded: ['none', 'the next run creates the resource again'],
  suspended: ['policy', 'the file asks for a stop of all changes'],
  tainted: ['task', 'vdcsync cannot know whether the resource works'],
  task_failed: [
    'candidates',
    'only the operator can remove the cause. A new resource in the project may come from the task, or may belong to another user',
  ],
  unlisted_servers: ['unmanaged', 'the planned creation could duplicate one of these servers'],
  unmanaged_resources: ['unmanaged', 'the planned creation could duplicate one of these resources'],
  unreachable: ['none', 'the next run sends the write'],
  unresolved_create: ['none', 'the operation continues after the other creation'],
  url_missing: ['refusal', 'the entry has an `id:`, and only a creation needs the url'],
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
