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
        const { parent } = takeApart(key);
        const goesWithServer = staysBilled !== true && parent !== undefined && created.has(parent);
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
}

/** A write that is not undone wholly. */
export interface Loss {
  readonly key: ResourceKey;
  readonly verb: Operation['verb'];
  readonly grade: UndoGrade;
}

/** The losses by these writes. A backup that is taken or deleted is no change of the spec. */
export function lossesOf(
  writes: readonly Undoable[],
  profile: Pick<ApiProfile, 'operations'>,
): readonly Loss[] {
  const gradeOf = gradeIn(writes, profile);
  return writes.flatMap((write) => {
    const { key, verb, kind } = write;
    const grade = gradeOf(write);
    return grade === 'wholly' || factsOf(kind).repeats ? [] : [{ key, verb, grade }];
  });
}
