import type { Desired } from '../core/desired.ts';
import { ConfigError } from '../core/errors.ts';
import { counted } from '../core/text.ts';
import { type Undoing, undoing } from '../plan/undo/undoing.ts';
import { kinds } from '../reconcilers/registry.ts';
import { undoTexts } from '../view/consequences.ts';
import type { Session } from './compose.ts';
import { isRunName, mostWrites, runNamed, runsIn } from './runs.ts';
import type { SelectionFlags } from './settings/selection.ts';
import { printable } from './terminal.ts';

export interface UndoFlags extends SelectionFlags {
  /** A run, as `vdcsync history` prints it. */
  readonly undo?: string;
}

/** Refused before the command reads or opens anything. */
export function checkUndo({ undo, target, exclude }: UndoFlags): void {
  if (undo === undefined) return;
  if (!isRunName(undo))
    throw new ConfigError(
      `--undo ${printable(undo)} names no run. Take one from vdcsync history, such as 2026-01-31T12:00:00Z`,
      true,
    );
  if (target !== undefined || exclude !== undefined)
    throw new ConfigError('--undo selects the resources of its run: leave out --target and --exclude', true);
}

/** The way back from the run that the flag names; `undefined` without the flag. */
export async function undoingOf(
  { undo }: UndoFlags,
  desired: Desired,
  { store, clock, profile }: Session,
): Promise<Undoing | undefined> {
  if (undo === undefined) return undefined;
  const journal = await store.intents({ limit: mostWrites });
  const { name, writes } = runNamed(undo, runsIn(journal, clock.now()));
  const bound = new Set((await store.bindings()).map(({ key }) => key));
  return undoing({ run: name, writes, journal, bound, desired, kinds, profile });
}

/** Before the plan: the losses that it does not give back. */
export function undoHeader(undo: Undoing): string {
  const lines = exceptions(undo).map((each) => `  ${each}\n`);
  return lines.length === 0
    ? `The plan undoes the run ${undo.run} wholly.\n\n`
    : `The plan undoes the run ${undo.run}, except:\n${lines.join('')}\n`;
}

/** After the run. @param isDone whether the plan was carried out completely */
export function undoFooter(undo: Undoing, isDone: boolean): string {
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
