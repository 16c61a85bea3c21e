/** Control, format and line characters: invisible themselves, they change the appearance of a text. */
const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

export function hasUnseen(text: string): boolean {
  return text.search(unseen) !== -1;
}

/** Text with each unseen character as its escape sequence, as JSON and the quoted strings of YAML take it. */
export function escapeUnseen(text: string): string {
  return text.replace(unseen, (character) =>
    Array.from({ length: character.length }, (_, at) => escapeUnit(character.charCodeAt(at))).join(''),
  );
}

/** The same for a text of many lines, whose ends stay. */
export function escapeUnseenInLines(text: string): string {
  return text
    .split('\n')
    .map((line) => escapeUnseen(line))
    .join('\n');
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
