import type { HttpRequest } from '../../../src/core/transport.ts';
import type { Truth } from '../../../src/simulation/rules/truth.ts';
import { foreignId, projectId, secretsOf } from '../../../src/simulation/tokens.ts';

/** The name of the token of a request, such as `4711-readWrite`. */
export function tokenOf({ emulator }: Truth, { headers }: HttpRequest): string {
  return tokenNameOf(emulator, headers.authorization?.slice('Bearer '.length) ?? '');
}

export function tokenNameOf(emulator: Truth['emulator'], secret: string): string {
  const [name] = Object.entries(secretsOf(emulator)).find(([, each]) => each === secret) ?? [];
  if (name === undefined) return 'unknown';
  return name === 'foreign' ? `${foreignId}-readWrite` : `${projectId}-${name}`;
}

/** Behind the version segment. */
export function pathOf({ url }: HttpRequest): string {
  return new URL(url).pathname.slice(3);
}
