import { nounOf } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import { command, type Remedy } from '../core/remedy.ts';
import type { Binding } from '../core/state.ts';

/** For a message: the resource that no operator has confirmed. */
export function foundText(binding: Binding, world: World): string {
  const named = `${nounOf(binding.kind)} ${world.nameOf(binding)}`;
  return binding.recovered === 'taken'
    ? `${binding.key} has taken over ${named}, which was bound to this key before, and no \`moved\` or \`id\` says that the entry means it`
    : `this state found ${named} under an idempotency key, and another spec may manage it`;
}

/** The spec says that the entry means its resource: by the id, or by `moved`. */
export function isStated({ desired, binding }: Subject): boolean {
  if (desired === undefined || binding === undefined) return false;
  const { id, held, moved, isInferred } = desired;
  const isNamed = held === undefined && id === binding.id;
  return isNamed || (moved !== undefined && !isInferred && binding.formerKeys?.includes(moved) === true);
}

/** Confirms that the entry means the resource. */
export function confirming({ key, id, recovered }: Pick<Binding, 'key' | 'id' | 'recovered'>): Remedy {
  const when = recovered === 'taken' ? `if ${key} means ${id}` : `if only this spec manages ${id}`;
  return command('adopt', [key, id], { when });
}
