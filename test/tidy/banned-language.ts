import type { Line } from './texts.ts';

/** A word or pattern that readers stumble over, and the standard term to use instead. */
type Banned = readonly [pattern: RegExp, use: string];

/** One word for each concept: the left side is hard to read or means two things, the right side is the term to use. */
const words: readonly Banned[] = [
  [/\bstrangers?\b/i, 'unmanaged'],
  [/\b(somebody|someone)( else)?\b/i, 'the operator, another user, or another program'],
  [/\b(nobody|no one|anybody|everybody)\b/i, 'name the actor: no operator, no user, each replica'],
  [/\b(a|the|each|another) person\b|\bpersons?\b|\bpeople\b/i, 'the operator, or you'],
  [/\bvouch/i, 'ignored, or confirmed by the operator'],
  [/\bleft alone\b/i, 'ignored'],
  [/\blet(s|ting)? (it |them )?go\b|\bdisown/i, 'released'],
  [/\b(stands?|stood|standing) for\b/i, 'is bound to, or means'],
  [/\b(stands?|stood) (open|in|on|at|beside|under|there|alone|still)\b/i, 'is, or (of a firewall) exposed'],
  [/\bin doubt\b|\bdoubt(ed|ful)?\b/i, 'unconfirmed'],
  [/\b(have a |had a )?look(s|ed|ing)?\b(?! up\b)/i, 'observe, refresh, check, read, or resemble'],
  [/\bseeks?\b|\bsurvey(s|ed)?\b/i, 'observe (one) or refresh (all)'],
  [/\b(a|the|each|every|next|last|one|its|this|per) pass\b|\bpasses (over|ended|took)\b/i, 'reconciliation'],
  [/\b(tells?|told|telling)\b/i, 'report, warn, notify, or show'],
  [/\bnews\b|\bnotices?\b/i, 'notification, or report'],
  [/(?<!graphics )(?<!graphics-)\bcards?\b/i, 'network interface (or graphics card)'],
  [/\btolls?\b/i, 'impact'],
  [
    /\b(ledger|tape|mortal|heirs?|happenings?|books|witness(es)?)\b/i,
    'the standard noun: log, recorder, process, disturbance, checker',
  ],
  [
    /\b(lifts?|standing|a|the) hold\b|\b(is|are|be|kept) held\b|\bheld back\b|\bholds? back\b/i,
    'paused, or blocked',
  ],
  [/\brenew(s|ed)?\b/i, 'replaced'],
  [/\banew\b/i, 'again'],
  [/\bmissed\b/i, 'confirmed absent, or lost'],
  [/\bperhaps\b/i, 'possibly'],
  [/\b(behind|out of) (its|vdcsync's|the API's) back\b/i, 'outside vdcsync'],
  [/\bfor good\b/i, 'permanently'],
  [/\b(last good|good spec)\b/i, 'last valid spec'],
  [/\bunasked\b|\bbeforehand\b/i, 'without a question, or before'],
  [/\bof (its|their|his) own accord\b/i, 'automatically'],
];

/** Turns of phrase that take two readings. */
const phrases: readonly Banned[] = [
  [/\bwhat\b(?![^.!?]*\?)/i, 'the noun: "the resources that …", "the values that …"'],
  [/\b(whatever|whoever|whichever)\b/i, 'any …, or: a user who …'],
  [/\bsuch\b(?! as\b)/i, 'the noun, with "this" or "these" before it'],
  [/\bthat which\b|\bthose of which\b/i, 'the noun'],
  [/\b(is|are|was|were|be) (to be|to go|to stay|to have)\b/i, 'must be, or should be'],
  [/\bas (the|its|their|your) (file|spec|entry|document) (says|has it|said)\b/i, 'matches the spec'],
  [/\b(of|about) which\b.*\b(says?|knows?)\b/i, 'a new sentence'],
  [/\bbut for\b/i, 'except for'],
  [/\bbesides?\b/i, 'next to, or in addition to'],
  [/\b(at most|after|only) so (many|much|long)\b/i, 'at most this number, or after this time'],
  [/\b(goes?|went|going) on\b/i, 'continue'],
  [/\bcan be had\b|\bis to be had\b|\bhave(s)? to be there\b/i, 'is available, or must exist'],
  [/\band (their|its|the) likes?\b/i, 'and similar commands'],
  [/\b(operator|person)'s word\b|\bthat word\b/i, 'the decision of the operator'],
  [/\bwhat becomes of\b|\bcame to (nothing|this)\b|\bcame about\b/i, 'the result'],
  [/\bit is said\b|\bsay of\b|\bsaid of\b|\bsays of\b/i, 'mark as, or declare'],
  [/\bas (it|they) (is|are|stands?)\b/i, 'unchanged'],
  [/\bnothing of (it|this|that)\b/i, 'none, with its noun'],
  [/\bthat is believed\b/i, 'vdcsync assumes'],
  [/\bas --[a-z-]+ (asks|says)\b/i, 'the flag in brackets'],
  [/\bcame since\b/i, 'appeared since'],
];

const banned: readonly Banned[] = [...words, ...phrases];

/** These folders read no files. */
const withoutFiles = /^src\/(engine|plan|reconcilers|simulation)\//;
const bannedThere: readonly Banned[] = [...banned, [/\b(the|this) file\b/i, 'the spec']];

/** `file:line: "the words": the term to use`, for each hit. */
export function complaints(lines: readonly Line[]): string[] {
  return lines.flatMap(({ file, line, text }) =>
    (withoutFiles.test(file) ? bannedThere : banned).flatMap(([pattern, use]) => {
      const [words] = pattern.exec(text) ?? [];
      return words === undefined ? [] : [`${file}:${line}: "${words}": write ${use}`];
    }),
  );
}
