import type { Desired } from '../../core/desired.ts';
import { counted, printable } from '../../core/text.ts';
import { renamesOf } from '../../engine/claims/moves.ts';
import { type Undoing, undoing } from '../../plan/undo.ts';
import { kinds } from '../../reconcilers/registry.ts';
import { undoTexts } from '../../view/plan.ts';
import type { Session } from '../compose.ts';
import { mostWrites, runNamed, runsIn } from '../runs.ts';

export type UndoneRun = Awaited<ReturnType<typeof undoneRun>>;

/**
 * The way back from a run: a spec, the part of it that the run has changed, and the texts around the plan.
 *
 * @throws ConfigError if the state has no run of this name
 */
export async function undoneRun(run: string, desired: Desired, { store, clock, profile }: Session) {
  const journal = await store.intents({ limit: mostWrites });
  const { name, writes } = runNamed(run, runsIn(journal, clock.now()));
  const bindings = new Map((await store.bindings()).map((binding) => [binding.key, binding]));
  const bound = new Map([...bindings.values()].map(({ key, id }) => [key, id]));
  const renames = renamesOf(desired, bindings);
  const undo = undoing({ run: name, writes, journal, bound, renames, desired, kinds, profile });
  return {
    desired: undo.desired,
    selection: undo.selection,
    header: undoHeader(undo),
    /** @param isDone whether the plan was carried out completely */
    footer: (isDone: boolean) => undoFooter(undo, isDone),
  };
}

/** Before the plan: the losses that it does not give back. */
function undoHeader(undo: Undoing): string {
  const lines = exceptions(undo).map((each) => `  ${each}\n`);
  return lines.length === 0
    ? `The plan undoes the run ${undo.run} wholly.\n\n`
    : `The plan undoes the run ${undo.run}, except:\n${lines.join('')}\n`;
}

/** After the run. */
function undoFooter(undo: Undoing, isDone: boolean): string {
  const rest = exceptions(undo).join(', ');
  const end = !isDone ? 'is not undone' : rest === '' ? 'is undone' : `is undone, except: ${rest}`;
  return `The run ${undo.run} ${end}.\n${reminder(undo.differing)}`;
}

function exceptions({ losses, corrected }: Undoing): readonly string[] {
  return [
    ...losses.map(({ key, verb, grade }) => `${verb} ${printable(key)} (${undoTexts[grade]})`),
    ...corrected.map((key) => `${printable(key)} (its change from outside vdcsync does not come back)`),
  ];
}

function reminder(differing: Undoing['differing']): string {
  if (differing.length === 0) return '';
  const [them, they] = differing.length === 1 ? ['it', 'this entry'] : ['them', 'these entries'];
  return `The spec still has ${counted(differing.length, 'entry', 'entries')} from that run: change ${they} back, or the next apply changes ${them} again: ${differing.map(printable).join(', ')}\n`;
}
