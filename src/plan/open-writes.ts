import type { World } from '../core/kind.ts';
import type { Blocked } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';

export function blockedIntent(intent: Intent, world: World, taken: Blocked | undefined): Blocked[] {
  if (intent.phase !== 'blocked' || intent.blocked === undefined) return [];
  const { code, candidates, until } = intent.blocked;
  const reason = [intent.blocked.reason, ...(taken === undefined ? [] : [taken.reason])].join('; ');
  const position = world.subjects.get(intent.key)?.desired?.position;
  const where = position === undefined ? 'the file' : `${position.file}:${position.line}:${position.column}`;
  // What was seen then may be another's, and its own may have come to be seen since.
  const adoptable = intent.verb === 'create' ? [...candidates, 'ID'] : [];
  // A deletion has no entry to be corrected; where its resource is still there it is given up, and asked for anew.
  const file = until === 'file' && intent.verb !== 'delete';
  const commands = [
    ...(file ? [`correct the entry at ${where}`] : []),
    ...(file && taken === undefined
      ? []
      : adoptable.map((id) => `vdcsync resolve ${intent.key} --adopt ${id}`)),
    `vdcsync resolve ${intent.key} --absent`,
    ...(intent.verb === 'delete' ? [`vdcsync resolve ${intent.key} --abandon`] : []),
  ];
  return [{ key: intent.key, verb: intent.verb, code, reason, resolve: commands.join(' | ') }];
}
