import type { Json } from '../../core/json.ts';
import { probeField, type WriteResult } from '../../core/ports.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { type ReuseRefusal, reuseRefusal } from './outcome.ts';
import { sendFenced } from './write-slot.ts';

/** How the API treats the keys of one operation, as refused requests have shown. */
export interface KeyBehaviour {
  /** The refusal of a body is stored under its key, and replayed: a probe can fence a key. */
  readonly storesRefusals: boolean;
  /** How the API refuses a key that another request has used; unknown if the API checks bodies before keys. */
  readonly reuse?: ReuseRefusal;
  /** The first answer that differs from the answers of an API that stores refusals. */
  readonly deviation?: 'unnamed' | 'not_replayed' | 'not_refused' | 'replaced';
}

/** The note of the state that holds the behaviour of each operation. */
const noteName = 'key_behaviour';

/**
 * Returns the behaviour of the operation's keys. The first call asks the API, with a spare key and only with invalid
 * bodies: the refusal names the probe's field (@assumption A69), the refusal is replayed, another body is refused as
 * another request, the first refusal is still replayed. Two deviations turn fences off for the operation. If an
 * answer is inconclusive, the function returns this answer, and the calibration starts again later.
 */
export async function calibrated(run: Run, intent: Intent): Promise<KeyBehaviour | WriteResult> {
  const { store, random } = run.deps;
  const { name } = intent.request;
  const known = (await store.note(noteName)) as Readonly<Record<string, KeyBehaviour>> | undefined;
  if (known?.[name] !== undefined) return known[name];
  const ask = async () => {
    const key = spareKey(random.next);
    await store.putNote('key_calibration', { key, name });
    return observeKeys((probe) => sendFenced(run, { ...intent.request, probe }, key));
  };
  const once = await ask();
  // One deviation may be a passing fault. Two deviations show how this API behaves.
  const behaviour = 'type' in once || once.storesRefusals ? once : await ask();
  if (!('type' in behaviour))
    await store.putNote(noteName, { ...known, [name]: behaviour } as unknown as Json);
  return behaviour;
}

/** A key that no creation uses. */
export function spareKey(next: () => number): string {
  return `vdcsync-spare-${Array.from({ length: 32 }, () => Math.floor(next() * 16).toString(16)).join('')}`;
}

/**
 * Shows by four refused requests under one spare key how the API treats the keys of an operation. If an answer is
 * inconclusive, the function returns this answer.
 */
export async function observeKeys(
  ask: (probe: 1 | 2) => Promise<WriteResult>,
): Promise<KeyBehaviour | WriteResult> {
  const deviates = (deviation: KeyBehaviour['deviation'] & string): KeyBehaviour => ({
    ...{ storesRefusals: false, deviation },
  });
  const first = await ask(1);
  if (!isTelling(first)) return first;
  if (!namesProbe(first) || first.replayed) return deviates('unnamed');
  const second = await ask(1);
  if (!isTelling(second)) return second;
  if (!second.replayed) return deviates('not_replayed');
  const other = await ask(2);
  if (!isTelling(other)) return other;
  if (other.replayed || other.status < 300) return deviates('not_refused');
  const third = await ask(1);
  if (!isTelling(third)) return third;
  if (!third.replayed) return deviates('replaced');
  return { storesRefusals: true, ...(namesProbe(other) ? {} : { reuse: reuseRefusal(other) }) };
}

/** The answer is complete and about the request itself, not about the token, the budget or the state of the project. */
function isTelling(result: WriteResult): result is WriteResult & { readonly type: 'answer' } {
  if (result.type !== 'answer') return false;
  const { status, replayed, retryAfterMs } = result;
  const conflict = status === 409 && retryAfterMs === undefined;
  return status < 300 || replayed || status === 400 || status === 422 || conflict;
}

function namesProbe({ invalidParams = [] }: WriteResult & { readonly type: 'answer' }): boolean {
  return invalidParams.some(({ name }) => name.includes(probeField));
}
