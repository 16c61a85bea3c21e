import { type DesiredResource, nameInSpec } from '../core/desired.ts';
import { childKey, comesWithServer, nounOf, type ResourceKey, retiringKey } from '../core/keys.ts';
import type { Diff, ResourceKind, Seen, Subject, Verdict, World } from '../core/kind.ts';
import { factsOf, type KindName } from '../core/kind-facts.ts';
import type { Change, Operation, Spend, Traffic, Verb, Warning } from '../core/plan.ts';
import { type OperationId, operationId } from '../core/plan.ts';
import { type Remedy, wayToForget } from '../core/remedy.ts';
import { createWorld } from '../core/world.ts';

/** One subject with the result of its diff, before guards and order. */
export interface Draft {
  readonly subject: Subject;
  readonly kind: ResourceKind;
  readonly diff: Diff;
  /** The entry that names the resource now. */
  readonly leftTo?: ResourceKey;
  /** The key under which the resource is deleted: by then, its server is replaced, and retires. */
  readonly retiresAs?: ResourceKey;
}

/** Releases the resource: it stays, and no key is bound to it any more. A destroy does not know the entries. */
export function keeping(
  { subject: { key, desired }, kind: { billing } }: Pick<Draft, 'subject' | 'kind'>,
  { settings }: World,
  destroy = false,
): Remedy {
  const when =
    billing.billed === true
      ? 'to keep it, no longer managed and still billed'
      : 'to keep it, no longer managed';
  return wayToForget(key, { isDeclared: destroy || desired !== undefined, when, prune: settings.prune });
}

/** A binding that ends without a write. */
export interface Release {
  readonly key: ResourceKey;
  /** The absence of the resource is confirmed first. */
  readonly gone: boolean;
  readonly reason: string;
}

export function releaseOf({
  subject: { key },
  diff: { verdict },
}: Pick<Draft, 'subject' | 'diff'>): Release[] {
  if (verdict.verdict !== 'release') return [];
  const { gone, reason } = verdict;
  return [{ key, gone, reason }];
}

/**
 * Diffs every subject, in the order of keys. The diff of a resource inside a replaced server assumes that the
 * resource does not exist. Of the resources inside a deleted server, only those that outlive the server
 * have a draft.
 *
 * @param held servers that remain unchanged, regardless of their diff
 */
