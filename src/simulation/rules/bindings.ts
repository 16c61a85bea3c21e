import { type ResourceKey, retiredFrom, takeApart } from '../../core/keys.ts';
import type { Binding, Intent, StateChange } from '../../core/state.ts';
import type { Running } from '../controller.ts';
import { type Birth, isSort } from '../resource-history.ts';
import { listsAreCut, type Truth } from './truth.ts';

/** Checks a statement of the state about live resources when the state first makes it. */
export function checkChange(truth: Truth, running: Running, change: StateChange): void {
  if (change.type === 'release') checkRelease(truth, running, change);
  // An entry with `managed: false` also releases a resource that a lost state had bound.
  if (change.type === 'claim' && change.claim.holder.is === 'released') {
    const { kind, id, holder } = change.claim;
    truth.history.released(holder.formerKey, id, kind);
    const birth = isSort(kind) ? truth.history.birthOf(kind, id) : undefined;
    // The operator has named the resource of a write. A release alone confirms nothing.
    if (running.byOperator && !holder.recovered && birth !== undefined)
      running.controller.confirmed.add(birth.number);
  }
  if (change.type !== 'bind') return;
  truth.history.bound(change.binding);
  checkForeign(truth, running, change.binding);
  checkOneKey(truth, running, change.binding);
}

/** I1: a resource that is taken as deleted no longer exists. */
export function checkDeleted(truth: Truth, running: Running, { kind, key, request }: Intent): void {
  const { history } = truth;
  const id = String(request.path.id);
  if (!isSort(kind) || running.byOperator || listsAreCut(truth)) return;
  const bound = running.mirror.bindings.get(key);
  const birth = history.birthOf(kind, id);
  if (birth === undefined || bound === undefined) return;
  if (history.birthBoundAs(bound)?.number === birth.number)
    isThere(truth, `${kind} ${id} was taken as deleted`);
}

/** Without a task in the answer, no client learns that the creation failed. @assumption A34 */
function isThere({ failuresAreReported, fail, giveUp }: Truth, taken: string): void {
  if (failuresAreReported) fail('I1', `${taken}, and is there`);
  else giveUp('a server reappeared after a failure that no task reported');
}

/** I1: a resource that is taken as gone is gone. */
function checkRelease(
  truth: Truth,
  running: Running,
  { key, gone }: Extract<StateChange, { readonly type: 'release' }>,
): void {
  const { history } = truth;
  const old = running.mirror.bindings.get(key);
  if (old === undefined) return;
  if (!gone) history.released(key, old.id);
  if (!gone || !isSort(old.kind) || running.byOperator || listsAreCut(truth)) return;
  const birth = history.birthOf(old.kind, old.id);
  // A resource with the same values, made for another key under an id that was free again, belongs to that key.
  const maker = history.makerOf(old.kind, old.id);
  const isSameMaker = maker === undefined || maker === (retiredFrom(key) ?? key);
  if (isSameMaker && birth !== undefined && history.birthBoundAs(old)?.number === birth.number)
    isThere(truth, `${old.kind} ${old.id} was taken as gone`);
}

/** I8: no foreign object is adopted without a question. `{reuse: true}` asks for any free address, no matter who allocated it. */
function checkForeign({ history, fail }: Truth, running: Running, binding: Binding): void {
  const { desired, byOperator } = running;
  const { key, kind, id } = binding;
  const birth = isSort(kind) ? history.birthOf(kind, id) : undefined;
  if (birth !== undefined) noteHolder(history, running, binding, birth);
  if (birth?.isForeign !== true) return;
  const isAsked =
    key.endsWith('.public_ipv4') || desired.resources.find((each) => each.key === key)?.id !== undefined;
  if (!desired.settings.exclusive && !byOperator && !isAsked && !history.isAdopted(birth))
    fail('I8', `${key} took a foreign ${kind} ${id} for its own`);
  if (byOperator) history.adopted(birth);
}

/**
 * A resource passes to another line where the spec names its id, or where it was made under a key that the line has or
 * had: in both cases no controller can know better. An operator may decide which of its resources the line has.
 */
function noteHolder(
  history: Truth['history'],
  { desired, byOperator, controller: { file, confirmed } }: Running,
  { key, id }: Binding,
  birth: Birth,
): void {
  if (takeApart(key).parent !== undefined || retiredFrom(key) !== undefined) return;
  file.lines.use(key);
  const line = file.lines.nameOf(key);
  const isNamed = desired.resources.some((each) => each.key === key && each.id === id && !each.held);
  if (isNamed || byOperator) confirmed.add(birth.number);
  const owner = history.lineOf(birth, line);
  if (owner === undefined) return;
  if (owner === line) {
    if (byOperator) history.give(birth, line);
    return;
  }
  if (isNamed || file.lines.hasHad(line, history.madeUnder(birth) ?? key)) history.give(birth, line);
}

/** I2: a resource has one key. Its server alone identifies a firewall or a backup. */
function checkOneKey({ fail }: Truth, { mirror }: Running, { key, kind, id, parentId }: Binding): void {
  if (isIdentifiedByServer(key)) return;
  const other = [...mirror.bindings.values()].find(
    (each) => each.key !== key && each.kind === kind && each.id === id && each.parentId === parentId,
  );
  if (other !== undefined) fail('I2', `${kind} ${id} is bound to ${other.key} and ${key}`);
}

function isIdentifiedByServer(key: ResourceKey): boolean {
  return key.endsWith('.firewall') || key.endsWith('.backup');
}
