import type { StateStore } from '../../core/state.ts';
import type { Vouched } from '../../plan/strangers.ts';

/** `Vouched`, once a plan was approved, or the operator has spoken of unmanaged resources. */
export const vouchedNote = 'vouched_for';

export async function vouchedBy(store: Pick<StateStore, 'note'>): Promise<Vouched | undefined> {
  return (await store.note(vouchedNote)) as Vouched | undefined;
}
