import type { AppliedValues, PriceSource } from '../../core/catalogue.ts';
import { objectName } from '../../core/claims.ts';
import { isUnconfirmed, effectOf as knownEffect, partsOf, sentByApi } from '../../core/intent.ts';
import { member } from '../../core/json.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf, type KindName } from '../../core/kind-facts.ts';
import type { ServerTypeId } from '../../core/resources.ts';
import type { Binding, Intent, JournalEntry } from '../../core/state.ts';

/** A moment by the API's clock that is known within bounds, in ms: an effect lies between a request and its answer. */
export interface Bounds {
  readonly earliest: number;
  readonly latest: number;
}

/** The time in which a live object costs money, as far as the state knows. */
export interface BilledSpan {
  readonly key: ResourceKey;
  /** `known`: the object was older when the state began to know it. */
  readonly began: 'created' | 'known';
  /** The object since each change: the first one counts from the beginning. */
  readonly versions: readonly { readonly since: Bounds; readonly binding: Billable }[];
  /** `gone`: a read showed its absence. `released`: it still exists and is billed, but the state does not follow it. */
  readonly end: { readonly at: Bounds; readonly how: 'deleted' | 'gone' | 'released' } | undefined;
}

/** The fields of a binding that decide a price. */
export type Billable = Pick<Binding, 'key' | 'kind' | 'id' | 'parentId' | 'identity'> & AppliedValues;

export interface BilledTime {
  readonly spans: readonly BilledSpan[];
  /** Creations whose effect is not known: each of them may cost money. */
  readonly unconfirmed: readonly ResourceKey[];
}

type Open = { -readonly [Name in keyof BilledSpan]: BilledSpan[Name] } & {
  readonly creation?: string | undefined;
  /** The last moment at which a write proved that the object exists. */
  provenAt: number;
  /** From then on, a change may have taken effect whose answer was lost. */
  doubtedSince?: number | undefined;
};

/**
 * The billed time of each live object, by its own id, because several keys may have named it in turn.
 *
 * @param journal oldest line first
 * @assumption A74
 */
export function billedTime(journal: Iterable<JournalEntry>, intents: readonly Intent[]): BilledTime {
  const byId = new Map(intents.map((intent) => [intent.id, intent]));
  const deletions = Map.groupBy(
    intents.filter(({ verb }) => verb === 'delete'),
    ({ key }) => key,
  );
  const spans: Open[] = [];
  const open = new Map<string, Open>();
  const named = new Map<ResourceKey, string>();
  let shift: Bounds = { earliest: 0, latest: 0 };
  for (const { at, key, event, intentId, data } of journal) {
    const intent = byId.get(intentId ?? '');
    // The API's clock may differ from the local one, which an operator may also set in the meantime.
    if (intent !== undefined) shift = shiftOf(intent);
    const now = { earliest: at + shift.earliest, latest: at + shift.latest };
    const when = intent === undefined ? now : effectOf(intent, now.latest);
    if (event === 'bound') {
      const binding = member(data, 'binding') as unknown as Binding;
      const name = objectName(binding);
      // Another object takes the key, and the state does not know whether the released ones still exist.
      for (const each of spans)
        if (each.end?.how === 'released' && each.end.at.latest === now.latest && isWithin(key, each.key))
          each.end = { at: sinceProof(each, now), how: 'released' };
      named.set(key, name);
      const span = open.get(name);
      // The creation of a successor also binds the resources that retire.
      const isIts = intent !== undefined && isWithin(intent.key, key);
      const creation = isIts && madeBy(intent, binding.kind) ? intent.id : undefined;
      // The API may use an id again: under another address, or after another creation, it belongs to another object.
      const isAnother =
        span !== undefined &&
        (creation === undefined
          ? intent === undefined && !isSameObject(span, binding)
          : creation !== span.creation);
      if (isAnother) span.end = { at: sinceProof(span, now), how: 'gone' };
      if (span === undefined || isAnother) {
        const began = creation === undefined ? 'known' : 'created';
        const since = began === 'created' ? when : now;
        const versions = [{ since, binding }];
        const made: Open = { key, began, versions, end: undefined, creation, provenAt: since.latest };
        open.set(name, made);
        spans.push(made);
        continue;
      }
      span.key = key;
      span.end = undefined;
      if (isIts) span.provenAt = when.latest;
      if (member(binding.applied, 'doubted') !== undefined) {
        span.doubtedSince ??= when.earliest;
        continue;
      }
      const { earliest, latest } = intent?.verb === 'update' ? when : now;
      const since = { earliest: Math.min(earliest, span.doubtedSince ?? earliest), latest };
      span.doubtedSince = undefined;
      span.versions = [...span.versions, { since, binding }];
    } else if (event === 'released') {
      const name = named.get(key) ?? '';
      const span = open.get(name);
      if (span === undefined) continue;
      const isGone = member(data, 'gone') === true;
      if (isGone) open.delete(name);
      if (!isGone) span.end = { at: now, how: 'released' };
      else if (intent?.verb === 'delete')
        span.end = {
          at: { ...when, earliest: deletedSince(intent, when, deletions.get(intent.key) ?? []) },
          how: 'deleted',
        };
      else span.end = { at: sinceProof(span, now), how: 'gone' };
    }
  }
  const bound = new Set(spans.flatMap(({ versions }) => versions.map(({ binding }) => objectName(binding))));
  return {
    spans: [...spans, ...intents.flatMap((intent) => unboundSpan(intent, bound))],
    unconfirmed: intents.flatMap((intent) => {
      const isOpen = intent.phase !== 'closed' && intent.verb === 'create';
      return isOpen && isUnconfirmed(intent) && knownEffect(intent).answer?.id === undefined
        ? [intent.key]
        : [];
    }),
  };
}

