import { StateError } from '../core/errors.ts';
import type { ResourceKey } from '../core/keys.ts';
import { run } from '../core/remedy.ts';
import type { Intent, IntentPatch, Stage } from '../core/state.ts';

/** The rules that every store keeps, with one wording. All end in `StateError`. */
export function refuseReadOnly(): never {
  throw new StateError('The state was opened for reading only, so nothing can be recorded in it.');
}

export function refuseClosedStore(): never {
  throw new StateError('The state is closed already. This is a bug, please report it.');
}

export function refuseOtherProject(recorded: number, asked: number): never {
  throw new StateError(
    `The state belongs to project ${recorded}, not ${asked}. Use the token of project ${recorded}, ` +
      'or give this project a state of its own with --state.',
  );
}

export function refuseOtherService(recorded: string, asked: string): never {
  throw new StateError(
    `The state belongs to the API \`${recorded}\`, not to \`${asked}\`. Name another state with --state.`,
  );
}

/** Whether the value is recorded already. `refuse`: another value is recorded. */
export function isRecorded<Value>(
  recorded: Value | null,
  asked: Value,
  refuse: (recorded: Value, asked: Value) => never,
): boolean {
  if (recorded !== null && recorded !== asked) refuse(recorded, asked);
  return recorded === asked;
}

export function refuseSecondIntent(open: Intent, asked: Intent): never {
  throw new StateError(
    `${asked.key} has an open write (${open.verb}, ${open.phase}, id ${open.id}). A new write (${asked.verb}) must wait for its end.`,
    { remedies: [run('status', [], { when: 'to see that write' })] },
  );
}

/** An intent may begin in any phase but the last. */
export function checkBegin(intent: Intent): void {
  if (intent.phase === 'closed') {
    throw new StateError(`The intent ${intent.id} of ${intent.key} cannot begin closed. This is a bug.`);
  }
}

export function checkPatch(intent: Intent, { stage }: IntentPatch): void {
  if ((stage as Stage | undefined)?.phase === 'closed') {
    throw new StateError(
      `The intent ${intent.id} of ${intent.key} is closed by closeIntent alone. This is a bug.`,
    );
  }
}

/** @param by the key that the object is bound to; `null`: it is claimed otherwise */
export function refuseSecondHolder(object: string, by: ResourceKey | null): never {
  throw new StateError(
    `The ${object} is ${by === null ? 'claimed already' : `bound to ${by}`}, and can have only one holder. This is a bug, please report it.`,
  );
}

export function refuseUsedId(id: string): never {
  throw new StateError(`There is an intent ${id} already. This is a bug, please report it.`);
}

/** The intent, if there is one and it is open. */
export function stillOpen(id: string, intent: Intent | undefined): Intent {
  if (intent === undefined) {
    throw new StateError(`The state has no intent ${id}.`, {
      remedies: [run('history', [], { when: 'to see its writes' })],
    });
  }
  if (intent.phase === 'closed') {
    throw new StateError(
      `The intent ${id} of ${intent.key} is closed (${intent.outcome}) and cannot change.`,
    );
  }
  return intent;
}
