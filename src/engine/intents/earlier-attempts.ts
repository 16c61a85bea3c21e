import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { wasSaidAbsent } from './closing-words.ts';

/** A person was asked whether anything was made under a key of this resource, has looked, and said that nothing was. */
export async function isSaidAbsent(run: Run, { key, verb, incarnation }: Intent): Promise<boolean> {
  const past = await run.deps.store.intents({ key, limit: 2_000 });
  const isAlike = (each: Intent) => each.verb === verb && each.incarnation === incarnation;
  // Of a refusal of the entry, it says no more than that it is to be tried again.
  return past.some((each) => isAlike(each) && wasSaidAbsent(each) && each.blocked?.until !== 'file');
}

/** The attempts at this resource before this one, newest first, as far as each of them ended so. */
export async function unbrokenRow(
  run: Run,
  { id, key }: Intent,
  endedSo: (past: Intent) => boolean,
): Promise<readonly Intent[]> {
  const past = (await run.deps.store.intents({ key, limit: 2_000 })).filter((each) => each.id !== id);
  const end = past.findIndex((each) => !endedSo(each));
  return end === -1 ? past : past.slice(0, end);
}
