import type { Desired, EntryFields } from '../core/desired.ts';
import { isPassedOn } from '../core/hidden-texts.ts';
import { mapTexts } from '../core/json.ts';
import { expandedIn, type Located, type Report, refuseSecret } from './located.ts';

/** Puts the text of the spec back in the place of each text from the environment, and remembers the real texts. */
export class WrittenTexts {
  readonly #texts = new Map<string, string>();
  readonly #variables = new Map<string, string>();

  /**
   * The valid entry with the texts of the spec. Reports variables in a part that output has to show.
   *
   * @param foreign fields that are no part of the entry
   */
  of(value: EntryFields, located: Located, report: Report, foreign: readonly string[] = []): EntryFields {
    const written = new Map<string, string>();
    for (const [path, here] of expandedIn(located)) {
      if (foreign.includes(String(path[0]))) continue;
      if (isPassedOn(path)) written.set(path.join('\0'), here.written ?? '');
      else if (here.secret) refuseSecret(here, report);
      for (const [name, each] of here.variables ?? []) this.#variables.set(name, each);
    }
    if (written.size === 0) return value;
    return mapTexts(value, (text, path) => {
      const shown = written.get(path.join('\0'));
      if (shown !== undefined) this.#texts.set(shown, text);
      return shown ?? text;
    });
  }

  environment(): Pick<Desired, 'environment'> {
    return this.#texts.size === 0 ? {} : { environment: { texts: this.#texts, variables: this.#variables } };
  }
}
