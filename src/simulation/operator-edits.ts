import type { Blocked } from '../core/plan.ts';
import { type Edit, type Remedy, stepsOf } from '../core/remedy.ts';
import { entryOf, type Fields, withEntry } from './spec-file.ts';
import type { StoryStage } from './stage.ts';
import type { SpecModel } from './story.ts';

/** An entry put back may name others that have left too: then the whole spec is put back. */
export function valid(stage: StoryStage, file: SpecModel | undefined): SpecModel | undefined {
  if (file === undefined) return undefined;
  try {
    stage.load(file);
    return file;
  } catch {
    return stage.story.specs[0];
  }
}

/** The edit of `settings` that the remedies ask for. */
export function editSettings(
  stage: StoryStage,
  file: SpecModel,
  remedies: readonly Remedy[],
): SpecModel | undefined {
  const edits = stepsOf(remedies).filter((step) => step.type === 'edit');
  const set = edits.find((step) => step.path === 'settings' && step.set !== undefined)?.set;
  if (set === undefined) return undefined;
  stage.trace.add('op', `edits settings: ${JSON.stringify(set)}`);
  if (set.unmanaged === 'ignore') stage.ignoresUnmanaged = true;
  return { ...file, settings: { ...file.settings, ...set } };
}

/** The edits of entries that the first possible remedy asks for. */
export function editEntries(
  stage: StoryStage,
  file: SpecModel,
  { code, remedies }: Pick<Blocked, 'code' | 'remedies'>,
  carry = carryOut,
): SpecModel | undefined {
  for (const remedy of remedies) {
    const steps = stepsOf([remedy]);
    const ends = steps.findIndex(({ type }) => type !== 'edit');
    const together = steps.slice(0, ends === -1 ? undefined : ends) as Edit[];
    const edited = together.reduce<SpecModel | undefined>(
      (whole, each) => carry(stage, whole ?? file, each, code) ?? whole,
      undefined,
    );
    if (edited !== undefined) return edited;
  }
  return undefined;
}

/** Fields that say which live resource an entry means: the operator answers that by a command. */
const identity = new Set(['id', 'managed', 'name', 'moved']);

/** Changes the fields of an entry. */
export function carryOut(
  stage: StoryStage,
  file: SpecModel,
  step: Edit,
  code: string,
): SpecModel | undefined {
  const { path, set = {}, remove = [], choose = {}, entry } = step;
  if (entry !== undefined || entryOf(file, path) === undefined) return undefined;
  if (code === 'address_in_use' && Object.hasOwn(choose, 'public_ipv4'))
    return withFields(stage, file, path, { public_ipv4: { new: true } });
  const isWhole = code === 'network_in_use' || code === 'immutable';
  const isRestored = isWhole || Object.keys(set).some((name) => !identity.has(name));
  const fields = Object.entries(set).filter(([name]) => !identity.has(name) || isRestored);
  const removes = ['immutable', 'sizing_mode_mismatch', 'tainted'].includes(code);
  if (fields.length === 0 && !removes) return undefined;
  const removed = remove.flatMap((name) => (identity.has(name) ? [] : [[name, undefined]]));
  return withFields(stage, file, path, Object.fromEntries([...fields, ...removed]));
}

export function withFields(stage: StoryStage, file: SpecModel, key: string, fields: Fields): SpecModel {
  stage.trace.add('op', `edits ${key}: ${JSON.stringify(fields)}`);
  const changed = Object.entries({ ...entryOf(file, key), ...fields });
  return withEntry(file, key, Object.fromEntries(changed.filter(([, value]) => value !== undefined)));
}
