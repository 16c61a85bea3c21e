import type { ResourceKey } from '../../core/keys.ts';
import type { Binding, Intent, StateChange } from '../../core/state.ts';
import type { Running } from '../controller.ts';
import { isSort } from '../ledger.ts';
import { listsAreCut, type Witness } from './witness.ts';

/** Checks a statement of the state about live resources when the state first makes it. */
export function checkChange(witness: Witness, running: Running, change: StateChange): void {
  if (change.type === 'release') checkRelease(witness, running, change);
  if (change.type !== 'bind') return;
  witness.ledger.bound(change.binding);
  checkForeign(witness, running, change.binding);
  checkOneKey(witness, running, change.binding);
}

/** I1: a resource that is taken as deleted no longer exists. */
export function checkDeleted(witness: Witness, running: Running, { kind, key, request }: Intent): void {
  const { ledger } = witness;
  const id = String(request.path.id);
  if (!isSort(kind) || running.byPerson || listsAreCut(witness)) return;
  const bound = running.mirror.bindings.get(key);
  const birth = ledger.birthOf(kind, id);
  if (birth === undefined || bound === undefined) return;
  if (ledger.birthBoundAs(bound)?.number === birth.number)
    isThere(witness, `${kind} ${id} was taken as deleted`);
}

/** Without a task in the answer, no client learns that the creation failed. @assumption A34 */
function isThere({ failuresAreTold, fail, giveUp }: Witness, taken: string): void {
  if (failuresAreTold) fail('I1', `${taken}, and is there`);
  else giveUp('a server reappeared after a failure that no task reported');
}

/** I1: a resource that is taken as gone is gone. */
function checkRelease(
  witness: Witness,
  running: Running,
  { key, gone }: Extract<StateChange, { readonly type: 'release' }>,
): void {
  const { ledger } = witness;
  const old = running.mirror.bindings.get(key);
  if (old === undefined) return;
  if (!gone) ledger.released(key, old.id);
  if (!gone || !isSort(old.kind) || running.byPerson || listsAreCut(witness)) return;
  const birth = ledger.birthOf(old.kind, old.id);
  // A resource with the same values, made for another key under an id that was free again, belongs to that key.
  const maker = ledger.makerOf(old.kind, old.id);
  const ours = maker === undefined || maker === key;
  if (ours && birth !== undefined && ledger.birthBoundAs(old)?.number === birth.number)
    isThere(witness, `${old.kind} ${old.id} was taken as gone`);
}

/** I8: no foreign object is adopted without a question. `{reuse: true}` asks for any free address, no matter who allocated it. */
function checkForeign({ ledger, fail }: Witness, { desired, byPerson }: Running, binding: Binding): void {
  const { key, kind, id } = binding;
  const birth = isSort(kind) ? ledger.birthOf(kind, id) : undefined;
  if (birth?.isForeign !== true) return;
  const isAsked =
    key.endsWith('.public_ipv4') || desired.resources.find((each) => each.key === key)?.id !== undefined;
  if (!desired.settings.exclusive && !byPerson && !isAsked && !ledger.isAdopted(birth))
    fail('I8', `${key} took a foreign ${kind} ${id} for its own`);
  if (byPerson) ledger.adopted(birth);
}

/** I2: a resource has one key. Its server alone identifies a firewall or a backup. */
function checkOneKey({ fail }: Witness, { mirror }: Running, { key, kind, id, parentId }: Binding): void {
  if (isToldByServer(key)) return;
  const other = [...mirror.bindings.values()].find(
    (each) => each.key !== key && each.kind === kind && each.id === id && each.parentId === parentId,
  );
  if (other !== undefined) fail('I2', `${kind} ${id} is bound to ${other.key} and ${key}`);
}

function isToldByServer(key: ResourceKey): boolean {
  return key.endsWith('.firewall') || key.endsWith('.backup');
}
