import type { HttpRequest } from '../../core/transport.ts';
import type { Emulator } from '../../emulator/emulator.ts';
import type { Project } from '../../emulator/world.ts';
import type { ResourceHistory } from '../resource-history.ts';

/** The facts that the rules check against: the truth about service and time, which the controllers do not know. */
export interface Truth {
  readonly emulator: Emulator;
  readonly history: ResourceHistory;
  readonly projectId: number;
  /** The profile knows `GET /servers`. */
  readonly serversAreListed: boolean;
  /** Each answer to a write that has a task names it. */
  readonly failuresAreReported: boolean;
  /** Time that no machine's clock can bend, in ms. */
  readonly elapsed: () => number;
  /** Which token of the emulator carries this secret, such as `4711-readWrite`. */
  readonly tokenName: (secret: string) => string;
  /** Machines with a state of their own. */
  readonly machines: () => number;
  readonly fail: (rule: string, message: string) => void;
  /** Ends the story at a known limit. */
  readonly giveUp: (limit: string) => void;
}

/** The result of a request. */
export interface Handled {
  /** Of an answer that concludes it, and is no replay. */
  readonly status?: number;
  /** Of a 429. */
  readonly retryAfterMs?: number;
  /** The connection was, so that nothing arrived. */
  readonly refused: boolean;
  /** It was a poll that showed the end of a task. */
  readonly taskEnded: boolean;
  /** Of an answer that reached the client. */
  readonly requestId: string | undefined;
}

export function projectOf({ emulator, projectId }: Truth): Project {
  return emulator.world.projects.find(({ id }) => id === projectId) as Project;
}

/** A resource that is absent from a list that ends early may exist. Some kinds have no read except their list. @assumption A8 */
export function listsAreCut({ emulator }: Truth): boolean {
  return emulator.readings.pageSize !== null;
}

export function tokenOf({ tokenName }: Truth, { headers }: HttpRequest): string {
  return tokenName(headers.authorization?.slice('Bearer '.length) ?? '');
}

export function isWrite({ method }: HttpRequest): boolean {
  return method !== 'GET';
}

/** Behind the version segment. */
export function pathOf({ url }: HttpRequest): string {
  return new URL(url).pathname.slice(3);
}

export function keyOf({ headers }: HttpRequest): string {
  return headers['idempotency-key'] ?? '';
}
