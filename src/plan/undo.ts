import equal from 'fast-deep-equal';
import { type Desired, type DesiredResource, type EntryFields, idInSpec } from '../core/desired.ts';
import { ConfigError } from '../core/errors.ts';
import { withoutSeals } from '../core/hidden-texts.ts';
import { partsOf } from '../core/intent.ts';
import { mapTexts } from '../core/json.ts';
import { comesWithServer, type ResourceKey, retiredFrom, takeApart } from '../core/keys.ts';
import type { ResourceKind } from '../core/kind.ts';
import { factsOf, type KindName } from '../core/kind-facts.ts';
import { gradeIn, type Operation, type Selection, type Undoable, type UndoGrade } from '../core/plan.ts';
import type { ApiProfile } from '../core/profile.ts';
import { command, edit, settleFirst } from '../core/remedy.ts';
import type { Intent } from '../core/state.ts';

/** The way back from a run: an ordinary plan of the spec with the entries that the run changed as they were before. */
export interface Undoing {
  readonly run: string;
  readonly desired: Desired;
  /** The keys that the run changed, without the remains of earlier specs inside their servers. */
  readonly selection: Selection;
  /** The writes of the run that the plan does not undo wholly. */
  readonly losses: readonly Loss[];
  /** Keys with an equal entry before the run: it corrected changes from outside vdcsync, which do not come back. */
  readonly corrected: readonly ResourceKey[];
  /** The entries that the spec still has as after the run. */
  readonly differing: readonly ResourceKey[];
}

export interface UndoInput {
  readonly run: string;
  /** The writes of the run. */
  readonly writes: readonly Intent[];
  /** Every write of the state, newest first. */
  readonly journal: readonly Intent[];
  /** The live id of each binding. */
  readonly bound: ReadonlyMap<ResourceKey, string>;
  /** The renames of the present spec that no apply has recorded: the new key of each bound one. */
  readonly renames: ReadonlyMap<ResourceKey, ResourceKey>;
  /** The present spec. */
  readonly desired: Desired;
  readonly kinds: ReadonlyMap<KindName, ResourceKind>;
  readonly profile: ApiProfile;
}

/** @throws ConfigError if the journal does not show the way back, or if a later run would be undone as well */
export function undoing(input: UndoInput): Undoing {
  const { run, desired, profile } = input;
  const past = new Past(input);
  const before = new Map(past.keys.map((key) => [key, past.before(key)] as const));
  const current = new Map(desired.resources.map((each) => [each.key, each]));
  for (const [key, entry] of before) refuseKept(input, key, entry === undefined);
  const restored = new Map(current);
  for (const [key, entry] of before)
    if (entry === undefined) restored.delete(key);
    else restored.set(key, past.restored(key, entry, current.get(key)));
  const changed = [...before.keys()].filter((key) => !equal(current.get(key), restored.get(key)));
  const resources = [...restored.values()];
  // The spec keeps the resources that it no longer declares.
  const isLeft = (key: ResourceKey) =>
    !desired.settings.prune && !restored.has(key) && !before.has(key) && isPartOfServer(key);
  checkReferences(resources, input);
  checkEnvironment(resources, desired);
  return {
    run,
    desired: {
      ...desired,
      resources,
      // The operator asks for the removal of the created resources. The plan is limited to the keys of the run.
      settings: { ...desired.settings, prune: true },
      digest: `${desired.digest} undoes ${run}`,
    },
    selection: { targets: past.keys, excludes: [...input.bound.keys()].filter(isLeft) },
    losses: lossesOf(past.writes, profile),
    corrected: past.corrected,
    differing: [...new Set(changed.map((key) => takeApart(key).parent ?? key))].sort(),
  };
}

/**
 * The present spec says more about the resource than the run did: it protects the resource, no longer manages it, binds
 * it by id, or renames it. The removal of the entry would lose that.
 *
 * @throws ConfigError which names the edit or the command that comes first
 */
