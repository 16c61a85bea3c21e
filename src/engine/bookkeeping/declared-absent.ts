import type { Json } from '../../core/json.ts';
import type { Intent, StateStore } from '../../core/state.ts';
import type { DeclaredAbsent } from '../../plan/strangers.ts';

/** The note of the state with the creations that the operator has declared absent. */
const noteName = 'declared_absent';

/** Records a creation that the operator has declared absent, with the lists from before it. */
export async function declareAbsent(store: StateStore, intent: Intent, at: number): Promise<void> {
  const { key, kind, preimage } = intent;
  if (kind !== 'server' && kind !== 'ip') return;
  const { servers = [], ips = [] } = (preimage ?? {}) as Partial<Pick<DeclaredAbsent, 'servers' | 'ips'>>;
  const others = (await declaredAbsent(store)).filter((each) => each.key !== key);
  const next: readonly DeclaredAbsent[] = [...others, { key, kind, at, servers, ips }];
  await store.putNote(noteName, next as unknown as Json);
}

export async function declaredAbsent(store: Pick<StateStore, 'note'>): Promise<readonly DeclaredAbsent[]> {
  return ((await store.note(noteName)) ?? []) as unknown as readonly DeclaredAbsent[];
}
