import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A mistake that somebody could make: one patch of one file, never shipped. */
export interface Planted {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The argument for the stories that find it, where seeds do not draw them. */
  readonly stories: string | undefined;
}

/** Each has to be found by the simulation, alone, within a bounded number of seeds. */
export const plantedBugs: readonly Planted[] = readFileSync(join(import.meta.dirname, 'planted.txt'), 'utf8')
  .split(/^## /m)
  .slice(1)
  .map(patchOf);

/** A name, then a file below `src` with its stories, then the lines that go, as `- …`, and those that come, as `+ …`. */
function patchOf(text: string): Planted {
  const [name = '', place = '', ...lines] = text.trimEnd().split('\n');
  const [file = '', stories] = place.split(' ');
  const [find, replace] = ['- ', '+ '].map((sign) =>
    lines.flatMap((line) => (line.startsWith(sign) ? [line.slice(sign.length)] : [])).join('\n'),
  );
  return { name, file, find: find ?? '', replace: replace ?? '', stories };
}