export function draftAll(
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
  held: ReadonlySet<ResourceKey>,
): Draft[] {
  const subjects = [...world.subjects.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  const first = subjects.map((subject) => draftOne(kinds, world, subject));
  const keysOf = (drafts: readonly Draft[]) => new Set(drafts.map(({ subject }) => subject.key));
  const renewed = keysOf(first.filter((draft) => isRenewed(draft) && !held.has(draft.subject.key)));
  const leaving = keysOf(first.filter((draft) => isLeaving(draft, world)));
  const given = givenUp(first, world);
  const after = renewed.size === 0 ? world : withoutServers(world, renewed);
  const replaced = new Map(first.map((draft) => [draft.subject.key, draft] as const));
  const drafts = first.flatMap((draft): Draft[] => {
    const { parent, key } = draft.subject;
    const namedBy = given.get(key);
    const owner = namedBy ?? (parent === undefined ? undefined : given.get(parent));
    if (owner !== undefined) {
      const goesAlong = namedBy === undefined && owner.managed && !comesWithServer(draft.subject);
      return draft.subject.binding === undefined || goesAlong ? [] : [leftTo(owner, draft, namedBy)];
    }
    if (parent === undefined) return [draft];
    if (renewed.has(parent)) {
      const inside = draftOne(
        kinds,
        after,
        after.subjects.get(key) ?? draft.subject,
        world.observed.get(key),
      );
      return [retiring(inside, replaced.get(parent))];
    }
    const waits = held.has(parent) && world.subjects.get(parent)?.desired !== undefined;
    if (waits && comesWithServer(draft.subject))
      return [{ ...draft, diff: { verdict: { verdict: 'unchanged' } } }];
    return leaving.has(parent) && !comesWithServer(draft.subject) ? [] : [draft];
  });
  return withoutAdopted(drafts);
}

/** Another entry of the server adopts the resource, such as a network interface whose network has two names. */
function withoutAdopted(drafts: readonly Draft[]): Draft[] {
  const nameOf = ({ kind, parent }: Subject, id = '') => `${parent} ${kind} ${id}`;
  const takers = new Map(
    drafts.flatMap(({ subject, diff: { verdict } }) =>
      verdict.verdict === 'adopt' && subject.parent !== undefined
        ? [[nameOf(subject, verdict.target), subject.key] as const]
        : [],
    ),
  );
  return drafts.map((draft) => {
    const { subject, diff } = draft;
    const taker = takers.get(nameOf(subject, subject.binding?.id));
    if (diff.verdict.verdict !== 'delete' || taker === undefined) return draft;
    const reason = `${subject.key} is released: ${taker} is the same resource`;
    const verdict: Verdict = { verdict: 'release', gone: false, reason };
    return { ...draft, diff: { verdict } };
  });
}

/**
 * The resources that another entry names, by key: a resource that has left the spec, and an address that was created
 * with a server. Without this rule, the resource would be deleted, or released with its server.
 */
function givenUp(drafts: readonly Draft[], world: World): ReadonlyMap<ResourceKey, DesiredResource> {
  const named = new Map(
    drafts.flatMap(({ subject: { key, kind, parent, desired } }) => {
      if (parent !== undefined || desired === undefined) return [];
      // An entry that is bound to another resource names its id all the same. A list may lack the name of an entry.
      const ids = [desired.id, world.idOf(key)].filter((id) => id !== undefined);
      const name = nameInSpec(desired);
      const names = [...ids.map(String), ...(name === undefined ? [] : [`named ${name}`])];
      return names.map((each) => [`${kind} ${each}`, desired] as const);
    }),
  );
  return new Map(
    drafts.flatMap(({ subject }) => {
      const { key, kind, desired, binding } = subject;
      const isLeft = desired === undefined || comesWithServer(subject);
      if (!isLeft || binding === undefined) return [];
      const { id, identity } = binding;
      const owner = named.get(`${kind} ${id}`) ?? named.get(`${kind} named ${identity.name}`);
      return owner === undefined ? [] : [[key, owner] as const];
    }),
  );
}

/** @param namedBy the entry that names the resource itself, and not its server */
function leftTo(owner: DesiredResource, draft: Draft, namedBy: DesiredResource | undefined): Draft {
  const { subject } = draft;
  const { key, kind, binding } = subject;
  const { managed } = owner;
  const noun = nounOf(kind);
  // The adoption by the entry releases the previous key, with the address that came with the server.
  if (managed && (namedBy === undefined || !comesWithServer(subject))) {
    const named = namedBy === undefined ? 'its server' : `${noun} ${binding?.id}`;
    const message = `the binding ends: ${owner.key} names ${named} now. Nothing is deleted`;
    return {
      ...draft,
      leftTo: owner.key,
      diff: { verdict: { verdict: 'unchanged' }, warnings: [{ code: 'released', key, message }] },
    };
  }
  const says = managed ? '' : ' with `managed: false`';
  const reason = `${key} is released: ${owner.key} names the resource${says}`;
  const { knownBy = '' } = factsOf(kind);
  const name = binding?.identity[knownBy] ?? binding?.id;
  return {
    ...draft,
    leftTo: owner.key,
    diff: {
      verdict: { verdict: 'release', gone: false, reason },
      leftBilled:
        draft.kind.billing.billed === true && !managed
          ? [`${noun} ${name} stays billed: ${owner.key} is not managed`]
          : [],
    },
  };
}

/**
 * The address of a replaced server is deleted after the new server exists. The address stays bound until then, so it is
 * not released before either.
 */
function retiring(draft: Draft, server: Draft | undefined): Draft {
  const { subject, diff } = draft;
  const { parent, key, binding } = subject;
  if (server?.diff.verdict.verdict !== 'replace' || parent === undefined || !comesWithServer(subject))
    return draft;
  if (diff.verdict.verdict === 'release' && !diff.verdict.gone)
    return { ...draft, diff: { verdict: { verdict: 'unchanged' }, leftBilled: diff.leftBilled ?? [] } };
  const retired = retiringKey(parent, binding?.parentId ?? '');
  return { ...draft, retiresAs: childKey(retired, key.slice(parent.length + 1)) };
}

/** @param replaced the observation of the resource in the server that is replaced */
export function draftOne(
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
  subject: Subject,
  replaced?: Seen,
): Draft {
  const kind = kinds.get(subject.kind);
  if (kind === undefined) throw new Error(`Unknown kind: ${subject.kind}`);
  const diff = kind.diff(subject, world.observed.get(subject.key), world, replaced);
  return reportDrift({ subject, kind, diff }, world);
}

/** The resource is deleted or replaced. */
export function isDeletion({ diff: { verdict } }: Draft): boolean {
  return verdict.verdict === 'delete' || verdict.verdict === 'replace';
}

/** The key of the draft's operations. */
export function operatedKey({ subject, retiresAs }: Draft): ResourceKey {
  return retiresAs ?? subject.key;
}

/** The spec asks for its creation, whether the creation is possible or not. */
export function isToBeMade({ diff: { verdict } }: Pick<Draft, 'diff'>): boolean {
  return verdict.verdict === 'create' || (verdict.verdict === 'blocked' && verdict.verb === 'create');
}

/** A server that will be replaced: the resources inside it are created again. */
export function isRenewed({ subject, diff: { verdict } }: Draft): boolean {
  if (!factsOf(subject.kind).container) return false;
  return verdict.verdict === 'replace' || (verdict.verdict === 'create' && verdict.lost !== undefined);
}

/** The operations of a verdict, without their order. */
export function operationsOf({ subject, kind, diff, retiresAs }: Draft): Operation[] {
  const { verdict } = diff;
  const target = subject.binding?.id;
  switch (verdict.verdict) {
    case 'create':
      return [
        operation(subject, kind, 'create', verdict.changes, {
          ...diff,
          reason: verdict.lost,
          ...causeOf(verdict.lost !== undefined),
        }),
      ];
    case 'update':
      return [
        operation(subject, kind, 'update', verdict.changes, {
          ...diff,
          target,
          loses: verdict.loses,
          ...causeOf(verdict.cause === 'drift'),
        }),
      ];
    case 'delete':
      return [
        operation({ ...subject, key: retiresAs ?? subject.key }, kind, 'delete', verdict.changes, { target }),
      ];
    case 'adopt':
      return [operation(subject, kind, 'adopt', [], { target: verdict.target, reason: verdict.reason })];
    case 'replace': {
      const { changes, reason, order } = verdict;
      const { key } = subject;
      // From the moment when the new resource exists, the key is its key.
      const leaving = order === 'delete_first' ? key : retiringKey(key, target ?? '');
      const [remove, create] = [operationId('delete', leaving), operationId('create', key)];
      return [
        operation({ ...subject, key: leaving }, kind, 'delete', changes, {
          target,
          reason,
          replacement: create,
        }),
        operation(subject, kind, 'create', changes, { reason, replacement: remove }),
      ];
    }
    case 'unchanged':
    case 'release':
    case 'blocked':
      return [];
  }
}

function operation(
  subject: Subject,
  kind: ResourceKind,
  verb: Verb,
  changes: Operation['changes'],
  extra: {
    readonly target?: string | undefined;
    readonly reason?: string | undefined;
    readonly replacement?: OperationId | undefined;
    readonly traffic?: Traffic | undefined;
    readonly spend?: Spend | undefined;
    readonly loses?: string | undefined;
    readonly cause?: 'drift' | undefined;
  },
): Operation {
  const spend = extra.spend ?? spendOf(kind, verb);
  return {
    id: operationId(verb, subject.key),
    key: subject.key,
    kind: subject.kind,
    verb,
    changes: verb === 'create' ? asWritten(changes, subject.desired?.fields) : changes,
    needs: [],
    spend,
    risk:
      verb === 'delete' || extra.loses !== undefined ? 'destructive' : spend === 'adds' ? 'billed' : 'safe',
    ...(extra.target === undefined ? {} : { target: extra.target }),
    ...(extra.reason === undefined ? {} : { reason: extra.reason }),
    ...(extra.replacement === undefined ? {} : { replacement: extra.replacement }),
    ...(extra.traffic === undefined ? {} : { traffic: extra.traffic }),
    ...(extra.loses === undefined ? {} : { loses: extra.loses }),
    ...(extra.cause === undefined ? {} : { cause: extra.cause }),
  };
}

/** In the order of the fields in the spec. A field that the spec leaves out, such as the name, comes first. */
function asWritten(changes: readonly Change[], fields: DesiredResource['fields'] = {}): readonly Change[] {
  const placeOf = ({ path }: Change) => fields[path] ?? [0, 0];
  return [...changes].sort((one, other) => {
    const [[line, column], [otherLine, otherColumn]] = [placeOf(one), placeOf(other)];
    return line - otherLine || column - otherColumn;
  });
}

function causeOf(drifted: boolean): Pick<Operation, 'cause'> {
  return drifted ? { cause: 'drift' } : {};
}

function spendOf({ billing: { billed } }: ResourceKind, verb: Verb): Spend {
  if (!billed || verb === 'update' || verb === 'adopt') return 'none';
  return verb === 'delete' ? 'reduces' : 'adds';
}

/** `drift: report`: changes outside vdcsync are reported and left unchanged; new changes in the spec are applied. */
function reportDrift(draft: Draft, world: World): Draft {
  const { verdict, warnings = [] } = draft.diff;
  if (world.settings.drift === 'correct') return draft;
  const lost = verdict.verdict === 'create' ? verdict.lost : undefined;
  const moved =
    verdict.verdict === 'update' && verdict.cause === 'drift'
      ? verdict.changes.map(difference).join(', ')
      : lost;
  if (moved === undefined) return draft;
  const warning: Warning = {
    code: 'drift',
    key: draft.subject.key,
    message: `differs from the spec: ${moved}`,
  };
  const pending = draft.diff.pending ? { pending: true as const } : {};
  return {
    ...draft,
    diff: { verdict: { verdict: 'unchanged' }, warnings: [...warnings, warning], ...pending },
  };
}

function difference({ path, from, to }: Change): string {
  const long = [from, to].some((value) => typeof value === 'object' && value !== null);
  return long ? path : `${path} is ${JSON.stringify(from)}, not ${JSON.stringify(to)}`;
}

/**
 * A server that is deleted, that is gone and is not created again, or that is released with all resources inside it.
 */
function isLeaving({ subject, diff: { verdict } }: Draft, world: World): boolean {
  if (!factsOf(subject.kind).container) return false;
  if (subject.desired?.managed === false) return true;
  if (verdict.verdict === 'delete') return true;
  return verdict.verdict === 'unchanged' && subject.binding !== undefined && !world.isThere(subject.key);
}

/** The future world, without the given servers. */
function withoutServers(world: World, servers: ReadonlySet<ResourceKey>): World {
  const goes = ({ key, parent, kind }: Subject) =>
    servers.has(key) || (parent !== undefined && servers.has(parent) && !comesWithServer({ kind, parent }));
  const gone = new Set([...world.subjects.values()].filter(goes).map(({ key }) => key));
  return createWorld({
    ...world,
    subjects: new Map(
      [...world.subjects].map(([key, subject]) => {
        const { binding: _binding, ...unbound } = subject;
        return [key, gone.has(key) ? unbound : subject];
      }),
    ),
    observed: new Map([...world.observed].filter(([key]) => !gone.has(key))),
  });
}
