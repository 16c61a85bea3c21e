import { type Opening, openingFor } from '../core/calendar.ts';
import type { WindowVerb } from '../core/desired.ts';
import { exposedServers } from '../core/exposure.ts';
import { retiredFrom } from '../core/keys.ts';
import { factsOf } from '../core/kind-facts.ts';
import { edit } from '../core/remedy.ts';
import { moment } from '../core/time.ts';
import { type Draft, draftOne } from './draft.ts';
import type { GuardInput, Objection, PlanFacts } from './objections.ts';

/** A change that no open window of `settings.windows` allows waits for the next window that does, if there is one. */
export function outsideWindow(draft: Draft, input: GuardInput, facts: PlanFacts): Objection | undefined {
  if (!input.world.settings.windows?.length || endsExposed(draft, input)) return undefined;
  const verb = verbOf(draft, input);
  const opening = verb === undefined ? 'open' : facts.openingFor(verb);
  if (opening === 'open') return undefined;
  if (opening === 'never') {
    const ways = [edit('settings', { choose: { windows: [] }, when: `to allow ${verb} in a window` })];
    return { reason: `no window under settings.windows allows ${verb}`, remedies: ways };
  }
  const starts_at = new Date(opening).toISOString();
  return {
    reason: `waits for the next window that allows ${verb}, at ${moment(opening)}`,
    remedies: [],
    starts_at,
  };
}

/** By verb, computed once a plan: a plan may have thousands of drafts. */
export function openings({ world, now }: GuardInput): (verb: WindowVerb) => Opening {
  const known = new Map<WindowVerb, Opening>();
  return (verb) => {
    const opening = known.get(verb) ?? openingFor(verb, world.settings.windows ?? [], now);
    known.set(verb, opening);
    return opening;
  };
}

/** The firewall of an exposed server is repaired at all times. */
function endsExposed({ subject: { kind, parent }, diff: { verdict } }: Draft, input: GuardInput): boolean {
  if (factsOf(kind).endsExposure !== true || verdict.verdict === 'delete') return false;
  return exposedServers(input.world, { intents: input.openIntents }).some(({ key }) => key === parent);
}

/** The kind of change that a window must allow; `undefined`: no write, or a write that completes an earlier one. */
function verbOf(draft: Draft, input: GuardInput): WindowVerb | undefined {
  const { world, kinds, openIntents, begun } = input;
  const { subject, retiresAs, diff } = draft;
  const { verdict } = diff.verdict;
  const { key, parent } = subject;
  if (verdict === 'unchanged' || verdict === 'adopt' || verdict === 'release' || verdict === 'blocked')
    return undefined;
  const isOpen = openIntents.some((each) => each.key === key && each.phase !== 'blocked');
  if (isOpen || begun?.has(key) || (retiresAs ?? retiredFrom(key)) !== undefined) return undefined;
  const server = parent === undefined ? undefined : world.subjects.get(parent);
  if (verdict !== 'create' || server === undefined) return verdict;
  const owner = draftOne(kinds, world, server);
  const isMade = owner.diff.verdict.verdict === 'create' || owner.diff.verdict.verdict === 'replace';
  return isMade ? verbOf(owner, input) : verdict;
}
