import type { ResourceKey } from '../core/keys.ts';
import type { Warning } from '../core/plan.ts';
import { edit } from '../core/remedy.ts';
import { type Draft, isToBeMade } from './draft.ts';

/**
 * A new entry that equals an entry that leaves the spec in all but the key: probably renamed by hand, which
 * would create it again and delete the existing resource.
 */
export function perhapsRenamed(drafts: readonly Draft[]): Warning[] {
  const leaving = byLikeness(drafts.filter(isLeaving));
  if (leaving.size === 0) return [];
  const fresh = byLikeness(drafts.filter(isFresh));
  return [...fresh].flatMap(([likeness, keys]) => {
    const from = leaving.get(likeness) ?? [];
    // Addresses have no fields that distinguish them, so their content is empty.
    const isGuess = likeness.endsWith(' ') && (keys.length > 1 || from.length > 1);
    return from.length === 0 || isGuess ? [] : keys.map((key) => renamed(key, from));
  });
}

function renamed(key: ResourceKey, from: readonly ResourceKey[]): Warning {
  const message = `the new entry equals ${from.join(' or ')}, which has left the spec. Without \`moved\`, vdcsync creates a second resource, and the old one stays or is deleted`;
  const remedies = from.map((each) =>
    edit(key, {
      set: { moved: { from: each } },
      when: 'if you renamed the entry: then nothing is created or deleted',
    }),
  );
  return { code: 'perhaps_renamed', key, message, remedies };
}

function isLeaving({ subject: { parent }, diff: { verdict } }: Draft): boolean {
  return parent === undefined && verdict.verdict === 'delete';
}

function isFresh(draft: Draft): boolean {
  const { parent, binding, desired } = draft.subject;
  if (parent !== undefined || binding !== undefined) return false;
  return desired?.moved === undefined && desired?.id === undefined && isToBeMade(draft);
}

function byLikeness(drafts: readonly Draft[]): ReadonlyMap<string, readonly ResourceKey[]> {
  const groups = new Map<string, ResourceKey[]>();
  for (const draft of drafts) {
    const { key } = draft.subject;
    const content = draft.kind.entry.likeness?.(draft.subject);
    const likeness = `${draft.kind.name} ${content}`;
    if (content !== undefined) groups.set(likeness, [...(groups.get(likeness) ?? []), key]);
  }
  return groups;
}
