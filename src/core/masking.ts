/** A shorter secret protects nothing, and occurs in other texts by chance. */
const fewestCharacters = 8;
const mask = '***';

/**
 * Gives a function that removes secrets from a text, in each form in which a program may repeat them: unchanged, in
 * JSON, in a URL, and in Base64, alone or as part of a longer text such as `user:password`.
 */
export function maskerOf(secrets: readonly string[]): (text: string) => string {
  const forms = secrets.filter(({ length }) => length >= fewestCharacters).flatMap(formsOf);
  if (forms.length === 0) return (text) => text;
  // The longest first: one form may hold another.
  const longestFirst = [...new Set(forms)].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map(asPattern).join('|'), 'g');
  return (text) => text.replace(pattern, mask);
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

/** The text as a pattern that matches it alone. */
export function asPattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
