import { type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Operation, UndoGrade } from '../../core/plan.ts';
import type { ApiProfile } from '../../core/profile.ts';

/** An operation of a plan, or a write of the journal. */
type Undoable = Pick<Operation, 'key' | 'kind' | 'verb' | 'changes' | 'loses'>;

/** How far each operation can be undone. @param together all operations of the plan or the run */
export function gradeIn(
  together: readonly Undoable[],
  { operations }: Pick<ApiProfile, 'operations'>,
): (operation: Undoable) => UndoGrade {
  const created = new Set(together.flatMap(({ verb, key }) => (verb === 'create' ? [key] : [])));
  return ({ key, kind, verb, changes, loses }) => {
    const { undo = {}, staysBilled } = factsOf(kind);
    switch (verb) {
      case 'adopt':
        return 'wholly';
      case 'create': {
        const goesWithServer = staysBilled !== true && isMade(takeApart(key).parent);
        const canGo = undo.removedBy !== undefined && operations[undo.removedBy] !== undefined;
        return undo.created === undefined || goesWithServer || canGo ? 'wholly' : undo.created;
      }
      case 'update':
        return loses !== undefined || changes.some(({ path }) => undo.grown?.includes(path))
          ? 'data_lost'
          : 'wholly';
      case 'delete':
        return undo.deleted ?? 'wholly';
    }
  };

  function isMade(server: ResourceKey | undefined): boolean {
    return server !== undefined && created.has(server);
  }
}

/** Whether an operation of this grade destroys something that its undoing does not give back. */
export function isIrreversible(grade: UndoGrade): boolean {
  return grade === 'data_lost' || grade === 'another_address';
}
