/** A typing error is short: longer texts are not compared, which also bounds the work. */
const longestCompared = 64;

/** The candidate that was probably meant, if one is near enough. */
export function nearMiss(text: string, candidates: Iterable<string>): string | undefined {
  if (text.length > longestCompared) return undefined;
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - text.length) > allowed(text)) continue;
    const distance = editDistance(text.toLowerCase(), candidate.toLowerCase());
    if (distance <= allowed(text) && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) {
      best = { candidate, distance };
    }
  }
  return best?.candidate;
}

/** `; did you mean …?`, or nothing. */
export function didYouMean(text: string, candidates: Iterable<string>, quote = '`'): string {
  const meant = nearMiss(text, candidates);
  return meant === undefined ? '' : `; did you mean ${quote}${meant}${quote}?`;
}

/** The same for keys: letters of the collection that both are in are no sign of nearness. */
export function didYouMeanKey(key: string, keys: Iterable<string>, quote = '`'): string {
  const collection = key.slice(0, key.indexOf('.') + 1);
  const beside = [...keys].filter((each) => each.startsWith(collection));
  const named = collection === '' ? [...keys].filter((each) => each.endsWith(`.${key}`)) : [];
  if (named.length > 0)
    return `; did you mean ${named
      .slice(0, 3)
      .map((each) => `${quote}${each}${quote}`)
      .join(' or ')}?`;
  if (collection === '' || beside.length === 0) return didYouMean(key, keys, quote);
  const rest = (each: string) => each.slice(collection.length);
  const meant = nearMiss(rest(key), beside.map(rest));
  return meant === undefined ? '' : `; did you mean ${quote}${collection}${meant}${quote}?`;
}

/** One slip in a short word, one in three letters of a longer one. */
function allowed(text: string): number {
  return Math.max(1, Math.floor(text.length / 3));
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