function refuseKept(
  { run, writes, desired, renames, bound }: UndoInput,
  key: ResourceKey,
  isRemoved: boolean,
): void {
  const { parent = key } = takeApart(key);
  const renamed = desired.resources.find((each) => each.key === renames.get(parent));
  if (renamed !== undefined) {
    const field = renamed.moved === parent ? 'moved' : idInSpec(renamed) !== undefined ? 'id' : undefined;
    const when = `to undo the run with the entry ${parent}`;
    throw new ConfigError(
      `the spec renames ${parent} to ${renamed.key}, and no apply has recorded that. Undo the run ${run} before you rename the entry, or change the spec after the rename`,
      false,
      [...(field === undefined ? [] : [edit(renamed.key, { remove: [field], when })]), command('apply')],
    );
  }
  const id = bound.get(parent);
  const other = isRemoved
    ? desired.resources.find((each) => each.kind === takeApart(parent).kind && idInSpec(each) === id)
    : undefined;
  if (id !== undefined && other !== undefined && other.key !== parent)
    throw new ConfigError(
      `the run ${run} created ${parent}, whose id is in ${other.key} too: undo would not delete it`,
      false,
      [edit(other.key, { remove: ['id'], when: 'to undo the run' })],
    );
  const present = desired.resources.find((each) => each.key === parent);
  if (present === undefined) return;
  const field = !present.managed
    ? 'managed'
    : isRemoved && idInSpec(present) !== undefined
      ? 'id'
      : isRemoved && present.protect
        ? 'protect'
        : isRemoved && present.value.keep_ip === true && !writes.some(keptBy(parent))
          ? 'keep_ip'
          : undefined;
  if (field === undefined) return;
  throw new ConfigError(
    `the run ${run} changed ${key}, and the spec has \`${field}\` in ${parent}: undo would not keep that`,
    false,
    [edit(parent, { remove: [field], when: 'to undo the run' })],
  );
}

/** The write has recorded that the address of the server outlives it. */
function keptBy(server: ResourceKey) {
  return ({ key, entry }: Intent) => key === server && entry?.value.keep_ip === true;
}

/** The journal as seen from the run. */
class Past {
  /** The writes of the run that may have changed the project. */
  readonly writes: readonly Intent[];
  /** The keys that the run changed, and those inside a server that it created, replaced or deleted. */
  readonly keys: readonly ResourceKey[];
  readonly corrected: readonly ResourceKey[];
  readonly #run: string;
  readonly #before: readonly Intent[];
  readonly #after: readonly Intent[];

