import { z } from 'zod';
import { type Claim, objectName } from '../core/claims.ts';
import { StateError } from '../core/errors.ts';
import { effectOf, inStage } from '../core/intent.ts';
import type { Json } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import { command } from '../core/remedy.ts';
import type {
  Because,
  Binding,
  Ended,
  Intent,
  IntentOutcome,
  IntentPatch,
  JournalEntry,
  ProofRecord,
  Stage,
  StateChange,
  StateInfo,
} from '../core/state.ts';
import type { Row } from './sql-driver.ts';

/**
 * The records in the rows of either database. Purchases and deletions depend on them, so a damaged record is refused.
 * A later version may add fields: fields that this version does not know are kept.
 *
 * @throws StateError if a field that this version reads is missing, or has another type
 */
export function bindingIn({ key, body }: Row): Binding {
  return recordOf<Binding>(binding, body, `the binding of ${String(key)}`);
}

/** @throws StateError as `bindingIn` */
export function claimIn({ object, body }: Row): Claim {
  return recordOf<Claim>(claim, body, `the claim on ${String(object)}`);
}

/** @throws StateError as `bindingIn` */
export function intentIn({ id, body }: Row): Intent {
  return recordOf<Intent>(intent, body, `the write ${String(id)}`);
}

function recordOf<Kind>(schema: z.ZodType, body: unknown, called: string): Kind {
  const record = parsed(String(body));
  if (schema.safeParse(record).success) return record as Kind;
  throw new StateError(
    `The state is damaged: ${called} cannot be read. Nothing was written. Restore the state from a backup.`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const text = z.string();
const texts = z.array(text);
const number = z.number();
const flag = z.boolean();
const object = z.record(text, z.unknown());

const liveObject = { kind: text, id: text, parentId: text.optional(), identity: z.record(text, text) };

const binding = z.looseObject({
  ...liveObject,
  key: text,
  protect: flag,
  keep: flag,
  tainted: text.optional(),
  formerKeys: texts.optional(),
  boundAt: number,
});

const by = z.enum(['operator', 'file']);
const released = z.looseObject({
  ...{ is: z.literal('released'), by, formerKey: text, formerKeys: texts.optional() },
});
const found = z.looseObject({
  ...{ is: z.literal('found'), key: text, taskId: text.optional(), scope: text.optional() },
  ...{ askedFor: text.optional(), formerKeys: texts.optional() },
});
const holder = z.discriminatedUnion('is', [
  z.looseObject({
    ...{ is: z.literal('ignored'), by, formerKeys: texts.optional() },
    before: z.discriminatedUnion('is', [released, found]).optional(),
  }),
  released,
  found,
  z.looseObject({ is: z.literal('leftover'), formerKey: text }),
  z.looseObject({
    ...{ is: z.literal('unidentified'), key: text, incarnation: text.optional() },
    settled: z.literal(true).optional(),
  }),
  z.looseObject({ is: z.literal('baseline') }),
  z.looseObject({ is: z.literal('awaiting_approval'), digest: text }),
  z.looseObject({
    is: z.literal('approved'),
    digest: text,
    operations: texts.optional(),
    desired: text.optional(),
    before: texts.optional(),
  }),
  z.looseObject({
    is: z.literal('paused'),
    scope: z.enum(['spending', 'operation', 'everything']),
    ...{ kind: text, verb: text, code: text, reason: text, token: text, name: text.optional() },
    unpaid: z.literal(true).optional(),
  }),
]);

const claim = z.looseObject({ ...liveObject, holder, at: number, firstMissingAt: number.optional() });

const unconfirmed = z.looseObject({
  why: text,
  question: z.looseObject({ stage: z.enum(['asking', 'taken', 'fenced', 'open']), probes: number }),
});
const answer = z.looseObject({
  at: number,
  apiAt: number.optional(),
  id: text.optional(),
  facts: object,
  to: z.enum(['this_send', 'earlier_send', 'unknown_send']),
  end: z.enum(['reported', 'unreported', 'failed']),
});
const effect = { unconfirmed: unconfirmed.optional(), answer: answer.optional() };
const notSeenAt = number.optional();

const write = {
  ...{ id: text, key: text, kind: text, verb: text, incarnation: text, idempotencyKey: text },
  ...{ request: object, sentAs: text, basis: text, preimage: object, changes: z.array(z.unknown()) },
  ...{ attempt: number, sends: number, lost: number, dueAt: number, detail: text },
  ...{ lastSentAt: number, lastSentApiAt: number.nullable() },
  ...{ createdAt: number, firstSentAt: number, firstSentApiAt: number.nullable() },
  ...{ parentId: text.optional(), replaces: text.optional(), freed: text.optional() },
  ...{ recovers: text.optional(), spec: text.optional(), parts: texts.optional() },
  ...{ queuedAt: number.optional(), elsewhere: number.optional() },
};

const intent = z.discriminatedUnion('phase', [
  z.looseObject({
    ...write,
    phase: z.enum(['sending', 'waiting']),
    unconfirmed: unconfirmed.optional(),
    because: text.optional(),
  }),
  z.looseObject({ ...write, phase: z.literal('unknown'), unconfirmed, notSeenAt }),
  z.looseObject({ ...write, phase: z.literal('accepted'), answer, notSeenAt }),
  z.looseObject({
    ...write,
    phase: z.literal('superseded'),
    by: text,
    former: z.looseObject({ id: text.optional(), facts: object }),
  }),
  z.looseObject({
    ...{ ...write, ...effect },
    phase: z.literal('blocked'),
    blocked: z.looseObject({ code: text, reason: text, candidates: texts }),
  }),
  z.looseObject({
    ...{ ...write, ...effect },
    phase: z.literal('closed'),
    outcome: z.enum(['done', 'refused', 'absent', 'failed', 'abandoned', 'void']),
    closedAt: number,
  }),
]);

/** Of `states`. */
export const headColumns = 'lineage, serial, created_at, project_id, service';

/** The values in a row of either database, in the types of the program. */
export function infoOf(row: Row): StateInfo {
  return {
    lineage: String(row.lineage),
    serial: Number(row.serial),
    createdAt: Number(row.created_at),
    projectId: row.project_id === null ? null : Number(row.project_id),
    service: row.service === null ? null : String(row.service),
  };
}

/** The journal line in a row of either database. A line that no intent wrote has no `intentId`. */
export function journalEntryOf({ at, key, event, intent_id: intentId, data }: Row): JournalEntry {
  return {
    at: Number(at),
    key: String(key) as ResourceKey,
    event: String(event) as JournalEntry['event'],
    ...(intentId === null ? {} : { intentId: String(intentId) }),
    data: JSON.parse(String(data)) as Json,
  };
}

/** A note's value; `undefined` where there is no row. */
export function noteOf(row: Row | undefined): Json | undefined {
  return row === undefined ? undefined : (JSON.parse(String(row.value)) as Json);
}

/**
 * The data that each change writes into the journal. A line holds all data that is needed to make the change again, so
 * that `replay` of the journal builds the state. Every store builds its lines with this file, so that the stores
 * cannot differ.
 */
type JournalData =
  | { readonly intent: Intent }
  | { readonly patch: IntentPatch; readonly note?: Json }
  | { readonly outcome: IntentOutcome; readonly because?: Because; readonly detail: string }
  | { readonly binding: Binding }
  | { readonly gone: boolean; readonly reason: string }
  | { readonly incarnation: 'next' }
  | { readonly claim: Claim }
  | { readonly proof: ProofRecord }
  | { readonly reason: string };

/** The first line of an intent, with the whole intent, so that a replay of the journal needs no other record. */
export function begunEntry(intent: Intent): JournalEntry {
  return entry(intent.createdAt, intent, 'begun', { intent });
}

/** `sent` where the patch counts a send, `answered` where it moves the intent on, else a `note`. */
export function updatedEntry(intent: Intent, patch: IntentPatch, at: number, note?: Json): JournalEntry {
  return entry(at, intent, eventOf(intent, patch), note === undefined ? { patch } : { patch, note });
}

/** The last line of an intent. @param at wall time in ms */
export function closedEntry(intent: Intent, { text, ...how }: Ended, at: number): JournalEntry {
  return entry(at, intent, 'closed', { ...how, detail: text });
}

/** `intent`: the intent that ends together with the change. */
export function changeEntry(change: StateChange, at: number, intent?: Intent): JournalEntry {
  const of = (key: string) => ({ key: key as ResourceKey, id: intent?.id });
  switch (change.type) {
    case 'bind':
      return entry(at, of(change.binding.key), 'bound', { binding: change.binding });
    case 'release':
      return entry(at, of(change.key), 'released', { gone: change.gone, reason: change.reason });
    case 'next_incarnation':
      return entry(at, of(change.key), 'note', { incarnation: 'next' });
    case 'claim':
      return entry(at, of(objectName(change.claim)), 'claimed', { claim: change.claim });
    case 'unclaim':
      return entry(at, of(objectName(change.object)), 'unclaimed', { reason: change.reason });
    case 'proof':
      return entry(at, of(change.key), 'proof', { proof: change.proof });
  }
}

/** Copies the intent for its beginning. An intent may begin in any phase but the last. */
export function begun(intent: Intent): Intent {
  if (intent.phase === 'closed') {
    throw new StateError(`The intent ${intent.id} of ${intent.key} cannot begin closed. This is a bug.`);
  }
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

function entry(
  at: number,
  { key, id }: { readonly key: ResourceKey; readonly id: string | undefined },
  event: JournalEntry['event'],
  data: JournalData,
): JournalEntry {
  return { at, key, event, ...(id === undefined ? {} : { intentId: id }), data: data as unknown as Json };
}

/** The rules that every store keeps, with one wording. All end in `StateError`. */
export function refuseReadOnly(): never {
  throw new StateError('The state was opened for reading only, so nothing can be recorded in it.');
}

/** The store is used after its `close`. @throws StateError */
export function refuseClosedStore(): never {
  throw new StateError('The state is closed already. This is a bug, please report it.');
}

/** The ids in a state mean other resources in another project. @throws StateError */
export function refuseOtherProject(recorded: number, asked: number): never {
  throw new StateError(
    `The state belongs to project ${recorded}, not ${asked}. Use the token of project ${recorded}, ` +
      'or give this project a state of its own with --state.',
  );
}

/** The ids in a state mean nothing to another API, such as the emulator. @throws StateError */
export function refuseOtherService(recorded: string, asked: string): never {
  throw new StateError(
    `The state belongs to the API \`${recorded}\`, not to \`${asked}\`. Name another state with --state.`,
  );
}

/** A key has at most one open intent. @throws StateError */
export function refuseSecondIntent(open: Intent, asked: Intent): never {
  throw new StateError(
    `${asked.key} has an open write (${open.verb}, ${open.phase}, id ${open.id}). A new write (${asked.verb}) must wait for its end.`,
    { remedies: [command('status', [], { when: 'to see that write' })] },
  );
}

/** @throws StateError if the patch would close the intent: an end must also change bindings in one transaction */
export function checkPatch(intent: Intent, { stage }: IntentPatch): void {
  if ((stage as Stage | undefined)?.phase === 'closed') {
    throw new StateError(
      `The intent ${intent.id} of ${intent.key} is closed by closeIntent alone. This is a bug.`,
    );
  }
}

/** @param by the key that the object is bound to; `null`: it is claimed otherwise */
export function refuseSecondHolder(object: string, by: ResourceKey | null): never {
  throw new StateError(
    `The ${object} is ${by === null ? 'claimed already' : `bound to ${by}`}, and can have only one holder. This is a bug, please report it.`,
  );
}

/** The id of an intent is never used again, also after its end. @throws StateError */
export function refuseUsedId(id: string): never {
  throw new StateError(`There is an intent ${id} already. This is a bug, please report it.`);
}

/** The intent, if there is one and it is open. */
export function openIntent(id: string, intent: Intent | undefined): Intent {
  if (intent === undefined) {
    throw new StateError(`The state has no intent ${id}.`, {
      remedies: [command('history', [], { when: 'to see its writes' })],
    });
  }
  if (intent.phase === 'closed') {
    throw new StateError(
      `The intent ${id} of ${intent.key} is closed (${intent.outcome}) and cannot change.`,
    );
  }
  return intent;
}
