import { questionClass } from '../core/codes.ts';
import { type ResourceKey, takeApart } from '../core/keys.ts';
import type { KindName } from '../core/kind-facts.ts';
import type { Blocked } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';

/** Something that an operator was asked to decide. */
export interface AskedQuestion {
  readonly code: string;
  readonly kind: KindName;
  readonly key: ResourceKey;
}

/**
 * The questions that one story put to the operator. All runs that report an entry as blocked for the same reason count as
 * one question.
 */
export class Questions {
  readonly #asked = new Map<string, AskedQuestion>();
  readonly #onQuestion: (blocked: Blocked) => void;

  constructor(onQuestion: (blocked: Blocked) => void) {
    this.#onQuestion = onQuestion;
  }

  get all(): readonly AskedQuestion[] {
    return [...this.#asked.values()];
  }

  /** Records the blocks that a run has left to the operator. */
  note({ blocked }: Pick<ApplyReport, 'blocked'>): void {
    for (const each of blocked) {
      const { code, key } = each;
      if (questionClass(code) === 'none' || this.#asked.has(`${code} ${key}`)) continue;
      this.#asked.set(`${code} ${key}`, { code, kind: takeApart(key).kind, key });
      this.#onQuestion(each);
    }
  }
}
