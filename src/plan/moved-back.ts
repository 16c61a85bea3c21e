import type { ResourceKey } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import { edit, run } from '../core/remedy.ts';
import { type Draft, isToBeMade } from './draft.ts';
import type { Facts, GuardInput, Objection } from './objections.ts';

/**
 * An entry that would be created under a previous key of another key, while the file leaves out that
 * other key: the operator took the rename back. Neither the creation nor the deletion is carried out.
 */
export function movedBack(draft: Draft, _input: GuardInput, facts: Facts): Objection | undefined {
  const { key, parent } = draft.subject;
  if (isToBeMade(draft)) {
    const to = facts.movedBack().get(key);
    return to && objection('create', key, to);
  }
  if (draft.diff.verdict.verdict !== 'delete') return undefined;
  const became = [...facts.movedBack()].find(([, to]) => to === (parent ?? key));
  return became && objection('delete', ...became);
}

export function keysMovedBack(world: World): ReadonlyMap<ResourceKey, ResourceKey> {
  return new Map(
    [...world.subjects.values()].flatMap(({ key: to, desired, binding }) => {
      const isLeft = desired === undefined && world.isThere(to);
      const formerKeys = isLeft ? (binding?.formerKeys ?? []) : [];
      return formerKeys.filter((key) => isNew(world.subjects.get(key))).map((key) => [key, to] as const);
    }),
  );
}

function objection(verb: 'create' | 'delete', from: ResourceKey, to: ResourceKey): Objection {
  return {
    verb,
    reason: `${from} became ${to}, which the file leaves out: if the resource has its old name again, nothing needs to be deleted or created`,
    remedies: [
      edit(from, { set: { moved: { from: to } } }),
      run('forget', [to], { when: 'to leave its resource unmanaged and billed, and create another one' }),
      edit(from, {
        entry: 'remove',
        next: [run('apply'), edit(from, { entry: 'restore' })],
        when: `to delete ${to}`,
      }),
    ],
  };
}

function isNew(subject: Subject | undefined): boolean {
  const { desired, binding } = subject ?? {};
  const isMade = desired?.managed === true && desired.id === undefined && binding === undefined;
  return isMade && desired.moved === undefined;
}
