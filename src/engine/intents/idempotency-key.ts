import { hash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Verb } from '../../core/plan.ts';

/**
 * The key under which a write is sent, 51 printable characters.
 *
 * A digest of the operation, the resource and the attempt: a state that was rolled back,
 * a second machine or a rerun gives the same key, and the API replays its first answer
 * instead of selling again. The digest leaves out the body, so that the API refuses an edited
 * body under an unresolved key instead of selling a second resource. `nonce` is for writes
 * that must be applied every time.
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
  return `vdcsync-${hash('sha256', canonicalJson(write), 'base64url')}`;
}
