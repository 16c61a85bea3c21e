import type { Claim, Holder } from '../core/claims.ts';
import { StateError } from '../core/errors.ts';
import { member } from '../core/json.ts';
import type { Row } from './queries.ts';

/**
 * The claim in a row.
 *
 * @throws StateError if the claim is damaged: a purchase or a deletion may depend on its holder
 */
export function claimOf({ object, body }: Row): Claim {
  const claim = parsed(String(body));
  if (isClaim(claim)) return claim;
  throw new StateError(
    `The state is damaged: the claim on ${String(object)} cannot be read. Nothing was written. Restore the state from a backup.`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The fields of each holder that are texts. */
const texts: Readonly<Record<Holder['is'], readonly string[]>> = {
  ignored: ['by'],
  released: ['by', 'formerKey'],
  found: ['key'],
  leftover: ['formerKey'],
  baseline: [],
  awaiting_approval: ['digest'],
  approved: ['digest'],
  paused: ['scope', 'kind', 'verb', 'code', 'reason', 'token'],
};

function isClaim(value: unknown): value is Claim {
  const holder = member(value, 'holder');
  const is = member(holder, 'is');
  const fields = Object.entries(texts).find(([name]) => name === is)?.[1];
  if (fields === undefined) return false;
  const isText = (of: unknown, name: string) => typeof member(of, name) === 'string';
  const identity = member(value, 'identity');
  return (
    fields.every((name) => isText(holder, name)) &&
    isText(value, 'kind') &&
    isText(value, 'id') &&
    typeof member(value, 'at') === 'number' &&
    typeof identity === 'object' &&
    identity !== null
  );
}
