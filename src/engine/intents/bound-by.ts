import type { Json } from '../../core/json.ts';
import type { LeftBehind } from '../../core/kind.ts';
import type { Ip } from '../../core/resources.ts';
import type { Binding, Intent, StateChange } from '../../core/state.ts';
import { claimsOn } from '../claims/claims.ts';
import type { Run } from '../run.ts';
import { makerOf, ownerOf, wasNamed } from './owner.ts';

/** The binding of the created resource, and of the resources that came with it. */
export function boundBy(run: Run, intent: Intent, id: string, facts: unknown): StateChange[] {
  const kind = run.kindOf(intent.kind);
  const subject = run.world.subjects.get(intent.key) ?? { key: intent.key, kind: intent.kind };
  // The facts of the answer are about the resource that the answer named.
  const answered = intent.resourceId === undefined || intent.resourceId === id ? intent.facts : undefined;
  const known = { ...(answered as object | undefined), ...(facts as object | undefined) };
  const at = run.deps.clock.now();
  const binding: Binding = {
    key: intent.key,
    kind: intent.kind,
    id,
    ...(intent.parentId === undefined ? {} : { parentId: intent.parentId }),
    ...kind.bind({
      subject,
      id,
      request: intent.request,
      asked: intent.entry,
      facts: known,
      world: run.world,
    }),
    protect: subject.desired?.protect ?? intent.protect ?? false,
    boundAt: at,
  };
  return [
    { type: 'bind', binding },
    ...companionsOf(run, intent, id, known),
    ...(kind.repeats ? [{ type: 'next_incarnation', key: intent.key } as const] : []),
  ];
}

/** The fields of a creation that show which resources came with it. */
type Made = Pick<
  Intent,
  'key' | 'kind' | 'request' | 'preimage' | 'entry' | 'resourceId' | 'ambiguous' | 'facts'
>;

/**
 * The resources that came with the created resource. A short list may suggest more resources: a resource that is
 * bound to another key, or that another key has created, did not come with this resource.
 */
export function companionsOf(run: Run, intent: Made, id: string, facts: Json): StateChange[] {
  const { key, kind, request, preimage, entry: asked } = intent;
  const { world } = run;
  const subject = world.subjects.get(key) ?? { key, kind };
  const at = run.deps.clock.now();
  const named = wasNamed(intent, id);
  const came =
    run.kindOf(kind).companions?.({ subject, id, request, asked, preimage, facts, named, world, at }) ?? [];
  return came
    .filter((each) => ownerOf(run, each, new Set([key])) === undefined && makerOf(run, each) === undefined)
    .map((binding) => ({ type: 'bind', binding }));
}

/**
 * Binds an address that the answer of a failed creation named, and the next plan releases it. One that `{reuse: true}`
 * may have taken from another client stays free, so that the next attempt takes it.
 */
export function leftByFailed(run: Run, intent: Intent, left: LeftBehind | undefined): readonly StateChange[] {
  if (left === undefined || intent.resourceId === undefined) return [];
  const bound = companionsOf(run, intent, intent.resourceId, { ...left });
  const isLeft = ({ id }: Ip) => left.addresses.some((each) => each.id === id);
  if (bound.length > 0) return bound;
  const holder = { is: 'released', by: 'file', formerKey: intent.key } as const;
  const claims = claimsOn(run, holder, { servers: [], addresses: run.world.ips.filter(isLeft) });
  return claims.map((claim) => ({ type: 'claim', claim }));
}
