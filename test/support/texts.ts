import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Texts that tests expect. In their file each one follows its title: `## TITLE`. */
export class Texts {
  readonly #texts: ReadonlyMap<string, string>;

  constructor(...path: readonly string[]) {
    const parts = readFileSync(join(...path), 'utf8').split(/^## /m);
    this.#texts = new Map(
      parts.slice(1).map((part): [string, string] => {
        const [title = '', ...lines] = part.trimEnd().split('\n');
        return [title, lines.join('\n')];
      }),
    );
  }

  of(title: string): string {
    const text = this.#texts.get(title);
    if (text === undefined) throw new Error(`there is no text "${title}"`);
    return text;
  }
}

/** A reason and its remedies: one line each. */
export function asLines(objection: string): string {
  return objection
    .replace(/ (?=[→|⇒] )/g, '\n')
    .replace(/ +$/gm, '')
    .trim();
}
