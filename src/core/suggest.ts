import { collections } from './kind-facts.ts';

/** A typing error is short: longer texts are not compared, which also bounds the work. */
const longestCompared = 64;

/** Names with this number of letters may have two typing errors, shorter names one. */
const lettersForTwoSlips = 8;

/** The names of fields in other tools. They come before names with similar letters. */
const elsewhere: readonly (readonly [word: RegExp, field: string])[] = [
  [/^v?cpus?$/, 'cores'],
  [/^ram(mb|gb)?$/, 'memory_mb'],
  [/^(disksize|storage)(gb)?$/, 'disk_gb'],
  [/^(public)?ip(v4)?(address)?$/, 'public_ipv4'],
  [/^(size|flavor|(instance)?type)$/, 'server_type'],
  [/^(d|dst|dest|to)?ports?$/, 'destination_port'],
  [/^proto$/, 'protocol'],
  [/^(desc|(comment|note|remark)s?)$/, 'description'],
];

/** The candidate that was probably meant: a synonym, or the name with the fewest typing errors. */
export function nearMiss(text: string, candidates: Iterable<string>): string | undefined {
  if (text.length > longestCompared) return undefined;
  const all = [...candidates];
  const synonym = elsewhere.find(([word]) => word.test(lettersOf(text)))?.[1];
  return all.find((each) => each === synonym) ?? nearest(text, all);
}

/**
 * The candidate that is certainly meant: a synonym, or a name with one or two typing errors. Stricter
 * than `nearMiss`, for names that may be correct although no list contains them.
 */
export function misspelled(text: string, candidates: Iterable<string>): string | undefined {
  const given = lettersOf(text);
  if (given === '' || given.length > longestCompared) return undefined;
  const all = [...candidates];
  const synonym = elsewhere.find(([word]) => word.test(given))?.[1];
  const slips = given.length < lettersForTwoSlips ? 1 : 2;
  return (
    all.find((each) => each === synonym) ?? all.find((each) => editDistance(given, lettersOf(each)) <= slips)
  );
}

/**
 * Compares letters only: case and separators between words do not count. One typing error in a short word, and one for
 * every three letters of a longer word: an operator may leave out a unit, such as `_gb`.
 */
function nearest(text: string, candidates: readonly string[]): string | undefined {
  const given = lettersOf(text);
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const letters = lettersOf(candidate);
    const most = Math.max(1, Math.floor(Math.max(given.length, letters.length) / 3));
    if (Math.abs(letters.length - given.length) > most) continue;
    const distance = editDistance(given, letters);
    if (distance <= most && distance < (best?.distance ?? given.length)) {
      best = { candidate, distance };
    }
  }
  return best?.candidate;
}

function lettersOf(text: string): string {
  return text.toLowerCase().replaceAll(/[-_ ]/g, '');
}

/** `; did you mean …?`, or nothing. */
export function didYouMean(text: string, candidates: Iterable<string>): string {
  const meant = nearMiss(text, candidates);
  return meant === undefined ? '' : `; did you mean \`${meant}\`?`;
}

/**
 * The same for keys. The collection is compared separately, because its letters do not show that the names are
 * similar. Without a collection, the function compares the names of all collections.
 */
export function didYouMeanKey(key: string, keys: Iterable<string>, quote = '`'): string {
  const all = [...keys];
  const [first = '', ...rest] = key.split('.');
  const collection = rest.length === 0 ? undefined : nearMiss(first, collections);
  const beside = collection === undefined ? all : all.filter((each) => each.startsWith(`${collection}.`));
  const name = collection === undefined ? key : rest.join('.');
  const nameOf = (each: string) => each.slice(each.indexOf('.') + 1);
  const meant = beside.some((each) => nameOf(each) === name) ? name : nearMiss(name, beside.map(nameOf));
  const named = beside.filter((each) => nameOf(each) === meant).slice(0, 3);
  return named.length === 0
    ? ''
    : `; did you mean ${named.map((each) => `${quote}${each}${quote}`).join(' or ')}?`;
}

/** Damerau-Levenshtein, adjacent transpositions only: insert, delete, change or swap one letter. */
export function editDistance(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let row = 1; row <= one.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const same = one[row - 1] === other[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]) {
        cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      }
      current.push(cost);
    }
    [beforeLast, last] = [last, current];
  }
  return last[other.length] ?? 0;
}
