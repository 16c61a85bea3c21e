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
