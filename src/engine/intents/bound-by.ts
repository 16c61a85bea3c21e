import type { DesiredResource } from '../../core/desired.ts';
import type { LeftBehind } from '../../core/evidence.ts';
import { partsOf } from '../../core/intent.ts';
import { digestOf } from '../../core/json.ts';
import { type ResourceKey, retiringKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Binding, Facts, Intent, KnownEffect, RecordedWrite, StateChange } from '../../core/state.ts';
import { makerOf, ownerOf, wasNamed } from '../claims/owner.ts';
import type { Run } from '../run.ts';
import { isReplay } from './question.ts';

interface Created {
  readonly id: string;
  readonly facts?: Facts | undefined;
  /** The key that the resource is bound to. */
  readonly under: ResourceKey;
  /** The operator named the resource. */
  readonly byOperator?: true;
  /** An earlier state may have created the server to replace another one. */
  readonly mayReplace?: boolean;
}

/** The key for the remains of a failed creation. If the creation should replace a resource, that resource keeps its key. */
export function remainsOf({ key, replaces }: Pick<Intent, 'key' | 'replaces'>, id: string): ResourceKey {
  return replaces === undefined ? key : retiringKey(key, id);
}

/** The binding of the created resource, and of the resources that came with it. */
export function boundBy(
  run: Run,
  intent: Intent,
  { id, facts, under, byOperator, mayReplace = false }: Created,
): [Extract<StateChange, { readonly type: 'bind' }>, ...StateChange[]] {
  const kind = run.kindOf(intent.kind);
  const subject = run.world.subjects.get(intent.key) ?? { key: intent.key, kind: intent.kind };
  // The facts of the answer are about the resource that the answer named.
  const answer = partsOf(intent).answer;
  const known = { ...(answer?.id === undefined || answer.id === id ? answer?.facts : {}), ...facts };
  // An update does not show whose resource it is.
  const recovered =
    intent.verb === 'create'
      ? isReplay(intent) && (mayReplace ? 'replacement' : true)
      : run.bindings.get(under)?.recovered;
  const binding: Binding = {
    key: under,
    kind: intent.kind,
    id,
    ...(intent.parentId === undefined ? {} : { parentId: intent.parentId }),
    ...kind.bind({
      subject,
      id,
      request: intent.request,
      asked: intent.entry?.value,
      facts: known,
      mayBeOlder: byOperator ?? isReplay(intent),
      world: run.world,
    }),
    protect: (isAskedBy(intent, subject.desired) ? subject.desired : intent.entry)?.protect ?? false,
    boundAt: run.deps.clock.now(),
    ...movedFrom(intent.entry),
    ...(recovered && { recovered }),
  };
  return [
    { type: 'bind', binding },
    ...recoveredIf(recovered, companionsOf(run, intent, id, known, under)),
    ...(factsOf(kind.name).repeats ? [{ type: 'next_incarnation', key: intent.key } as const] : []),
  ];
}

/** Whether the entry is the one that asked for the resource. An edited entry may protect the resource that was replaced. */
function isAskedBy(
  { basis, replaces, entry }: Intent,
  desired: DesiredResource | undefined,
): desired is DesiredResource {
  if (desired === undefined) return false;
  return replaces === undefined || entry === undefined || digestOf(desired.value) === basis;
}

/** The entry takes its resource back under the key that its `moved` names. */
export function movedFrom({ moved }: Pick<DesiredResource, 'moved'> = {}): Pick<Binding, 'formerKeys'> {
  return moved === undefined ? {} : { formerKeys: [moved] };
}

/**
 * Marks the bindings of resources that an idempotency key showed, and that no operator has confirmed. The mark of a
 * server says whether a replacement may have left another server.
 */
export function recoveredIf(
  recovered: Binding['recovered'] | false,
  changes: readonly StateChange[],
): readonly StateChange[] {
  if (!recovered) return changes;
  return changes.map((change) => {
    if (change.type !== 'bind') return change;
    const mark = factsOf(change.binding.kind).container ? recovered : true;
    return { ...change, binding: { ...change.binding, recovered: mark } };
  });
}

/** The fields of a creation that show which resources came with it. */
type Made = Pick<RecordedWrite, 'key' | 'kind' | 'request' | 'preimage' | 'entry'> &
  Pick<KnownEffect, 'answer'>;

/**
 * The resources that came with the created resource. A short list may suggest more resources: a resource that is
 * bound to another key, or that another key has created, did not come with this resource.
 */
export function companionsOf(
  run: Run,
  made: Made,
  id: string,
  facts: Facts,
  under = made.key,
): StateChange[] {
  const { key, kind, request, preimage, entry } = made;
  const asked = entry?.value;
  const { world } = run;
  const subject = { ...(world.subjects.get(key) ?? { kind }), key: under };
  const at = run.deps.clock.now();
  const named = wasNamed(made.answer, id);
  const came =
    run
      .kindOf(kind)
      .creation?.companions?.({ subject, id, request, asked, preimage, facts, named, world, at }) ?? [];
  return came
    .filter((each) => ownerOf(run, each, new Set([under])) === undefined && makerOf(run, each) === undefined)
    .map((binding) => ({ type: 'bind', binding }));
}

/** Binds an address that the answer of a failed creation named, and the next plan releases it. */
export function leftByFailed(run: Run, intent: Intent, left: LeftBehind | undefined): readonly StateChange[] {
  const id = partsOf(intent).answer?.id;
  return left === undefined || id === undefined
    ? []
    : companionsOf(run, intent, id, left, remainsOf(intent, id));
}
