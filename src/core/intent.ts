import type { Intent, IntentPatch } from './state.ts';

/** The intent after a patch; fields named in `clear` are gone. */
export function patched(intent: Intent, patch: IntentPatch): Intent {
  const { clear = [], ...fields } = patch;
  const cleared = new Set<string>(clear);
  const entries = Object.entries({ ...intent, ...fields }).filter(([name]) => !cleared.has(name));
  return Object.fromEntries(entries) as unknown as Intent;
}
