import type { KindName, ResourceKey } from '../core/keys.ts';
import type { Diff, ResourceKind, Subject, Verdict, World } from '../core/kind.ts';
import type { Operation, Verb } from '../core/plan.ts';
import { type OperationId, operationId } from '../core/plan.ts';

/** One subject with what its diff says, before guards and order. */
export interface Draft {
  readonly subject: Subject;
  readonly kind: ResourceKind;
  readonly diff: Diff;
  /** Its server is replaced or made anew, so it is judged as if it were not there. */
  readonly renewed: boolean;
}

/** Diffs every subject. What lives in a server that is made anew is made anew with it. */
export function draftAll(kinds: ReadonlyMap<KindName, ResourceKind>, world: World): Draft[] {
  const first = [...world.subjects.values()].map((subject) => draftOne(kinds, world, subject));
  const renewed = new Set(
    first.filter(({ diff, subject }) => isRenewed(diff.verdict, subject)).map(({ subject }) => subject.key),
  );
  const leaving = new Set(
    first.filter(({ diff }) => diff.verdict.verdict === 'delete').map(({ subject }) => subject.key),
  );
  const after = withoutServers(world, kinds, renewed);
  return first.flatMap((draft) => {
    const { parent } = draft.subject;
    if (parent !== undefined && renewed.has(parent)) {
      const subject = after.subjects.get(draft.subject.key) ?? draft.subject;
      return [{ ...draftOne(kinds, after, subject), renewed: true }];
    }
    const goesWithServer = parent !== undefined && leaving.has(parent) && !draft.kind.outlivesParent;
    return goesWithServer ? [] : [draft];
  });
}

export function draftOne(kinds: ReadonlyMap<KindName, ResourceKind>, world: World, subject: Subject): Draft {
  const kind = kinds.get(subject.kind);
  if (kind === undefined) throw new Error(`No such kind: ${subject.kind}`);
  return { subject, kind, diff: kind.diff(subject, world.observed.get(subject.key), world), renewed: false };
}

/** The operations that a verdict stands for, without their order. */
export function operationsOf({ subject, kind, diff }: Draft): Operation[] {
  const { verdict } = diff;
  const target = subject.binding?.id;
  switch (verdict.verdict) {
    case 'create':
      return [operation(subject, kind, 'create', verdict.changes, { reason: verdict.lost })];
    case 'update':
      return [operation(subject, kind, 'update', verdict.changes, { target })];
    case 'delete':
      return [operation(subject, kind, 'delete', verdict.changes, { target })];
    case 'adopt':
      return [operation(subject, kind, 'adopt', [], { target: verdict.target, reason: verdict.reason })];
    case 'replace': {
      const { changes, reason } = verdict;
      const [remove, create] = (['delete', 'create'] as const).map((verb) => operationId(verb, subject.key));
      return [
        operation(subject, kind, 'delete', changes, { target, reason, replacement: create }),
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
  },
): Operation {
  return {
    id: operationId(verb, subject.key),
    key: subject.key,
    kind: subject.kind,
    verb,
    changes,
    needs: [],
    spend:
      !kind.billed || verb === 'update' || verb === 'adopt' ? 'none' : verb === 'delete' ? 'reduces' : 'adds',
    risk: verb === 'delete' ? 'destructive' : kind.billed && verb === 'create' ? 'billed' : 'safe',
    ...(extra.target === undefined ? {} : { target: extra.target }),
    ...(extra.reason === undefined ? {} : { reason: extra.reason }),
    ...(extra.replacement === undefined ? {} : { replacement: extra.replacement }),
  };
}

function isRenewed(verdict: Verdict, { kind, binding, desired }: Subject): boolean {
  if (kind !== 'server') return false;
  if (verdict.verdict === 'replace') return verdict.allowed && !binding?.protect && !desired?.protect;
  return verdict.verdict === 'create' && verdict.lost !== undefined;
}

/** The world as it will be once the given servers are gone. */
function withoutServers(
  world: World,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  servers: ReadonlySet<ResourceKey>,
): World {
  const goes = ({ key, parent, kind }: Subject) =>
    servers.has(key) || (parent !== undefined && servers.has(parent) && !kinds.get(kind)?.outlivesParent);
  const gone = new Set([...world.subjects.values()].filter(goes).map(({ key }) => key));
  return {
    ...world,
    subjects: new Map(
      [...world.subjects].map(([key, subject]) => {
        const { binding: _binding, ...unbound } = subject;
        return [key, gone.has(key) ? unbound : subject];
      }),
    ),
    observed: new Map([...world.observed].filter(([key]) => !gone.has(key))),
    idOf: (key) => (gone.has(key) ? undefined : world.idOf(key)),
  };
}
