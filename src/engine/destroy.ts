import type { Desired, DesiredResource } from '../core/desired.ts';
import { takeApart } from '../core/keys.ts';
import type { Binding } from '../core/state.ts';

/**
 * What is left of the file where all that is managed goes (`vdcsync destroy`): the entries that are not managed,
 * as far as the state binds what they name. It is released, and not deleted.
 */
export function withoutManaged(desired: Desired, bindings: readonly Binding[]): Desired {
  const resources = desired.resources.filter(
    (each) => !each.managed && bindings.some((binding) => isOf(binding, each)),
  );
  return { ...desired, resources, digest: `${desired.digest} destroyed` };
}

/** A binding with what the file says by now of what is not to go, be it applied or not. */
export function flaggedBy(binding: Binding, { resources }: Desired): Binding {
  const { kind, parent } = takeApart(binding.key);
  const own = resources.find((each) => isOf(binding, each));
  const server = resources.find(
    ({ key, moved }) => parent !== undefined && (key === parent || moved === parent),
  );
  const { keep_ip = false } = (server?.value ?? {}) as { readonly keep_ip?: boolean };
  return {
    ...binding,
    protect: binding.protect || own?.protect === true,
    keep: binding.keep || (kind === 'ip' && keep_ip),
  };
}

/** By the key that the entry has, or had, or by the id that it names. */
function isOf({ key, kind, id }: Binding, entry: DesiredResource): boolean {
  return entry.key === key || entry.moved === key || (entry.kind === kind && entry.id === id);
}
