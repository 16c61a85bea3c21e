import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';

/**
 * The attempts at this resource before this attempt, newest first, up to the first attempt that ended in another way.
 */
export async function unbrokenRow(
  run: Run,
  { id, key }: Intent,
  endedSo: (past: Intent) => boolean,
): Promise<readonly Intent[]> {
  const past = (await run.deps.store.intents({ key, limit: 2_000 })).filter((each) => each.id !== id);
  const end = past.findIndex((each) => !endedSo(each));
  return end === -1 ? past : past.slice(0, end);
}