/**
 * The API's clock minus the local one, when the write was first sent and when its answer was recorded. A machine that was
 * suspended in between records an old answer, and a local clock may have been set.
 */
function shiftOf(intent: Intent): Bounds {
  const { answer } = knownEffect(intent);
  const sent = sentByApi(intent) - intent.firstSentAt;
  const answered = answer?.apiAt === undefined ? sent : answer.apiAt - answer.at;
  return { earliest: Math.min(sent, answered), latest: Math.max(sent, answered) };
}

/** A `Date` header has whole seconds, so the moment may be up to a second later. */
const dateUnitMs = 1_000;

/** The catalogue with the types that the state has recorded: a price list needs only their names and ids. */
export function withRecordedTypes(
  { types, pricing }: PriceSource['catalogue'],
  { spans }: BilledTime,
): PriceSource['catalogue'] {
  const known = new Set<unknown>(types.flatMap(({ id, name }) => [id, name]));
  const recorded = spans.flatMap(({ versions }) =>
    versions.flatMap(({ binding: { applied } }) => {
      const name = member(member(applied, 'entry'), 'server_type');
      const id = Number(member(member(applied, 'body'), 'server_type_id') ?? name) as ServerTypeId;
      if (name === undefined || known.has(name) || known.has(id)) return [];
      return [{ id, name: String(name), pricing_mode: 'other', gpu: false }];
    }),
  );
  return { types: [...types, ...recorded], pricing };
}

/** When a write took effect: a deletion with a task at its end, other writes at their answer. */
function effectOf(intent: Intent, ended: number): Bounds {
  const { answer } = knownEffect(intent);
  // The first send of an update may have taken effect without being stored under its key.
  const isOnly = intent.verb !== 'update' || intent.sends < 2;
  const isOwn = answer?.to === 'this_send' && answer.apiAt !== undefined && isOnly;
  const first = sentByApi(intent);
  const earliest = isOwn ? Math.max(intent.lastSentAt + shiftOf(intent).earliest, first) : first;
  const isLong = answer?.taskId !== undefined || answer?.end !== 'reported';
  const atEnd = answer?.apiAt === undefined || (intent.verb !== 'create' && isLong);
  return { earliest, latest: Math.max(earliest, (atEnd ? ended : answer.apiAt) + dateUnitMs) };
}

/** If the API did not accept the deletion, an earlier one whose answer was lost may have taken effect. */
function deletedSince(deletion: Intent, { earliest }: Bounds, ofKey: readonly Intent[]): number {
  if (partsOf(deletion).answer?.to === 'this_send') return earliest;
  const sent = ofKey.filter(
    (each) => each.incarnation === deletion.incarnation && partsOf(each).outcome !== 'refused',
  );
  return Math.min(earliest, ...sent.map(sentByApi));
}

/** Whether the write created the object. A server that reuses an address may take one that is older. */
function madeBy(intent: Intent | undefined, kind: KindName): boolean {
  if (intent?.verb !== 'create' || intent.recovers !== undefined) return false;
  const isNew = kind === intent.kind || member(member(intent.request.body, 'public_ipv4'), 'new') === true;
  return isNew && knownEffect(intent).answer?.to !== 'unknown_send';
}

function isWithin(key: ResourceKey, inner: ResourceKey): boolean {
  return inner === key || takeApart(inner).parent === key;
}

function sinceProof({ provenAt }: Open, now: Bounds): Bounds {
  return { ...now, earliest: provenAt };
}

function isSameObject({ versions }: BilledSpan, { identity }: Billable): boolean {
  const known = Object.entries(versions.at(-1)?.binding.identity ?? {});
  return known.every(([field, value]) => (identity[field] ?? value) === value);
}

/** Of a creation that the API has accepted, and that is not bound: its task still runs, or has failed. */
function unboundSpan(intent: Intent, bound: ReadonlySet<string>): readonly BilledSpan[] {
  const { key, kind, verb, parentId, request, entry } = intent;
  const { answer } = knownEffect(intent);
  if (verb !== 'create' || answer?.id === undefined || !madeBy(intent, kind)) return [];
  const applied = { body: request.body ?? null, entry: entry?.value ?? null };
  const object = { key, kind, id: answer.id, identity: {}, applied };
  const binding = parentId === undefined ? object : { ...object, parentId };
  if (bound.has(objectName(binding)) || factsOf(kind).unlisted) return [];
  const since = effectOf(intent, answer.at);
  const end =
    intent.phase === 'closed'
      ? ({
          at: { earliest: since.earliest, latest: intent.closedAt + shiftOf(intent).latest + dateUnitMs },
          how: 'gone',
        } as const)
      : undefined;
  return [{ key, began: 'created', versions: [{ since, binding }], end }];
}