  constructor({ run, writes, journal, bound }: UndoInput) {
    refuseOpen(run, writes);
    this.#run = run;
    const all = journal.filter(isEffective).toReversed();
    const { before, own, after } = divided(all, new Set(writes.map(({ id }) => id)));
    this.#before = before;
    this.writes = own;
    this.#after = after;
    const isEntryKey = ({ key }: Intent) => !comesWithServer(takeApart(key));
    const changed = own.filter((each) => isEntryKey(each) && !factsOf(each.kind).repeats);
    const renewed = new Set(changed.flatMap(({ verb, key }) => (verb === 'update' ? [] : [presentKey(key)])));
    const isPart = ({ key }: { readonly key: ResourceKey }) => {
      const { parent } = takeApart(key);
      return parent !== undefined && renewed.has(parent);
    };
    const isCurrent = (each: Intent) => !before.includes(each) || this.#lastBefore(each.key) === each;
    const parts = all.filter((each) => isPart(each) && isEntryKey(each) && isCurrent(each));
    const keys = [...new Set([...changed, ...parts].map(({ key }) => presentKey(key)))];
    const same = new Set(keys.filter((key) => this.#isSame(key)));
    this.keys = keys.filter((key) => !same.has(key));
    // The parts of a replaced server are created again with it.
    this.corrected = [...same].filter((key) => !isPart({ key }));
    if (this.keys.length === 0)
      throw new ConfigError(
        `no spec undoes the run ${run}: it took backups, or corrected changes from outside vdcsync`,
        true,
      );
    const lost = changed.find(({ key, verb }) => verb !== 'delete' && this.#exists(key) && !bound.has(key));
    if (lost !== undefined)
      throw new ConfigError(
        `${lost.key} has no binding any more: it was renamed, released, or is gone since the run ${run}. Change the spec, and apply`,
      );
  }

  /** The entry after the run is that from before. */
  #isSame(key: ResourceKey): boolean {
    const { parent } = takeApart(key);
    if (parent !== undefined && this.#isNew(parent)) return false;
    const own = lastOf(this.writes, key);
    const before = this.#lastBefore(key);
    return own !== undefined && before !== undefined && basisOf(own) === basisOf(before);
  }

  /** By the journal. */
  #exists(key: ResourceKey): boolean {
    const { parent = key } = takeApart(key);
    const all = [...this.#before, ...this.writes, ...this.#after];
    return [key, parent].every((each) => lastOf(all, each)?.verb !== 'delete');
  }

  /** The entry before the run; `undefined` if there was no resource. */
  before(key: ResourceKey): EntryFields | undefined {
    this.#refuseLater(key);
    const { parent } = takeApart(key);
    if (parent !== undefined && this.#isNew(parent)) return undefined;
    const last = this.#lastBefore(key);
    if (last !== undefined) return last.verb === 'delete' ? undefined : last.entry?.value;
    const first = this.writes.find((each) => each.key === key);
    if (first === undefined || this.#isNew(key)) return undefined;
    if (first.entry === undefined)
      throw new ConfigError(
        `the run ${this.#run} deleted ${key}, and the journal has no earlier write of ${key}: it was adopted or renamed. Write its entry into the spec again, and apply`,
      );
    const value = Object.fromEntries(first.changes.map(({ path, from }) => [fieldOf(path), from]));
    return withoutNulls({ ...first.entry.value, ...value });
  }

  /** The run created the resource, and none had its key before. */
  #isNew(key: ResourceKey): boolean {
    const first = this.writes.find((each) => each.key === key);
    const last = this.#lastBefore(key);
    if (last !== undefined) return last.verb === 'delete' && first !== undefined;
    if (first?.verb !== 'create') return false;
    // The firewall of an existing server has values before its entry.
    return first.changes.length === 0 || first.changes.some(({ from }) => from === null);
  }

  /** A later run that changed the same resource has its own way back. */
  #refuseLater(key: ResourceKey): void {
    // An undo of this run that was interrupted continues.
    const isOwnUndo = ({ spec }: Intent) => spec?.endsWith(` undoes ${this.#run}`) === true;
    const later = this.#after.findLast((each) => each.key === key && !isOwnUndo(each));
    const own = lastOf([...this.#before, ...this.writes], key);
    if (later === undefined || factsOf(later.kind).repeats || basisOf(later) === basisOf(own)) return;
    throw new ConfigError(
      `a later run changed ${key} too (${later.verb}): undo that run first, or change the spec and apply`,
      false,
      [command('history', [key], { when: 'to find the later run' })],
    );
  }

  /** The last write before the run, if it is not known to be of an earlier server. */
  #lastBefore(key: ResourceKey): Intent | undefined {
    const { parent } = takeApart(key);
    const made = this.#before.findLast((each) => each.key === parent && each.verb === 'create');
    const server = made && partsOf(made).answer?.id;
    const last = lastOf(this.#before, key);
    const isOther = server !== undefined && last?.parentId !== undefined && last.parentId !== server;
    return isOther ? undefined : last;
  }

  /** The present entry with the fields that the run changed as they were before; else the whole earlier entry. */
  restored(key: ResourceKey, before: EntryFields, current: DesiredResource | undefined): DesiredResource {
    const { kind, parent } = takeApart(key);
    const position = { file: `the run ${this.#run}`, line: 1, column: 1 };
    const whole = { key, kind, ...(parent && { parent }), managed: true, protect: false, position };
    if (current === undefined) return { ...whole, value: withoutSeals(before) };
    const changes = this.writes.filter((each) => each.key === key).flatMap((each) => each.changes);
    const names = [...new Set(changes.map(({ path }) => fieldOf(path)))];
    const fields = Object.fromEntries(names.map((name) => [name, before[name] ?? null]));
    return { ...current, value: withoutSeals(withoutNulls({ ...current.value, ...fields }, before)) };
  }
}

/** The writes before the run, of the run, and after it. @param all oldest first. @param run the ids of its writes */
function divided(all: readonly Intent[], run: ReadonlySet<string>) {
  const from = all.findIndex(({ id }) => run.has(id));
  const [before, later] = from < 0 ? [all, []] : [all.slice(0, from), all.slice(from)];
  // A later run with the same spec continues the run, or repairs drift.
  const until = later.findIndex(({ spec }) => spec === undefined || spec !== later[0]?.spec);
  const isOwn = ({ id }: Intent, at: number) => run.has(id) || until < 0 || at < until;
  return { before, own: later.filter(isOwn), after: later.filter((each, at) => !isOwn(each, at)) };
}

function refuseOpen(run: string, writes: readonly Intent[]): void {
  const open = writes.find(isOpen);
  if (open === undefined) return;
  throw new ConfigError(
    `the outcome of a write of the run ${run} is not known (${open.verb} ${open.key})`,
    false,
    open.phase === 'blocked' ? settleFirst(open.key) : [command('apply', [], { when: 'to finish the run' })],
  );
}

/** No answer and no evidence shows whether the write has changed the project. */
function isOpen(write: Intent): boolean {
  if (write.phase === 'closed') return write.outcome === 'abandoned';
  return write.phase !== 'blocked' || write.blocked.until !== 'file';
}

/** The write may have changed the project. A resource that was found under a key existed before. */
function isEffective(intent: Intent): boolean {
  const { outcome, because } = partsOf(intent);
  return because !== 'found' && (outcome === 'done' || outcome === 'failed');
}

function lastOf(writes: readonly Intent[], key: ResourceKey): Intent | undefined {
  return writes.findLast((each) => each.key === key && partsOf(each).outcome === 'done');
}

/** The entry that is in force after the write. */
function basisOf(write: Intent | undefined): string | undefined {
  return write?.verb === 'delete' ? undefined : write?.basis;
}

/** A resource inside a server that has an entry of its own. */
function isPartOfServer(key: ResourceKey): boolean {
  const parsed = takeApart(key);
  const isDeclared = !comesWithServer(parsed) && !factsOf(parsed.kind).repeats;
  return parsed.parent !== undefined && isDeclared && retiredFrom(key) === undefined;
}

/** The key that a server had before its successor took the key. */
function presentKey(key: ResourceKey): ResourceKey {
  return takeApart(key).parent === undefined ? (retiredFrom(key) ?? key) : key;
}

function fieldOf(path: string): string {
  return path.split(/[.[]/, 1)[0] ?? path;
}

/** Without the fields that had no value, unless the earlier entry had that value. */
function withoutNulls(value: EntryFields, before: EntryFields = {}): EntryFields {
  const fields = Object.entries(value).filter(([name, each]) => each !== null || before[name] === null);
  return Object.fromEntries(fields);
}

/** An entry outside the run may use a created resource, and an earlier entry a resource that is gone since. */
function checkReferences(resources: readonly DesiredResource[], { kinds, run }: UndoInput): void {
  const keys = new Set(resources.map(({ key }) => key));
  for (const { key, kind, value } of resources) {
    const missing = (kinds.get(kind)?.entry.references?.(value) ?? []).find((each) => !keys.has(each.key));
    if (missing !== undefined)
      throw new ConfigError(
        `${key} uses ${missing.key}, which does not exist without the run ${run}. Change ${key} in the spec, apply, and undo the run then`,
      );
  }
}

/** The journal has the names of the variables, and no values. */
function checkEnvironment(restored: readonly DesiredResource[], { resources, environment }: Desired): void {
  for (const resource of restored) {
    if (resources.includes(resource)) continue;
    const { key, value } = resource;
    mapTexts(value, (text) => {
      if (text.includes('${env:') && environment?.texts.has(text) !== true)
        throw new ConfigError(
          `the earlier entry of ${key} has \`${text}\`, and the present spec does not: the value of the variable is not recorded. Write the entry into the spec, and apply`,
        );
      return text;
    });
  }
}

/** A write that is not undone wholly. */
interface Loss {
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
