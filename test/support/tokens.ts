import type { Emulator } from '../../src/emulator/emulator.ts';
import { fingerprint } from '../../src/emulator/tokens.ts';

/** Secrets of so many tokens of a project, each for reading and writing: the project's own, and further ones that are issued here. */
export function writeTokens(emulator: Emulator, projectId: number, count: number): readonly string[] {
  const further = Array.from({ length: count - 1 }, (_, at) => {
    const secret = `vdc_further_token_${projectId}_${at + 2}`;
    emulator.world.tokens.push({
      name: `${projectId}-readWrite-${at + 2}`,
      projectId,
      level: 'read_write',
      fingerprint: fingerprint(secret),
      revoked: false,
      expiresMs: null,
      refusedOperations: [],
    });
    return secret;
  });
  return [emulator.tokens(projectId).readWrite, ...further];
}
