import type { Claim } from '../../src/core/claims.ts';
import { patched } from '../../src/core/intent.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type {
  Because,
  Binding,
  Intent,
  IntentOutcome,
  IntentPatch,
  JournalEntry,
} from '../../src/core/state.ts';
import { ended } from '../../src/state/records.ts';

/** The state that a journal describes. */
export interface Replayed {
  /** By key. */
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  /** By the name of their object. */
  readonly claims: ReadonlyMap<string, Claim>;
  /** Those still open, in the order in which they began. */
  readonly openIntents: readonly Intent[];
  /** All of them, by id, in the order in which they began. */
  readonly intents: ReadonlyMap<string, Intent>;
  /** How many resources of a key are gone; keys not listed: none. */
  readonly incarnations: ReadonlyMap<ResourceKey, number>;
}

/**
 * Builds the state from its journal, which is given whole, oldest line first. Any prefix of the journal gives the
 * state at that moment. Lines that this version does not know are left out, because a later version may write other
 * lines.
 */
export function replay(journal: Iterable<JournalEntry>): Replayed {
  const bindings = new Map<ResourceKey, Binding>();
  const claims = new Map<string, Claim>();
  const intents = new Map<string, Intent>();
  const incarnations = new Map<ResourceKey, number>();
  const next = (key: ResourceKey) => incarnations.set(key, (incarnations.get(key) ?? 0) + 1);

  for (const { at, key, event, intentId, data } of journal) {
    const line = data as unknown as Line;
    const intent = intentId === undefined ? undefined : intents.get(intentId);
    if (line.intent !== undefined) intents.set(line.intent.id, line.intent);
    else if (line.binding !== undefined) bindings.set(key, line.binding);
    else if (line.claim !== undefined) claims.set(key, line.claim);
    else if (event === 'unclaimed') claims.delete(key);
    else if (line.incarnation === 'next') next(key);
    else if (line.patch !== undefined && intent !== undefined)
      intents.set(intent.id, patched(intent, line.patch));
    else if (line.outcome !== undefined && intent !== undefined) {
      intents.set(
        intent.id,
        ended(
          intent,
          { outcome: line.outcome, ...(line.because && { because: line.because }), text: line.detail ?? '' },
          at,
        ),
      );
    } else if (event === 'released') {
      bindings.delete(key);
      if (line.gone === true) next(key);
    }
  }
  const openIntents = [...intents.values()].filter(({ phase }) => phase !== 'closed');
  return { bindings, claims, openIntents, intents, incarnations };
}

/** The members of every form of `JournalData`. */
interface Line {
  readonly intent?: Intent;
  readonly binding?: Binding;
  readonly claim?: Claim;
  readonly incarnation?: 'next';
  readonly patch?: IntentPatch;
  readonly outcome?: IntentOutcome;
  readonly because?: Because;
  readonly detail?: string;
  readonly gone?: boolean;
}
