import { type KindName, takeApart } from '../core/keys.ts';
import type { Blocked } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import type { Coverage } from './coverage.ts';

/** Something that an operator was asked to decide. */
export interface Question {
  readonly code: string;
  readonly kind: KindName;
  readonly key: string;
}

/** It waits for another entry's answer, and asks nothing itself. */
const followUps: ReadonlySet<string> = new Set(['dependency_blocked']);

/**
 * Who was asked for what in one story (I16). However many runs report an entry as blocked
 * for one reason, that is one question.
 */
export class Questions {
  readonly #asked = new Map<string, Question>();
  readonly #coverage: Coverage;

  constructor(coverage: Coverage) {
    this.#coverage = coverage;
  }

  get all(): readonly Question[] {
    return [...this.#asked.values()];
  }

  /** Notes what a run has left to the operator. */
  note({ blocked }: Pick<ApplyReport, 'blocked'>): void {
    for (const each of blocked) if (!followUps.has(each.code)) this.#note(each);
  }

  #note({ code, key }: Blocked): void {
    if (this.#asked.has(`${code} ${key}`)) return;
    const { kind } = takeApart(key);
    const isFirst = !this.all.some((each) => each.code === code);
    this.#asked.set(`${code} ${key}`, { code, kind, key });
    this.#coverage.asked(code, kind, isFirst);
  }
}

/** One line of the table: how often a code has asked an operator, in how many stories, and about which kinds. */
export interface AskedOften {
  readonly code: string;
  readonly questions: number;
  readonly stories: number;
  readonly kinds: readonly (readonly [kind: string, questions: number])[];
}

/** Every code that has asked, most questions first. */
export function askedByCode({ hits }: Coverage): readonly AskedOften[] {
  const counts = [...hits].flatMap(([name, times]) => {
    const [, code = '', kind = ''] = /^asked (\S+) × (\S+)$/.exec(name) ?? [];
    return code === '' ? [] : [{ code, kind, times }];
  });
  return [...new Set(counts.map(({ code }) => code))]
    .map((code): AskedOften => {
      const own = counts.filter((each) => each.code === code && each.kind !== 'story');
      return {
        code,
        questions: own.reduce((sum, { times }) => sum + times, 0),
        stories: hits.get(`asked ${code} × story`) ?? 0,
        kinds: own
          .map(({ kind, times }) => [kind, times] as const)
          .toSorted(([, one], [, other]) => other - one),
      };
    })
    .toSorted((one, other) => other.questions - one.questions || (one.code < other.code ? -1 : 1));
}
