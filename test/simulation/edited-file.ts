import type { Controller } from '../../src/simulation/controller.ts';
import type { Fields, SpecFile } from '../../src/simulation/spec-file.ts';
import type { Entries, SpecModel } from '../../src/simulation/story.ts';
import { ActionLines, type EditedSection, editedSections } from './lines.ts';

/** An entry that has left the spec, or had other fields. */
export interface EarlierEntry {
  readonly section: EditedSection;
  readonly name: string;
  readonly entry: Fields;
}

/** A spec that an operator edits, with the entries that its history shows. */
export class EditedFile implements SpecFile {
  readonly lines: ActionLines;
  #model: SpecModel;
  #history: readonly EarlierEntry[] = [];

  constructor(model: SpecModel, lines = new ActionLines()) {
    this.#model = model;
    this.lines = lines;
  }

  get model(): SpecModel {
    return this.#model;
  }

  set model(model: SpecModel) {
    for (const section of editedSections)
      for (const [name, entry] of Object.entries(this.#model[section]))
        if (model[section][name] === undefined) this.keep({ section, name, entry });
    this.lines.follow(this.#model, model);
    this.#model = model;
  }

  /** Newest first. */
  get history(): readonly EarlierEntry[] {
    return this.#history;
  }

  keep(entry: EarlierEntry): void {
    this.#history = [entry, ...this.#history];
  }

  /** The fields that the entry of a key had before. */
  earlier(key: string): Fields | undefined {
    return this.#history.find(
      ({ section, name, entry }) => `${section}.${name}` === key && entry.managed !== false,
    )?.entry;
  }
}

/** The spec of a machine in a story that `play` has begun. */
export function editedFile({ file }: Pick<Controller, 'file'>): EditedFile {
  return file as EditedFile;
}

/** The server with a reference under its new name, or without it. */
export function referring(
  server: Fields,
  section: EditedSection,
  from: string,
  to: string | undefined,
): Fields {
  const { network_interfaces: cards, public_ipv4: address, iso } = server;
  if (section === 'networks' && Array.isArray(cards) && cards.includes(from)) {
    const renamed = cards.flatMap((each) => (each === from ? (to ?? []) : [each]));
    return { ...server, network_interfaces: renamed };
  }
  if (section === 'ips' && (address as { readonly ip?: string } | undefined)?.ip === from) {
    if (to !== undefined) return { ...server, public_ipv4: { ip: to } };
    const { public_ipv4: _address, firewall: _firewall, ...others } = server;
    return others;
  }
  if (section === 'isos' && iso === from) return { ...server, iso: to ?? null };
  return server;
}

/** Removes the entry, and the references to it, so that the spec stays valid. */
export function withoutEntry(model: SpecModel, key: string): SpecModel {
  const [section, name = ''] = key.split('.') as [EditedSection, string?];
  const { [name]: _entry, ...others } = model[section];
  return withReferences({ ...model, [section]: others }, section, name, undefined);
}

/** The spec with the references to an entry under its new name, or without them. */
export function withReferences(
  model: SpecModel,
  section: EditedSection,
  from: string,
  to: string | undefined,
): SpecModel {
  const servers: Entries = Object.fromEntries(
    Object.entries(model.servers).map(([name, server]) => [name, referring(server, section, from, to)]),
  );
  const images: Entries = Object.fromEntries(
    Object.entries(model.server_images ?? {}).flatMap(([name, image]) => {
      if (section !== 'servers' || image.server !== from) return [[name, image]];
      return to === undefined ? [] : [[name, { ...image, server: to }]];
    }),
  );
  return { ...model, servers, ...(model.server_images === undefined ? {} : { server_images: images }) };
}
