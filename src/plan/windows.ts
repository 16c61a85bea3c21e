import { type Opening, openingFor } from '../core/calendar.ts';
import type { WindowVerb } from '../core/desired.ts';
import { moment } from '../core/duration.ts';
import { exposedServers } from '../core/exposure.ts';
import { retiredFrom } from '../core/keys.ts';
import { factsOf } from '../core/kind-facts.ts';
import { type Draft, draftOne } from './draft.ts';
import type { GuardInput, Objection, PlanFacts } from './objections.ts';

/** The parts of a new server that its creation in a window has begun. After this time they wait as others do, in ms. */
const partsMs = 3_600_000;

/** A change that no open window of `settings.windows` allows waits for the next window that does. */
export function outsideWindow(draft: Draft, input: GuardInput, facts: PlanFacts): Objection | undefined {
  if (!input.world.settings.windows?.length || endsExposed(draft, input)) return undefined;
  const verb = verbOf(draft, input);
  const opening = verb === undefined ? 'open' : facts.openingFor(verb);
  if (opening === 'open') return undefined;
  if (opening === 'never') return { reason: `no window under settings.windows allows ${verb}`, remedies: [] };
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
  const { world, kinds, openIntents, begun, now } = input;
  const { subject, retiresAs, diff } = draft;
  const { verdict } = diff.verdict;
  const { key, kind, parent } = subject;
  if (verdict === 'unchanged' || verdict === 'adopt' || verdict === 'release' || verdict === 'blocked')
    return undefined;
  const isOpen = openIntents.some((each) => each.key === key && each.phase !== 'blocked');
  if (isOpen || begun?.has(key) || (retiresAs ?? retiredFrom(key)) !== undefined) return undefined;
  const server = parent === undefined ? undefined : world.subjects.get(parent);
  if (verdict !== 'create' || server === undefined) return verdict;
  const owner = draftOne(kinds, world, server);
  const isMade = owner.diff.verdict.verdict === 'create' || owner.diff.verdict.verdict === 'replace';
  if (isMade) return verbOf(owner, input);
  const isNew = now - (server.binding?.boundAt ?? 0) < partsMs;
  return isNew && factsOf(kind).repeats !== true ? undefined : verdict;
}
