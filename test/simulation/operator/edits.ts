import { type ResourceKey, takeApart } from '../../../src/core/keys.ts';
import type { Blocked } from '../../../src/core/plan.ts';
import { type Edit, type Remedy, stepsOf } from '../../../src/core/remedy.ts';
import { carryOut, editEntries, editSettings, withFields } from '../../../src/simulation/operator-edits.ts';
import { entryOf, type Fields, withEntry } from '../../../src/simulation/spec-file.ts';
import type { StoryStage } from '../../../src/simulation/stage.ts';
import type { SpecModel } from '../../../src/simulation/story.ts';
import { editedFile, referring, withoutEntry } from '../edited-file.ts';

/** The edit that the remedies ask for; `undefined` where they ask for none. */
export function edit(
  stage: StoryStage,
  file: SpecModel,
  { key, code, remedies }: Blocked,
): SpecModel | undefined {
  if (code === 'dependency_blocked' && file.settings.drift === 'report')
    return { ...file, settings: { ...file.settings, drift: 'correct' } };
  if (code === 'moved_onto_bound') editedFile(stage).lines.takeBack(key);
  const givesUp = code === 'moved_onto_bound' || code === 'name_exists';
  const corrected = correctedIdentity(stage, file, remedies, givesUp);
  if (corrected !== undefined) return corrected;
  const withSettings = editSettings(stage, file, remedies);
  if (withSettings !== undefined) return withSettings;
  // The operator confirms a change that shrinks or may shrink a disk, and a replacement.
  if (code === 'disk_would_shrink' || code === 'size_unconfirmed')
    return withFields(stage, file, key, { replace: 'allowed', protect: false });
  // No other edit of the entry makes the API accept it.
  if (code === 'server_type_not_supported') return without(stage, file, key);
  // Both are kept if the other resource is not one of this line.
  const isOwn = (id: string | undefined) => stage.executionsOf(key).some((each) => each.id === id);
  const adopts = stepsOf(remedies).some((step) => step.type === 'run' && isOwn(step.args[1]));
  if (code === 'name_exists' && !adopts)
    return withFields(stage, file, key, { name: `${takeApart(key).name}-own` });
  return editEntries(stage, file, { code, remedies }, carriedOut);
}

/** Takes a wrong or needless `id`, `managed: false` or `moved` out of the entry again, as a remedy says. */
export function correctedIdentity(
  stage: StoryStage,
  file: SpecModel,
  remedies: readonly Remedy[],
  /** The operator gives up the resource that the `moved` names. */
  givesUp = false,
): SpecModel | undefined {
  for (const step of stepsOf(remedies)) {
    if (step.type !== 'edit') continue;
    const { path, remove = [], set = {} } = step;
    const entry = entryOf(file, path);
    if (entry === undefined || path.split('.').length > 2) continue;
    const from = (set.moved as { readonly from: ResourceKey } | undefined)?.from;
    const { lines } = stage.file;
    if (from !== undefined && lines.hasHad(lines.nameOf(path as ResourceKey), from)) {
      stage.trace.add('op', `corrects ${path}: it was ${from}`);
      return withEntry(file, path, { ...entry, moved: { from } });
    }
    const isAboutId = entry.id !== undefined && (remove.includes('id') || 'id' in set);
    const isNew = stage.executionsOf(path as ResourceKey).every((each) => !stage.history.isLive(each));
    const isAboutMove = entry.moved !== undefined && remove.includes('moved') && (isNew || givesUp);
    if (!isAboutId && !isAboutMove && !remove.includes('managed')) continue;
    // Without its `moved`, the entry is a new resource.
    if (isAboutMove && !givesUp) editedFile(stage).lines.takeBack(path);
    const { id: _id, managed: _managed, moved, ...others } = entry;
    const left = isAboutId && moved !== undefined ? { ...others, moved } : others;
    const isBare = Object.keys(left).length === 0;
    const { id: wrong, ...earlier } = (isBare ? editedFile(stage).earlier(path) : undefined) ?? left;
    const whole = isAboutId || wrong === undefined ? earlier : { id: wrong, ...earlier };
    stage.trace.add('op', `corrects ${path}: ${JSON.stringify(whole)}`);
    return withEntry(file, path, whole);
  }
  return undefined;
}

/** Also puts an entry back that has left. */
function carriedOut(stage: StoryStage, file: SpecModel, step: Edit, code: string): SpecModel | undefined {
  const { path, entry } = step;
  if (entry !== 'restore') return carryOut(stage, file, step, code);
  const old =
    editedFile(stage).earlier(path) ??
    stage.story.specs.map((spec) => entryOf(spec, path)).findLast((each) => each !== undefined);
  if (old === undefined) return undefined;
  return withFields(stage, file, path, { ...withPresentNames(stage, file, old), protect: false });
}

/** The entry, with the present names of the entries that were renamed since it left. */
function withPresentNames(stage: StoryStage, file: SpecModel, entry: Fields): Fields {
  const { history, lines } = editedFile(stage);
  let named = entry;
  for (const { section, name } of history) {
    const now = takeApart(lines.keyOf(lines.nameOf(`${section}.${name}` as ResourceKey))).name;
    const isRenamed = file[section][name] === undefined && file[section][now] !== undefined;
    if (isRenamed) named = referring(named, section, name, now);
  }
  return named;
}

export function without(stage: StoryStage, file: SpecModel, key: string): SpecModel {
  stage.trace.add('op', `removes ${key}`);
  return withoutEntry(file, key);
}
