import type { Emulator } from '../emulator/options.ts';

export const projectId = 4711;
export const foreignId = 4712;

export type TokenName = 'readWrite' | 'member' | 'read' | 'revoked' | 'foreign';

/** The secrets that a machine may hold; the emulator knows all but the revoked one. */
export function secretsOf(emulator: Emulator): Readonly<Record<TokenName, string>> {
  const own = emulator.tokens(projectId);
  return {
    readWrite: own.readWrite,
    member: own.member,
    read: own.read,
    revoked: `${own.readWrite}-revoked`,
    foreign: emulator.tokens(foreignId).readWrite,
  };
}

/** What the rules call a secret, such as `4711-readWrite`. */
export function namesOf(emulator: Emulator): ReadonlyMap<string, string> {
  const known = [projectId, foreignId].flatMap((id) => {
    const own = emulator.tokens(id);
    return (['readWrite', 'read', 'member'] as const).map((name) => [own[name], `${id}-${name}`] as const);
  });
  return new Map([[secretsOf(emulator).revoked, `${projectId}-revoked`], ...known]);
}
