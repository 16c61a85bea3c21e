import type { KeyStatus } from '../core/key-status.ts';

/** The word for the status of a key, for an operator. */
export function statusWord(status: KeyStatus): string {
  if (status === 'in_flight') return 'open write';
  return status === 'undeclared' ? 'left the spec' : status;
}

/** The word for the phase or the outcome of a write. The outcome of a write in the phase `unknown` is not known yet. */
export function phaseWord(phase: string): string {
  return phase === 'unknown' ? 'unconfirmed' : phase.replaceAll('_', ' ');
}
