import type { Preimage } from './preimage.ts';
import type { Answer, Facts, IntentPhase, RecordedWrite, Sends } from './state.ts';

/** A write that evidence is read for. */
export type SentWrite<Before extends Preimage = Preimage> = Pick<
  RecordedWrite & Sends,
  'verb' | 'request' | 'firstSentAt' | 'firstSentApiAt' | 'lastSentAt'
> & {
  readonly preimage: Before;
  /** If the operator has named the id of a `blocked` write, the id is in the answer. */
  readonly phase: IntentPhase;
  readonly answer?: Answer;
};

/** Free addresses that an answer to a failed creation named. */
export interface LeftBehind {
  readonly addresses: readonly { readonly id: number; readonly address: string }[];
}

/** The answer of the reads about a write whose outcome is unknown. */
export type Evidence =
  /**
   * The write took effect. `certain`: the resource is identified by an id, not by a difference of two lists. `called`:
   * the name by which an operator knows the resource.
   */
  | {
      readonly verdict: 'done';
      readonly id: string;
      readonly certain: boolean;
      readonly called?: string;
      readonly facts?: Facts;
    }
  /** The resource is being created and not usable yet: observe it again later. */
  | { readonly verdict: 'pending'; readonly id: string; readonly facts?: Facts }
  /** The resource exists and is billed, but is not usable. */
  | { readonly verdict: 'failed'; readonly id: string; readonly detail: string; readonly facts?: Facts }
  /**
   * Not seen. Absence needs this verdict twice. `gone`: read by the id that the API gave, so no incomplete list can
   * hide it.
   * `strays`: a failed creation may have left an address, so the operator is asked.
   * `left`: the answer of the creation named the addresses that it left, so they belong to this spec: the facts for
   * `companions`.
   */
  | {
      readonly verdict: 'not_done';
      readonly gone?: true;
      readonly strays?: boolean;
      readonly left?: LeftBehind;
    }
  /** No documented read shows resources of this kind, whether the resource exists or not. */
  | { readonly verdict: 'unseen'; readonly reason: string; readonly candidates: readonly string[] }
  /** The reads permit no conclusion. `candidates` are live ids that an operator may choose from. */
  | { readonly verdict: 'unclear'; readonly reason: string; readonly candidates: readonly string[] };
