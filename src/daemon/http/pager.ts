import { outside, type Remedy, stepsOf } from '../../core/remedy.ts';

/** The largest number of entries of each list in one answer: a page of 10,000 resources would block the daemon. */
const mostEntries = 100;
/** The largest number of projects in one answer of several. */
export const mostProjects = 50;

/** Cuts every list of one answer to the entries of one page, and counts the pages. */
export class Pager {
  /** From 1. */
  readonly page: number;
  readonly #size: number;
  #longest = 0;

  constructor(page = 1, size: number = mostEntries) {
    this.page = page;
    this.#size = size;
  }

  /** The entries of this page. */
  of<Entry>(list: readonly Entry[]): readonly Entry[] {
    this.#longest = Math.max(this.#longest, list.length);
    return list.slice((this.page - 1) * this.#size, this.page * this.#size);
  }

  /** The pages that the longest list of the answer needs. */
  get pages(): number {
    return Math.max(1, Math.ceil(this.#longest / this.#size));
  }
}

/** The longest text in an answer. A message can name each of many resources. */
const mostCharacters = 2_000;

/** Texts are cut, not left out: the beginning names their subject. */
export function cutText(text: string): string {
  return text.length <= mostCharacters ? text : `${text.slice(0, mostCharacters).toWellFormed()}…`;
}

/** A command that names too many resources for a page is not cut, because it would do something else. */
export function shortRemedies(remedies: readonly Remedy[]): readonly Remedy[] {
  return remedies.map((remedy) => {
    const isLong = stepsOf([remedy]).some(
      (step) => step.type === 'run' && step.args.join(' ').length > mostCharacters,
    );
    const { when } = remedy;
    const about = when === undefined ? {} : { when };
    return isLong ? outside('run the command that `vdcsync plan` prints', about) : remedy;
  });
}

/** The number of a page in a query. Any text that is no number means the first page. */
export function pageNumber(text: string | undefined): number {
  return /^[1-9]\d{0,5}$/.test(text ?? '') ? Number(text) : 1;
}
