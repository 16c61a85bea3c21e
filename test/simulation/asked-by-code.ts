import type { Coverage } from './coverage.ts';

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
