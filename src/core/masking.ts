/** A secret, and the text that takes its place. */
export interface Masked {
  readonly value: string;
  readonly shown: string;
}

/** A shorter secret protects nothing, and occurs in other texts by chance. */
const fewestCharacters = 8;

/**
 * Gives a function that removes secrets from a text, in each form in which a program may repeat them: unchanged, in
 * JSON, in a URL, and in Base64, alone or as part of a longer text such as `user:password`.
 */
export function maskerOf(secrets: readonly Masked[]): (text: string) => string {
  const shownOf = new Map(
    secrets
      .filter(({ value }) => value.trim().length >= fewestCharacters)
      .flatMap(({ value, shown }) =>
        formsOf(value.trim().toWellFormed()).map((form) => [form, shown] as const),
      ),
  );
  // The longest first: one form may hold another.
  const longestFirst = [...shownOf].sort(([a], [b]) => b.length - a.length);
  return (text) => longestFirst.reduce((all, [form, shown]) => all.replaceAll(form, () => shown), text);
}

/** The same for secrets that are too short for `maskerOf`: only whole words of a sentence are removed. */
export function wordMaskerOf(secrets: readonly Masked[]): (text: string) => string {
  const short = secrets
    .map(({ value, shown }) => ({ value: value.trim(), shown }))
    .filter(({ value }) => value !== '' && value.length < fewestCharacters);
  return (text) => short.reduce(withoutWord, text);
}

function withoutWord(text: string, { value, shown }: Masked): string {
  let masked = '';
  let from = 0;
  for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1)) {
    if (at < from || isLetter(text[at - 1]) || isLetter(text[at + value.length])) continue;
    masked += `${text.slice(from, at)}${shown}`;
    from = at + value.length;
  }
  return masked + text.slice(from);
}

function isLetter(character: string | undefined): boolean {
  if (character === undefined) return false;
  return character.toLowerCase() !== character.toUpperCase() || '0123456789_'.includes(character);
}

function formsOf(secret: string): readonly string[] {
  const base64 = base64Forms(secret);
  const urlSafe = base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'));
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), ...base64, ...urlSafe];
}

/**
 * Base64 has three forms of a text, by its place in groups of three bytes. Characters shared with neighbours are left
 * out.
 */
function base64Forms(secret: string): readonly string[] {
  const within = [0, 1, 2].map((offset) => {
    const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
    return bytes.toString('base64').slice(Math.ceil((offset * 4) / 3), Math.floor((bytes.length * 4) / 3));
  });
  return [Buffer.from(secret).toString('base64'), ...within];
}
