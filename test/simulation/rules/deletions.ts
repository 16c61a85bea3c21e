import { partsOf } from '../../../src/core/intent.ts';
import { type ResourceKey, retiredFrom, takeApart } from '../../../src/core/keys.ts';
import type { OperationResult } from '../../../src/core/progress.ts';
import type { Binding, Intent } from '../../../src/core/state.ts';
import type { Running } from '../../../src/simulation/controller.ts';
import { isSort, type ResourceSort } from '../../../src/simulation/resource-history.ts';
import { projectOf, type Truth } from '../../../src/simulation/rules/truth.ts';
import { limitOfDeletion } from '../limits.ts';

/** @source API §8 */
const keyLifeMs = 24 * 3_600_000;

/** A server that was deleted for its replacement, and the number of writes that had taken effect by then. */
interface Replaced {
  readonly id: string;
  readonly executed: number;
}

/** I8: a deletion needs a bound, unchanged and unprotected resource that the spec no longer wants, within the cap. */
export class Deletions {
  readonly #truth: Truth;
  readonly #deleted = new WeakMap<Running, Set<string>>();
  /** By run: the servers that it has deleted although the spec wants their entries, by key. */
  readonly #replaced = new WeakMap<Running, Map<ResourceKey, Replaced>>();

  readonly #reserved = new Set<ResourceKey>();

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  check(running: Running, intent: Intent): void {
    const truth = this.#truth;
    if (intent.verb !== 'delete') return;
    if (isReplay(truth, intent)) return;
    if (!isSort(intent.kind) || !isBound(truth, running, intent, intent.kind)) return;
    checkWanted(truth, running, intent);
    this.#checkOwner(running, intent, intent.kind);
    if (intent.kind === 'server') this.#checkSuccessors(running, intent);
    const deleted = this.#deleted.get(running) ?? new Set();
    if (!intent.key.endsWith('.public_ipv4')) deleted.add(intent.key);
    this.#deleted.set(running, deleted);
    const most = running.destroys ? Number.POSITIVE_INFINITY : running.desired.settings.max_deletions;
    if (deleted.size > most) truth.fail('I8', `${deleted.size} deletions in one run, ${most} are allowed`);
  }

  /** The key of an entry is reserved while the entry has a resource that was created under another key. */
  closed(intent: Intent): void {
    if (partsOf(intent).because === 'reserved') this.#reserved.add(intent.key);
  }

  /**
   * No run deletes the resource of another entry of the spec. The reserved key of that entry shows it, as long as the API
   * knows the key: an older copy of the state may have the resource under an earlier key.
   */
  #checkOwner(running: Running, { key, request }: Intent, sort: ResourceSort): void {
    const { history, emulator, fail } = this.#truth;
    const { desired, destroys, mirror } = running;
    const id = String(request.path.id);
    const [birth, owner] = [history.birthOf(sort, id), history.makerOf(sort, id)];
    if (birth === undefined || owner === undefined) return;
    if (destroys || !this.#reserved.has(owner) || mirror.bindings.has(owner)) return;
    const isWanted = desired.resources.some((each) => each.key === owner && each.managed);
    if (!isWanted || owner === (retiredFrom(key) ?? key)) return;
    const made = emulator.world.executions.findLast((each) => each.kind === sort && each.id === id);
    if (emulator.now() - (made?.atMs ?? 0) < keyLifeMs - 3_600_000)
      fail('I8', `${sort} ${id} of ${owner} is deleted as ${key}`);
  }

  isReplaced(running: Running, key: ResourceKey): boolean {
    return this.#replaced.get(running)?.has(key) === true;
  }

  /** I14: vdcsync does not refuse the creation for which the same run has deleted the old server. */
  ended(running: Running, { key, verb, code, detail }: OperationResult): void {
    const isRefused = verb === 'create' && (code === 'overtaken' || code === 'unresolved_create');
    if (isRefused && this.isReplaced(running, key) && !running.mirror.bindings.has(key))
      this.#truth.fail(
        'I14',
        `${key} was deleted for a replacement, and vdcsync refuses the new one: ${detail}`,
      );
  }

  /**
   * I18: a run deletes at most one server for which the spec wants a successor before that successor exists, or as many as
   * an entry permits.
   */
  #checkSuccessors(running: Running, { key, request }: Intent): void {
    const { history, emulator, fail } = this.#truth;
    const { desired, controller } = running;
    const replaced = this.#replaced.get(running) ?? new Map<ResourceKey, Replaced>();
    const isWanted = (each: ResourceKey) =>
      desired.resources.some((wanted) => wanted.key === each && wanted.managed);
    const { executions } = emulator.world;
    // The successor may get the id of the deleted server.
    const hasSuccessor = ([each, { id, executed }]: readonly [ResourceKey, Replaced]) =>
      history
        .executionsOf(controller.file.lines.nameOf(each))
        .filter((made) => made.kind === 'server' && history.isLive(made))
        .some((made) => made.id !== id || executions.indexOf(made) >= executed);
    if (running.destroys || !isWanted(key)) return;
    const left = [...replaced].filter((each) => isWanted(each[0]) && !hasSuccessor(each));
    const most = Math.max(1, ...desired.resources.map(({ value }) => atOnce(value.replace)));
    const others = left.filter(([each]) => each !== key).map(([each]) => each);
    if (others.length >= most)
      fail('I18', `${key} is deleted before the successors of ${others.join(', ')} exist`);
    replaced.set(key, { id: String(request.path.id), executed: executions.length });
    this.#replaced.set(running, replaced);
  }
}

