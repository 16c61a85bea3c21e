import { once } from '../core/once.ts';
import type { Blocked, Verb } from '../core/plan.ts';
import { type Draft, isDeletion } from './draft.ts';
import { guards } from './guards.ts';
import { entriesFromUnknown } from './moved-from.ts';
import type { Coded, GuardInput, Objection, PlanFacts } from './objections.ts';
import { capsBeyond, inOne } from './permits.ts';
import { isPurchase } from './purchases.ts';
import { matches } from './unmanaged.ts';

/**
 * The objections to the drafts, except for the caps, which count the remaining drafts. The remedy that permits a draft
 * has all edits in one: those that further guards need, and the caps that all permitted drafts together need.
 */
export function objectionsTo(drafts: readonly Draft[], input: GuardInput): ReadonlyMap<Draft, Blocked> {
  const facts = guardFacts(drafts, input);
  const found = new Map(drafts.map((draft) => [draft, objectionsIn(draft, input, facts)] as const));
  const possible = drafts.filter((draft) => {
    const [first] = found.get(draft) ?? [];
    return first === undefined || first.permit !== undefined;
  });
  const caps = once(() => capsBeyond(possible, input));
  return new Map(
    [...found].flatMap(([draft, [first, ...others]]) => {
      if (first === undefined) return [];
      const { permit, ...objection } = withReasonOf(others[0], first);
      if (permit === undefined) return [[draft, asBlocked(draft, objection)] as const];
      const further = [...others.flatMap((each) => each.permit ?? []), ...(isDeletion(draft) ? caps() : [])];
      const remedies = [...objection.remedies, inOne(permit, further)];
      return [[draft, asBlocked(draft, { ...objection, remedies })] as const];
    }),
  );
}

/** An objection to all changes says nothing about the resource: the next objection does. */
function withReasonOf(next: Objection | undefined, first: Coded & Objection): Coded & Objection {
  if (next?.permit === undefined || first.remedies.length > 0) return first;
  return { ...first, reason: `${first.reason}. Also: ${next.reason}`, remedies: next.remedies };
}

/** The objections of all guards; of the first guard alone if its objection has no permit. */
function objectionsIn(draft: Draft, input: GuardInput, facts: PlanFacts): (Coded & Objection)[] {
  const found: (Coded & Objection)[] = [];
  for (const { code, check } of guards) {
    const objection = check(draft, input, facts);
    const known = objection?.code ?? code;
    if (objection !== undefined && known !== undefined) found.push({ ...objection, code: known });
    if (found[0] !== undefined && found[0].permit === undefined) break;
  }
  return found;
}

/** The verb is that of the operation that the draft asks for. A replacement is an update. */
export function asBlocked({ subject: { key }, diff: { verdict } }: Draft, objection: Coded): Blocked {
  const asked = verdict.verdict === 'blocked' ? verdict.verb : verdict.verdict;
  return { key, verb: isVerb(asked) ? asked : 'update', ...objection };
}

function isVerb(verdict: string): verdict is Verb {
  return verdict === 'create' || verdict === 'delete' || verdict === 'adopt';
}

function guardFacts(drafts: readonly Draft[], { register, world }: GuardInput): PlanFacts {
  const buyers = () => drafts.flatMap(({ subject, diff }) => (isPurchase(subject, diff) ? [subject] : []));
  return {
    matches: once(() => matches(buyers(), register, world)),
    movedFromUnknown: once(() => entriesFromUnknown(world)),
  };
}
