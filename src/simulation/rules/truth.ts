import type { Intent } from '../../core/state.ts';
import type { HttpRequest, HttpResponse } from '../../core/transport.ts';
import type { Emulator } from '../../emulator/emulator.ts';
import type { Execution, Project } from '../../emulator/world.ts';
import type { Controller, Running } from '../controller.ts';
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
  /** Machines with a state of their own. */
  readonly machines: () => number;
  readonly limits: Limits;
  readonly fail: (rule: string, message: string) => void;
  /** Ends the story at a known limit. */
  readonly giveUp: (limit: string) => void;
}

/** Under whose state a write was sent. */
export interface Sender {
  readonly controller: Controller;
  readonly state: string;
  /** Of its spec. */
  readonly scope: string | undefined;
}

/** A purchase for a line that has a resource already. */
export interface SecondPurchase {
  readonly first: Execution;
  readonly execution: Execution;
  readonly intent: Intent;
  readonly running: Running;
  /** All creations of the line, the oldest first. */
  readonly all: readonly Execution[];
  readonly maker: Sender | undefined;
  readonly buyer: Sender | undefined;
  /** The first answer was not kept under its key: a server error that had its effect. */
  readonly isUnstored: boolean;
  /** The first answer was lost as well, and no read shows the resource. */
  readonly isHidden: boolean;
  /** No answer has said that the service failed, and no read shows the server. */
  readonly isUnreported: boolean;
  /** The first resource had passed to this entry, whose own key had to be reserved. */
  readonly isReserved: boolean;
}

/** The facts that no controller can know. A story that meets one of them ends without a verdict. */
export interface Limits {
  /** The first resource belongs to another spec, no matter which key it was made under. */
  isOfAnotherFile(
    truth: Truth,
    first: Execution,
    intent: Intent,
    maker: Sender | undefined,
    buyer: Sender | undefined,
  ): boolean;
  /** The spec gives the first resource to another entry. */
  isOfAnotherEntry(first: Execution, intent: Intent, running: Running): boolean;
  ofPurchase(truth: Truth, purchase: SecondPurchase): string | undefined;
}

/** A key of this age is not sent again. @source API §8 */
export const keyLifeMs = 23 * 3_600_000;

/** The result of a request. */
export interface Handled {
  /** The answer that reached the client. */
  readonly response: HttpResponse | undefined;
  /** The connection was, so that nothing arrived. */
  readonly refused: boolean;
  /** Time has passed since it was sent, so that a wait that it asks for is not known to the moment. */
  readonly isLate: boolean;
}

export function projectOf({ emulator, projectId }: Truth): Project {
  return emulator.world.projects.find(({ id }) => id === projectId) as Project;
}

/** A resource that is absent from a list that ends early may exist. Some kinds have no read except their list. @assumption A8 */
export function listsAreCut({ emulator }: Truth): boolean {
  return emulator.readings.pageSize !== null;
}

export function isWrite({ method }: HttpRequest): boolean {
  return method !== 'GET';
}

export function keyOf({ headers }: HttpRequest): string {
  return headers['idempotency-key'] ?? '';
}
