import type { Fields } from '../../../src/simulation/spec-file.ts';
import type { EditedSection } from '../lines.ts';

/**
 * One thing that an operator does: an edit of the spec, a command, a change of the state. Plain JSON. A place counts
 * through the entries, keys or resources that exist at that moment, so that an action keeps a meaning when earlier
 * actions are taken out of a story.
 */
export type OperatorAction = FileEdit | CommandAction | StateAccident;

/** An action, and its moment, counted from the action before. */
export interface TimedAction {
  /**
   * `at_once`: directly after the action before, without a run in between. `at_rest`: once the runs have nothing left to
   * do. A boundary: the run is stopped where it crosses the boundary for the `nth` time.
   */
  readonly when: 'at_once' | 'at_rest' | { readonly boundary: string; readonly nth: number };
  /** Of another file of the same project, on another machine. */
  readonly by?: 'other_file';
  readonly what: OperatorAction;
}

/** An entry of the spec, by its place in its section. */
export interface EntryPlace {
  readonly section: EditedSection;
  readonly place: number;
}

/** Which id an operator writes: the right one, that of another resource of the sort, or one that does not exist. */
export type GivenId = 'own' | 'other' | 'unknown';

export type FileEdit =
  /** `to`: 0 is a new name, each other number an earlier one. `name`: the API's name stays, changes or is left out. */
  | {
      readonly do: 'rename';
      readonly of: EntryPlace;
      readonly to: number;
      readonly moved: boolean;
      readonly name: 'as_it_is' | 'kept' | 'changed' | 'dropped';
    }
  | { readonly do: 'drop_moved'; readonly place: number }
  | { readonly do: 'remove_entry'; readonly of: EntryPlace }
  /** An entry that was in the spec before. */
  | { readonly do: 'return_entry'; readonly place: number }
  | { readonly do: 'copy_entry'; readonly of: EntryPlace }
  | { readonly do: 'give_id'; readonly of: EntryPlace; readonly id: GivenId | 'none' }
  | { readonly do: 'manage'; readonly of: EntryPlace; readonly managed: boolean }
  /** Fields of one entry or of all of its section; `null` removes one. */
  | { readonly do: 'change_fields'; readonly of: EntryPlace; readonly all: boolean; readonly fields: Fields }
  | { readonly do: 'change_settings'; readonly fields: Fields }
  | { readonly do: 'give_scope'; readonly scope: string | null }
  /** Later edits are written into an overlay, or into the spec itself again. */
  | { readonly do: 'begin_overlay' | 'end_overlay' }
  | { readonly do: 'empty_file' };

export type CommandAction =
  /** The operator answers the blocks of the last run with the truth. */
  | { readonly do: 'answer' }
  | { readonly do: 'apply_target' | 'apply_exclude'; readonly of: EntryPlace }
  | { readonly do: 'destroy' | 'save_plan' | 'apply_saved' }
  | { readonly do: 'forget'; readonly place: number }
  | { readonly do: 'ignore'; readonly of: 'server' | 'ip'; readonly place: number; readonly undo: boolean }
  | { readonly do: 'adopt'; readonly of: EntryPlace; readonly id: GivenId }
  | {
      readonly do: 'resolve';
      readonly place: number;
      readonly word: 'adopt' | 'absent' | 'abandon';
      readonly id: GivenId;
    };

export type StateAccident =
  | { readonly do: 'lose_the_state' }
  | { readonly do: 'put_state_back'; readonly changes: number }
  /** Another file with the same names, and an empty state. Its keys differ if it has a scope. */
  | { readonly do: 'start_other_file'; readonly scope: boolean }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'standing'; readonly standing: 'unpaid' | 'active' }
  /** The server at that place of the list is deleted in the client area. */
  | { readonly do: 'remove'; readonly sort: 'server'; readonly place: number };
