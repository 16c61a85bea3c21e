import type { KeyStatus } from '../../core/key-status.ts';
import type { ResourceView } from '../../view/project-view.ts';

/** A standing in words. */
export function statusText(standing: KeyStatus): string {
  // Includes an operation that is still queued, so its write may not be open yet.
  if (standing === 'in_flight') return 'in progress';
  return standing === 'undeclared' ? 'left the spec' : standing;
}

const absences: Readonly<Record<ResourceView['presence'], string>> = {
  known: '',
  not_created: 'not created yet',
  being_created: 'being created',
  unconfirmed: 'unconfirmed, may be billed',
};

/** The state of a resource whose id is not known. */
export function absenceText({ presence }: ResourceView): string {
  return absences[presence];
}
