import type { Json } from '../../core/json.ts';
import { probeField, type WriteRequest, type WriteResult } from '../../core/ports.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { type ReuseRefusal, reuseRefusal } from './outcome.ts';

/** How the API treats the keys of one operation, as refused requests have shown. */
export interface KeyBehaviour {
  /** The refusal of a body is stored under its key, and replayed: a probe can fence a key. */
  readonly storesRefusals: boolean;
  /** How a key that another request has used is refused; unknown where the API looks at bodies before keys. */
  readonly reuse?: ReuseRefusal;
}

/** Where the state keeps it, by operation. */
const noteName = 'key_behaviour';

type Send = (request: WriteRequest, key: string) => Promise<WriteResult>;

/**
 * What is known of the operation's keys; asked once of each API and operation, with a spare key and invalid bodies alone:
 * a refusal that names the probe's field, the same replayed, another body refused as another request, the first still
 * replayed. Whatever deviates twice turns fences off. The result of a request that told nothing is given as it is: all of it
 * is asked again later.
 */
export async function calibrated(run: Run, intent: Intent, send: Send): Promise<KeyBehaviour | WriteResult> {
  const { store, random } = run.deps;
  const { name } = intent.request;
  const known = (await store.note(noteName)) as Readonly<Record<string, KeyBehaviour>> | undefined;
  if (known?.[name] !== undefined) return known[name];
  const ask = async () => {
    const spare = Array.from({ length: 32 }, () => Math.floor(random.next() * 16).toString(16)).join('');
    const key = `vdcsync-spare-${spare}`;
    await store.putNote('key_calibration', { key, name });
    return observed((probe) => send({ ...intent.request, probe }, key));
  };
  const once = await ask();
  // One odd answer among many is a passing fault, and the same again is how this API is.
  const behaviour = 'type' in once || once.storesRefusals ? once : await ask();
  if (!('type' in behaviour))
    await store.putNote(noteName, { ...known, [name]: behaviour } as unknown as Json);
  return behaviour;
}

async function observed(ask: (probe: 1 | 2) => Promise<WriteResult>): Promise<KeyBehaviour | WriteResult> {
  const unusable: KeyBehaviour = { storesRefusals: false };
  const first = await ask(1);
  if (!isTelling(first)) return first;
  if (!namesProbe(first) || first.replayed) return unusable;
  const second = await ask(1);
  if (!isTelling(second)) return second;
  if (!second.replayed) return unusable;
  const other = await ask(2);
  if (!isTelling(other)) return other;
  if (other.replayed || other.status < 300) return unusable;
  const third = await ask(1);
  if (!isTelling(third)) return third;
  if (!third.replayed) return unusable;
  return { storesRefusals: true, ...(namesProbe(other) ? {} : { reuse: reuseRefusal(other) }) };
}

/** Complete, and about the request itself: not about the token, the budget, or the state of the project. */
function isTelling(result: WriteResult): result is WriteResult & { readonly type: 'answer' } {
  if (result.type !== 'answer') return false;
  const { status, replayed, retryAfterMs } = result;
  const conflict = status === 409 && retryAfterMs === undefined;
  return status < 300 || replayed || status === 400 || status === 422 || conflict;
}

function namesProbe({ invalidParams = [] }: WriteResult & { readonly type: 'answer' }): boolean {
  return invalidParams.some(({ name }) => name.includes(probeField));
}
