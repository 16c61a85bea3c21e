import type { Emulator } from '../emulator/emulator.ts';
import { fingerprint } from '../emulator/tokens.ts';

export const projectId = 4711;
export const foreignId = 4712;

export type TokenName = 'readWrite' | 'second' | 'third' | 'member' | 'read' | 'revoked' | 'foreign';

/** Tokens for reading and writing that the project has in addition to its first token. */
const issued = ['second', 'third'] as const;

/** Issues the further tokens of the project. */
export function issueTokens({ world }: Emulator): void {
  for (const name of issued)
    world.tokens.push({
      name: `${projectId}-${name}`,
      projectId,
      level: 'read_write',
      fingerprint: fingerprint(secretOf(name)),
      revoked: false,
      expiresMs: null,
      refusedOperations: [],
    });
}

function secretOf(name: (typeof issued)[number]): string {
  return `vdc_${projectId}_${name}_token`;
}

/** The secrets that a machine may hold; the emulator knows all but the revoked one. */
export function secretsOf(emulator: Emulator): Readonly<Record<TokenName, string>> {
  const own = emulator.tokens(projectId);
  return {
    readWrite: own.readWrite,
    second: secretOf('second'),
    third: secretOf('third'),
    member: own.member,
    read: own.read,
    revoked: `${own.readWrite}-revoked`,
    foreign: emulator.tokens(foreignId).readWrite,
  };
}

/** The name of each secret in the rules, for example `4711-readWrite`. */
export function namesOf(emulator: Emulator): ReadonlyMap<string, string> {
  const known = [projectId, foreignId].flatMap((id) => {
    const own = emulator.tokens(id);
    return (['readWrite', 'read', 'member'] as const).map((name) => [own[name], `${id}-${name}`] as const);
  });
  const further = issued.map((name) => [secretOf(name), `${projectId}-${name}`] as const);
  return new Map([[secretsOf(emulator).revoked, `${projectId}-revoked`], ...further, ...known]);
}
