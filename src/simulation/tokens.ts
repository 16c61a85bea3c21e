import type { Emulator } from '../emulator/emulator.ts';
import { fingerprint } from '../emulator/tokens.ts';

export const projectId = 4711;
export const foreignId = 4712;

export type TokenName = 'readWrite' | 'second' | 'third' | 'member' | 'read' | 'revoked' | 'foreign';

/** Tokens for reading and writing that the project has in addition to its first token. */
const issued = ['second', 'third'] as const;

/** Issues the further tokens of the project. */
export function issueTokens(emulator: Emulator): void {
  for (const name of issued) issueToken(emulator, projectId, name);
}

/** Issues a further token of a project, for reading and writing. Returns its secret. */
export function issueToken({ world }: Emulator, project: number, name: string): string {
  const secret = secretOf(project, name);
  world.tokens.push({
    name: `${project}-${name}`,
    projectId: project,
    level: 'read_write',
    fingerprint: fingerprint(secret),
    revoked: false,
    expiresMs: null,
    refusedOperations: [],
  });
  return secret;
}

function secretOf(project: number, name: string): string {
  return `vdc_${project}_${name}_token`;
}

/** The secrets that a machine may hold; the emulator knows all but the revoked one. */
export function secretsOf(emulator: Emulator): Readonly<Record<TokenName, string>> {
  const own = emulator.tokens(projectId);
  return {
    readWrite: own.readWrite,
    second: secretOf(projectId, 'second'),
    third: secretOf(projectId, 'third'),
    member: own.member,
    read: own.read,
    revoked: `${own.readWrite}-revoked`,
    foreign: emulator.tokens(foreignId).readWrite,
  };
}
