import { type Claim, objectName } from '../core/claims.ts';
import { StateError } from '../core/errors.ts';
import { effectOf, inStage } from '../core/intent.ts';
import type { Json } from '../core/json.ts';
import type {
  Because,
  Binding,
  Ended,
  Intent,
  IntentOutcome,
  IntentPatch,
  JournalEntry,
  ProofRecord,
  StateChange,
} from '../core/state.ts';
import { checkBegin } from './refusals.ts';

/**
 * The data that each change writes into the journal. A line holds all data that is needed to make the change again, so
 * that `replay` of the journal builds the state. Every store builds its lines with this file, so that the stores
 * cannot differ.
 */
export type JournalData =
  | { readonly intent: Intent }
  | { readonly patch: IntentPatch; readonly note?: Json }
  | { readonly outcome: IntentOutcome; readonly because?: Because; readonly detail: string }
  | { readonly binding: Binding }
  | { readonly gone: boolean; readonly reason: string }
  | { readonly incarnation: 'next' }
  | { readonly claim: Claim }
  | { readonly proof: ProofRecord }
  | { readonly reason: string };

export function begunEntry(intent: Intent): JournalEntry {
  return entry(intent.createdAt, intent, 'begun', { intent });
}

/** `sent` where the patch counts a send, `answered` where it moves the intent on, else a `note`. */
export function updatedEntry(intent: Intent, patch: IntentPatch, at: number, note?: Json): JournalEntry {
  return entry(at, intent, eventOf(intent, patch), note === undefined ? { patch } : { patch, note });
}

export function closedEntry(intent: Intent, { text, ...how }: Ended, at: number): JournalEntry {
  return entry(at, intent, 'closed', { ...how, detail: text });
}

/** `intent`: the intent that ends together with the change. */
export function changeEntry(change: StateChange, at: number, intent?: Intent): JournalEntry {
  const line = (key: JournalEntry['key'], event: JournalEntry['event'], data: JournalData): JournalEntry => ({
    at,
    key,
    event,
    ...(intent === undefined ? {} : { intentId: intent.id }),
    data: data as unknown as Json,
  });
  switch (change.type) {
    case 'bind':
      return line(change.binding.key, 'bound', { binding: change.binding });
    case 'release':
      return line(change.key, 'released', { gone: change.gone, reason: change.reason });
    case 'next_incarnation':
      return line(change.key, 'note', { incarnation: 'next' });
    case 'claim':
      return line(objectName(change.claim) as JournalEntry['key'], 'claimed', { claim: change.claim });
    case 'unclaim':
      return line(objectName(change.object) as JournalEntry['key'], 'unclaimed', { reason: change.reason });
    case 'proof':
      return line(change.key, 'proof', { proof: change.proof });
  }
}

/** Copies the intent for its beginning. Rejects an intent that is already closed. */
export function begun(intent: Intent): Intent {
  checkBegin(intent);
  validTime(intent.createdAt, `The intent ${intent.id}`);
  return throughJson(intent, `The intent ${intent.id}`);
}

/** The intent after its end. */
export function ended(intent: Intent, { text, ...how }: Ended, at: number): Intent {
  const effect = how.outcome === 'void' ? {} : effectOf(intent);
  const stage = { phase: 'closed', ...how, closedAt: at, ...effect } as const;
  return inStage({ ...intent, detail: text }, stage);
}

/**
 * Copies a value through JSON: the value that a store returns must not depend on the store, nor on later changes that
 * the caller makes to the value.
 */
export function throughJson<T>(value: T, what: string): T {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new StateError(`${what} cannot be recorded: it is not JSON. This is a bug, please report it.`, {
      cause,
    });
  }
  if (text === undefined) {
    throw new StateError(`${what} cannot be recorded: it has no value. This is a bug, please report it.`);
  }
  return JSON.parse(text) as T;
}

/** Checks a wall time. A time that is not a number would be stored as nothing, and sort before all other times. */
export function validTime(at: number, what: string): number {
  if (Number.isFinite(at)) return at;
  throw new StateError(`${what} has the time ${at}, which is no time. This is a bug, please report it.`);
}

function eventOf(
  { phase }: Intent,
  { sends, lastSentAt, requestId, stage }: IntentPatch,
): JournalEntry['event'] {
  if (sends !== undefined || lastSentAt !== undefined) return 'sent';
  return requestId !== undefined || (stage !== undefined && stage.phase !== phase) ? 'answered' : 'note';
}

function entry(at: number, intent: Intent, event: JournalEntry['event'], data: JournalData): JournalEntry {
  return { at, key: intent.key, event, intentId: intent.id, data: data as unknown as Json };
}
