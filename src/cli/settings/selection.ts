import type { Desired } from '../../core/desired.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import { collections } from '../../core/kind-facts.ts';
import type { Plan, Selection } from '../../core/plan.ts';
import { didYouMeanKey, nearMiss } from '../../core/suggest.ts';
import { counted, printable } from '../../core/text.ts';
import { renamesOf } from '../../engine/claims/moves.ts';
import { type Undoing, undoing } from '../../plan/undo.ts';
import { kinds } from '../../reconcilers/registry.ts';
import { undoTexts } from '../../view/consequences.ts';
import type { Session } from '../compose.ts';
import { usageError } from '../exit.ts';
import type { SelectionFlags } from '../flags.ts';
import { isRunName, mostWrites, runNamed, runsIn } from '../runs.ts';

/**
 * The part of the plan that the flags select, or `undefined` for the whole plan.
 *
 * @throws ConfigError for a key that neither the spec nor the state has: it would select nothing.
 */
async function selectionOf(
  { target = [], exclude = [] }: SelectionFlags,
  desired: Desired,
  { store }: Session,
): Promise<Selection | undefined> {
  if (target.length + exclude.length === 0) return undefined;
  const known = new Set<string>([
    ...desired.resources.map(({ key }) => key),
    ...(await store.bindings()).map(({ key }) => key),
  ]);
  const checked =
    (flag: string) =>
    (text: string): ResourceKey => {
      const key = parseKey(text)?.key;
      if (key !== undefined && known.has(key)) return key;
      const hint = didYouMeanKey(text, known, '');
      throw usageError(`${flag} ${printable(text)}: neither the spec nor the state has this key${hint}`);
    };
  return { targets: target.map(checked('--target')), excludes: exclude.map(checked('--exclude')) };
}

/** @throws ConfigError if the flags select another part than the saved plan in `path` contains. */
export function refuseOtherSelection(saved: Plan, given: SelectionFlags, path: string): void {
  const { targets = [], excludes = [] } = saved.selection ?? {};
  const [made, asked] = [written(targets, excludes), written(given.target, given.exclude)];
  if (asked === '' || asked === made) return;
  const of = made === '' ? 'for the complete file' : `with ${made}`;
  throw usageError(
    `${printable(path)} was made ${of}, and this command has ${asked}. Remove these flags, or make the plan again with them`,
  );
}

function written(targets: readonly string[] = [], excludes: readonly string[] = []): string {
  const flags = [
    ...targets.map((key) => `--target ${printable(key)}`),
    ...excludes.map((key) => `--exclude ${printable(key)}`),
  ];
  return [...new Set(flags)].sort().join(' ');
}

/** @throws ConfigError for a text that is no key, with a suggestion for its collection. */
export function checkedKey(text: string): ResourceKey {
  const parsed = parseKey(text);
  if (parsed !== undefined) return parsed.key;
  const [first = '', ...rest] = text.split('.');
  const collection = rest.length === 0 ? undefined : nearMiss(first, collections);
  const meant = parseKey(`${collection}.${rest.join('.')}`)?.key;
  const like = 'examples of keys: servers.web-1, servers.web-1.network_interfaces.backend';
  const hint = meant === undefined ? `: ${like}` : `; did you mean ${printable(meant)}?`;
  throw usageError(`${JSON.stringify(printable(text))} is not a key${hint}`);
}

/** Refused before the command reads or opens anything. */
export function checkUndo({ undo, target, exclude }: SelectionFlags): void {
  if (undo === undefined) return;
  if (!isRunName(undo))
    throw usageError(
      `--undo ${printable(undo)} names no run. Take one from vdcsync history, such as 2026-01-31T12:00:00Z`,
    );
  if (target !== undefined || exclude !== undefined)
    throw usageError('--undo selects the resources of its run: leave out --target and --exclude');
}

/** The texts around a plan that undoes a run. */
export interface UndoTexts {
  readonly header: string;
  /** @param isDone whether the plan was carried out completely */
  footer(isDone: boolean): string;
}

/**
 * The spec and the part of it that a call asks for.
 *
 * @param saved the plan that the call carries out: its selection counts
 */
export async function askedBy(flags: SelectionFlags, desired: Desired, session: Session, saved?: Plan) {
  if (flags.undo === undefined)
    return { desired, selection: saved?.selection ?? (await selectionOf(flags, desired, session)) };
  const undo = await undoingOf(flags.undo, desired, session);
  const texts: UndoTexts = {
    header: undoHeader(undo),
    footer: (isDone: boolean) => undoFooter(undo, isDone),
  };
  return { desired: undo.desired, selection: undo.selection, undo: texts };
}

/** The way back from the run of this name. */
async function undoingOf(
  run: string,
  desired: Desired,
  { store, clock, profile }: Session,
): Promise<Undoing> {
  const journal = await store.intents({ limit: mostWrites });
  const { name, writes } = runNamed(run, runsIn(journal, clock.now()));
  const bindings = new Map((await store.bindings()).map((binding) => [binding.key, binding]));
  const bound = new Map([...bindings.values()].map(({ key, id }) => [key, id]));
  const renames = renamesOf(desired, bindings);
  return undoing({ run: name, writes, journal, bound, renames, desired, kinds, profile });
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
