import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Verb } from '../../core/plan.ts';

/**
 * The key under which a write is sent, 51 printable characters.
 *
 * A digest of what is done to what, for the how-manieth time: a state that was rolled
 * back, a second machine or a rerun gives the same key, and the API replays its first
 * answer instead of selling again. The body is left out, so that an edited body under an
 * unresolved key is refused instead of bought beside it. `nonce` is for writes that have
 * to be applied every time.
 *
 * @source API §4 rule 4, §8
 */
export function idempotencyKey(write: {
  readonly projectId: number;
  readonly scope?: string;
  readonly key: ResourceKey;
  readonly verb: Verb;
  readonly incarnation: string;
  readonly attempt: number;
  readonly nonce?: string;
}): string {
  return `vdcsync-${createHash('sha256').update(canonicalJson(write)).digest('base64url')}`;
}
