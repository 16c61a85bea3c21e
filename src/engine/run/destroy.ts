import type { Desired, DesiredResource } from '../../core/desired.ts';
import { takeApart } from '../../core/keys.ts';
import { isAddress } from '../../core/kind-facts.ts';
import type { Binding } from '../../core/state.ts';

/**
 * The part of the file that remains when all managed resources are deleted (`vdcsync destroy`): the unmanaged entries
 * whose resources the state binds. vdcsync releases these resources and does not delete them.
 */
export function withoutManaged(desired: Desired, bindings: readonly Binding[]): Desired {
  const resources = desired.resources.filter(
    (each) => !each.managed && bindings.some((binding) => isOf(binding, each)),
  );
  return { ...desired, resources, digest: `${desired.digest} destroyed` };
}

/** A binding with the deletion protection that the file asks for now, even if no apply has recorded the protection. */
export function flaggedBy(binding: Binding, { resources }: Desired): Binding {
  const { kind, parent } = takeApart(binding.key);
  const own = resources.find((each) => isOf(binding, each));
  const server = resources.find(
    ({ key, moved }) => parent !== undefined && (key === parent || moved === parent),
  );
  const { keep_ip = false } = server?.value ?? {};
  return {
    ...binding,
    protect: binding.protect || own?.protect === true,
    keep: binding.keep || (isAddress(kind) && keep_ip),
  };
}

/** Matches by the current key, the previous key, or the id of the entry. */
function isOf({ key, kind, id }: Binding, entry: DesiredResource): boolean {
  return entry.key === key || entry.moved === key || (entry.kind === kind && entry.id === id);
}
