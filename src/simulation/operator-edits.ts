import { type ResourceKey, takeApart } from '../core/keys.ts';
import type { Blocked } from '../core/plan.ts';
import { type Edit, type Remedy, stepsOf } from '../core/remedy.ts';
import { entryOf, referring, withoutEntry } from './edited-file.ts';
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

/** The edit that the remedies ask for; `undefined` where they ask for none. */
export function edit(
  stage: StoryStage,
  file: SpecModel,
  { key, code, remedies }: Blocked,
): SpecModel | undefined {
  if (code === 'dependency_blocked' && file.settings.drift === 'report')
    return { ...file, settings: { ...file.settings, drift: 'correct' } };
  const edits = stepsOf(remedies).filter((step) => step.type === 'edit');
  if (code === 'moved_onto_bound') stage.file.lines.takeBack(key);
  const corrected = correctedIdentity(stage, file, remedies, code === 'moved_onto_bound');
  if (corrected !== undefined) return corrected;
  const setting = edits.find(({ path, set }) => path === 'settings' && set !== undefined);
  if (setting?.set !== undefined) {
    stage.trace.add('op', `edits settings: ${JSON.stringify(setting.set)}`);
    if (setting.set.unmanaged === 'ignore') stage.ignoresUnmanaged = true;
    return { ...file, settings: { ...file.settings, ...setting.set } };
  }
  // The operator confirms a change that shrinks or may shrink a disk, and a replacement.
  if (code === 'disk_would_shrink' || code === 'size_unconfirmed')
    return withFields(stage, file, key, { replace: 'allowed', protect: false });
  // No other edit of the entry makes the API accept it.
  if (code === 'server_type_not_supported') return without(stage, file, key);
  // Without a command that adopts the other resource, both are kept.
  if (code === 'name_exists' && stepsOf(remedies).every(({ type }) => type === 'edit'))
    return withFields(stage, file, key, { name: `${takeApart(key).name}-own` });
  for (const remedy of remedies) {
    const steps = stepsOf([remedy]);
    const ends = steps.findIndex(({ type }) => type !== 'edit');
    const together = steps.slice(0, ends === -1 ? undefined : ends) as Edit[];
    const edited = together.reduce<SpecModel | undefined>(
      (whole, each) => carriedOut(stage, whole ?? file, each, code) ?? whole,
      undefined,
    );
    if (edited !== undefined) return edited;
  }
  return undefined;
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
      return withWhole(file, path, { ...entry, moved: { from } });
    }
    const isAboutId = entry.id !== undefined && (remove.includes('id') || 'id' in set);
    const isNew = stage.executionsOf(path as ResourceKey).every((each) => !stage.history.isLive(each));
    const isAboutMove = entry.moved !== undefined && remove.includes('moved') && (isNew || givesUp);
    if (!isAboutId && !isAboutMove && !remove.includes('managed')) continue;
    const { id: _id, managed: _managed, moved, ...others } = entry;
    const left = isAboutId && moved !== undefined ? { ...others, moved } : others;
    const isBare = Object.keys(left).length === 0;
    const { id: wrong, ...earlier } = (isBare ? stage.file.earlier(path) : undefined) ?? left;
    const whole = isAboutId || wrong === undefined ? earlier : { id: wrong, ...earlier };
    stage.trace.add('op', `corrects ${path}: ${JSON.stringify(whole)}`);
    return withWhole(file, path, whole);
  }
  return undefined;
}

function withWhole(file: SpecModel, key: string, entry: Entry): SpecModel {
  const [collection = '', name = ''] = key.split('.');
  return { ...file, [collection]: { ...(file as unknown as Sections)[collection], [name]: entry } };
}

/** Fields that say which live resource an entry means: the operator answers that by a command. */
const identity = new Set(['id', 'managed', 'name', 'moved']);

function carriedOut(stage: StoryStage, file: SpecModel, step: Edit, code: string): SpecModel | undefined {
  const { path, set = {}, remove = [], choose = {}, entry } = step;
  if (entry === 'remove') return undefined;
  if (entry === 'restore') {
    const old =
      stage.file.earlier(path) ??
      stage.story.specs.map((spec) => entryOf(spec, path)).findLast((each) => each !== undefined);
    if (old === undefined) return undefined;
    return withFields(stage, file, path, { ...withPresentNames(stage, file, old), protect: false });
  }
  if (entry === 'replace' || entryOf(file, path) === undefined) return undefined;
  if (code === 'address_in_use' && Object.hasOwn(choose, 'public_ipv4'))
    return withFields(stage, file, path, { public_ipv4: { new: true } });
  const isRestored = code === 'network_in_use' || Object.keys(set).some((name) => !identity.has(name));
  const fields = Object.entries(set).filter(([name]) => !identity.has(name) || isRestored);
  if (fields.length === 0 && code !== 'immutable' && code !== 'sizing_mode_mismatch') return undefined;
  const removed = remove.flatMap((name) => (identity.has(name) ? [] : [[name, undefined]]));
  return withFields(stage, file, path, Object.fromEntries([...fields, ...removed]));
}

/** The entry, with the present names of the entries that were renamed since it left. */
function withPresentNames({ file: { history, lines } }: StoryStage, file: SpecModel, entry: Entry): Entry {
  let named = entry;
  for (const { section, name } of history) {
    const now = takeApart(lines.keyOf(lines.nameOf(`${section}.${name}` as ResourceKey))).name;
    const isRenamed = file[section][name] === undefined && file[section][now] !== undefined;
    if (isRenamed) named = referring(named, section, name, now);
  }
  return named;
}

type Sections = Readonly<Record<string, Readonly<Record<string, Entry>>>>;
type Entry = Readonly<Record<string, unknown>>;

function withFields(stage: StoryStage, file: SpecModel, key: string, fields: Entry): SpecModel {
  const [collection = '', name = '', field] = key.split('.');
  stage.trace.add('op', `edits ${key}: ${JSON.stringify(fields)}`);
  const section = (file as unknown as Sections)[collection] ?? {};
  const own = Object.fromEntries(
    Object.entries({ ...entryOf(file, key), ...fields }).filter(([, value]) => value !== undefined),
  );
  return {
    ...file,
    [collection]: { ...section, [name]: field === undefined ? own : { ...section[name], [field]: own } },
  };
}

function without(stage: StoryStage, file: SpecModel, key: string): SpecModel {
  stage.trace.add('op', `removes ${key}`);
  return withoutEntry(file, key);
}
