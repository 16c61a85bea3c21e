import { type Fields, withEntry } from '../../../src/simulation/spec-file.ts';
import type { SpecModel } from '../../../src/simulation/story.ts';
import { type EditedFile, withoutEntry, withReferences } from '../edited-file.ts';
import type { EditedSection } from '../lines.ts';
import type { EntryPlace, FileEdit, GivenId } from './operator-action.ts';

/** The ids that an operator can look up for an edit. */
export interface KnownIds {
  /** The id that an operator writes for the entry; `undefined` where there is none. */
  find(section: EditedSection, name: string, which: GivenId): string | undefined;
}

/** Makes the edits of an operator in one file. */
export class FileEditor {
  readonly #file: EditedFile;
  #fresh = 0;

  constructor(file: EditedFile) {
    this.#file = file;
  }

  get #model(): SpecModel {
    return this.#file.model;
  }

  /**
   * The spec after the edit; `undefined` if the edit has nothing to change. `isApplied`: a run has carried out the spec,
   * so that a `moved` has done its work.
   */
  edited(edit: FileEdit, ids: KnownIds, isApplied: boolean): SpecModel | undefined {
    const model = this.#model;
    switch (edit.do) {
      case 'rename':
        return this.#renamed(edit, isApplied);
      case 'drop_moved': {
        if (!isApplied) return undefined;
        const moved = entriesOf(model).filter(({ entry }) => entry.moved !== undefined);
        const found = at(moved, edit.place);
        return found && withChanges(model, found.section, found.name, { moved: null });
      }
      case 'remove_entry': {
        const name = nameAt(model, edit.of);
        return name === undefined ? undefined : withoutEntry(model, `${edit.of.section}.${name}`);
      }
      case 'return_entry':
        return this.#returned(edit.place);
      case 'copy_entry': {
        const name = nameAt(model, edit.of);
        if (name === undefined) return undefined;
        const { id: _id, moved: _moved, name: _name, ...entry } = model[edit.of.section][name] as Fields;
        return withEntry(model, `${edit.of.section}.${this.#freshName(name)}`, entry);
      }
      case 'give_id': {
        const { section } = edit.of;
        const name = nameAt(model, edit.of);
        if (name === undefined) return undefined;
        if (edit.id === 'none') return withChanges(model, section, name, { id: null });
        const id = ids.find(section, name, edit.id);
        return id === undefined ? undefined : withChanges(model, section, name, { id: written(id) });
      }
      case 'manage':
        return this.#managed(edit, ids);
      case 'change_fields': {
        const { section } = edit.of;
        const chosen = edit.all ? namesIn(model, section) : [nameAt(model, edit.of)];
        const names = chosen.filter((name) => name !== undefined);
        if (names.length === 0) return undefined;
        return names.reduce((now, name) => withChanges(now, section, name, edit.fields), model);
      }
      case 'change_settings':
        return { ...model, settings: merged(model.settings, edit.fields) };
      case 'give_scope': {
        const { scope: _scope, ...others } = model;
        return edit.scope === null ? others : { ...others, scope: edit.scope };
      }
      case 'begin_overlay': {
        const { under: _under, ...base } = model;
        return { ...base, under: base };
      }
      case 'end_overlay': {
        const { under: _under, ...base } = model;
        return base;
      }
      case 'empty_file':
        return { ...model, networks: {}, ips: {}, isos: {}, servers: {} };
    }
  }

  #renamed({ of, to, moved, name }: FileEdit & { do: 'rename' }, isApplied: boolean): SpecModel | undefined {
    const { section } = of;
    const from = nameAt(this.#model, of);
    if (from === undefined) return undefined;
    const earlier = this.#file.history.flatMap((each) => (each.section === section ? [each.name] : []));
    const free = [...new Set(earlier)].filter((each) => this.#model[section][each] === undefined);
    const target = to === 0 ? this.#freshName(from) : (at(free, to - 1) ?? this.#freshName(from));
    const { moved: earlierMoved, name: apiName, ...entry } = this.#model[section][from] as Fields;
    const names = section === 'ips' ? {} : nameAfter(name, from, apiName, target);
    // The state still has the key before the rename that no run has carried out.
    const key = `${section}.${from}`;
    const isNew = !isApplied && this.#file.lines.isUnused(key);
    const origin = (isNew ? earlierMoved : undefined) ?? { from: key };
    const isBack = (origin as { readonly from: string }).from === `${section}.${target}`;
    const renamed = { ...entry, ...names, ...(moved && !isBack ? { moved: origin } : {}) };
    const { [from]: _from, ...others } = this.#model[section];
    const model = { ...this.#model, [section]: { ...others, [target]: renamed } };
    return withReferences(model, section, from, target);
  }

  #returned(place: number): SpecModel | undefined {
    const gone = this.#file.history.filter(({ section, name }) => this.#model[section][name] === undefined);
    const found = at(gone, place);
    if (found === undefined) return undefined;
    return withEntry(this.#model, `${found.section}.${found.name}`, found.entry);
  }

  #managed({ of, managed }: FileEdit & { do: 'manage' }, ids: KnownIds): SpecModel | undefined {
    const { section } = of;
    const name = nameAt(this.#model, of);
    if (name === undefined) return undefined;
    const entry = this.#model[section][name] as Fields;
    if (managed) {
      if (entry.managed !== false) return undefined;
      const before = this.#file.history.find((each) => each.section === section && each.name === name);
      return before && withEntry(this.#model, `${section}.${name}`, before.entry);
    }
    const id = ids.find(section, name, 'own');
    if (entry.managed === false || id === undefined) return undefined;
    this.#file.keep({ section, name, entry });
    return withEntry(this.#model, `${section}.${name}`, { managed: false, id: written(id) });
  }

  #freshName(like: string): string {
    this.#fresh += 1;
    return `${like.replace(/-v\d+$/, '')}-v${this.#fresh}`;
  }
}

/** The API's name of a renamed entry. Without `name`, an entry has the name of its key. */
function nameAfter(how: string, from: string, apiName: unknown, target: string): Fields {
  if (how === 'dropped') return {};
  if (how === 'changed') return { name: `${target}-named` };
  if (how === 'kept') return { name: apiName ?? from };
  return apiName === undefined ? {} : { name: apiName };
}

function at<Value>(list: readonly Value[], place: number): Value | undefined {
  return list[place % Math.max(1, list.length)];
}

function namesIn(model: SpecModel, section: EditedSection): readonly string[] {
  return Object.keys(model[section]).filter((name) => name !== 'default');
}

export function nameAt(model: SpecModel, { section, place }: EntryPlace): string | undefined {
  return at(namesIn(model, section), place);
}

function entriesOf(model: SpecModel) {
  return (['servers', 'ips', 'networks', 'isos'] as const).flatMap((section) =>
    Object.entries(model[section]).map(([name, entry]) => ({ section, name, entry })),
  );
}

function written(id: string): string | number {
  return /^\d+$/.test(id) ? Number(id) : id;
}

/** `null` removes a field. */
function merged(fields: Fields, changes: Fields): Fields {
  return Object.fromEntries(Object.entries({ ...fields, ...changes }).filter(([, value]) => value !== null));
}

function withChanges(model: SpecModel, section: EditedSection, name: string, changes: Fields): SpecModel {
  return withEntry(model, `${section}.${name}`, merged(model[section][name] ?? {}, changes));
}