/** Another state has sent the same deletion: the API replays its answer, and deletes nothing. */
export function isReplay(truth: Truth, { idempotencyKey }: Intent): boolean {
  return projectOf(truth).answers.some(
    ({ key, status, sinceMs }) =>
      key === idempotencyKey && status < 300 && truth.emulator.now() - sinceMs < keyLifeMs,
  );
}

/** Whether there is something to judge further: it is bound, and there. */
function isBound(truth: Truth, running: Running, intent: Intent, sort: ResourceSort): boolean {
  const { history, fail, giveUp } = truth;
  const { mirror, controller } = running;
  const id = String(intent.request.path.id);
  const birth = history.birthOf(sort, id);
  const binding = [...mirror.bindings.values()].find((each) => each.kind === sort && each.id === id);
  if (binding === undefined) {
    fail('I8', `${sort} ${id} is deleted and bound to nothing`);
    return false;
  }
  // The entry of its server counts for a part, although the binding still has the earlier value.
  const server = running.desired.resources.find((each) => each.key === takeApart(binding.key).parent);
  if ((server ?? binding).protect || isProtectedByFile(running, intent.key))
    fail('I8', `${binding.key} is protected and deleted`);
  if (isUnmanaged(running, binding)) fail('I8', `${binding.key} is deleted, and the spec does not manage it`);
  if (birth === undefined) return false;
  const { stateSince, confirmed } = controller;
  if (!intent.key.endsWith('.public_ipv4') && birth.number < stateSince && !confirmed.has(birth.number))
    fail('I8', `${sort} ${id} is deleted: a new state has found it, and no operator has confirmed it`);
  // Another state made it again for the same key, under an id that was free again: no read distinguishes the two.
  const again = history
    .executionsOf(controller.file.lines.nameOf(intent.key))
    .some((each) => each.id === id && history.isLive(each));
  if (history.birthBoundAs(binding)?.number === birth.number || again) return true;
  const limit = limitOfDeletion(truth, running, intent, binding, birth);
  if (limit !== undefined) giveUp(limit);
  else fail('I8', `${sort} ${id} is not the resource that was bound to ${binding.key}`);
  return true;
}

function atOnce(replace: unknown): number {
  return (replace as { readonly at_once?: number } | undefined)?.at_once ?? 1;
}

/**
 * The entry of the key, or the entry that the key has become, says so. A reverted rename has no `moved`. A state that was
 * put back may be older than the rename.
 */
function isProtectedByFile({ desired, controller, mirror }: Running, key: Intent['key']): boolean {
  const { lines } = controller.file;
  const isRenamed = (own: Intent['key']) =>
    !controller.behind &&
    retiredFrom(key) === undefined &&
    !mirror.bindings.has(own) &&
    lines.nameOf(own) === lines.nameOf(key);
  return desired.resources.some(
    (each) => each.protect && (each.key === key || each.moved === key || isRenamed(each.key)),
  );
}

/** An entry with `managed: false` names the resource by its id, or by its name. */
function isUnmanaged({ desired }: Running, { kind, id, identity }: Binding): boolean {
  return desired.resources.some(
    (each) =>
      each.kind === kind &&
      !each.managed &&
      // An entry without an id means the resource of its name. An address has none.
      (each.id === undefined
        ? identity.name !== undefined && each.value.name === identity.name
        : each.id === id),
  );
}

function checkWanted(truth: Truth, { desired, destroys }: Running, { key, kind, request }: Intent): void {
  const isNamed = desired.resources.some((each) => each.key === (retiredFrom(key) ?? key));
  if (!isNamed && !destroys && !desired.settings.prune && !key.endsWith('.public_ipv4'))
    truth.fail('I8', `${key} is deleted, and the spec does not say prune`);
  const network = projectOf(truth).networks.find(({ id }) => id === Number(request.path.id));
  if (kind === 'network' && network?.isDefault) truth.fail('I8', 'the default network is deleted');
}
