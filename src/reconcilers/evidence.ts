import { member } from '../core/json.ts';

/** The reads do not show the effect. */
export const notDone = { verdict: 'not_done' } as const;

/** The reads show the effect, by an id. */
export function done(id: number | string) {
  return { verdict: 'done', id: String(id), certain: true } as const;
}

export function doneIf(isDone: boolean, id: number | string) {
  return isDone ? done(id) : notDone;
}

/** The reads permit no conclusion: an operator may choose one of these. */
export function unclear(reason: string, among: readonly { readonly id: number | string }[]) {
  return { verdict: 'unclear', reason, candidates: among.map(({ id }) => String(id)) } as const;
}

/** An `id` of an answer's `data`, as text. */
export function idIn(data: unknown): string | undefined {
  const id = member(data, 'id');
  return typeof id === 'number' || (typeof id === 'string' && id !== '') ? String(id) : undefined;
}

/** The same for kinds whose ids are integers: any other value is no id. @source API §2 */
export function integerIdIn(data: unknown): string | undefined {
  const id = idIn(data);
  return id !== undefined && /^[1-9]\d{0,15}$/.test(id) ? id : undefined;
}

/** The ids of a recorded list, as text. */
export function recordedIds(list: readonly (number | string)[] = []): ReadonlySet<string> {
  return new Set(list.map(String));
}
