import type { HttpRequest, HttpResponse } from '../../../src/core/transport.ts';
import type { Running } from '../../../src/simulation/controller.ts';
import { type Handled, isWrite, type Truth } from '../../../src/simulation/rules/truth.ts';
import { isConclusive, isReplayed } from './answers.ts';
import { pathOf, tokenOf } from './requests.ts';

const minute = 60_000;
/** Polls that come this soon behind a task's end, in ms, were on their way. */
const endedMs = 1_000;

/** I9: 20 writes and 60 reads in any 60 s, nothing before `Retry-After`, no poll behind the end. */
export class BudgetRules {
  readonly #truth: Truth;
  readonly #arrivals = new Map<string, number[]>();
  /** Since the last 429, and until when. */
  readonly #closed = new Map<string, { readonly since: number; readonly until: number }>();
  /** By run: the paths of tasks whose end it has seen, and when. */
  readonly #ended = new WeakMap<Running, Map<string, number>>();
  /** By run: the polls of a task right behind its end. */
  readonly #repolls = new WeakMap<Running, Map<string, number>>();

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  arrives(running: Running, request: HttpRequest): void {
    this.#checkClosed(running, request);
    this.#checkPoll(running, pathOf(request));
  }

  handled(running: Running, request: HttpRequest, { refused, response, isLate }: Handled): void {
    const bucket = this.#bucketOf(request);
    const now = this.#truth.elapsed();
    this.#checkWindow(running, bucket, isWrite(request), refused);
    const retryAfterMs = isLate ? undefined : waitOf(response);
    if (retryAfterMs !== undefined) {
      const until = Math.max(this.#closed.get(bucket)?.until ?? 0, now + retryAfterMs);
      this.#closed.set(bucket, { since: now, until });
    }
    if (request.url.includes('/tasks/') && isEndedTask(response))
      this.#ended.set(running, new Map(this.#ended.get(running)).set(pathOf(request), now));
  }

  #checkClosed({ controller }: Running, request: HttpRequest): void {
    const bucket = this.#bucketOf(request);
    const now = this.#truth.elapsed();
    const recent = (this.#arrivals.get(bucket) ?? []).filter((at) => at > now - minute);
    this.#arrivals.set(bucket, [...recent, now]);
    if (controller.budgetUnknown()) return;
    const { since = 0, until = 0 } = this.#closed.get(bucket) ?? {};
    // At the moment of the 429, other reads were on their way. A token sends one write at a time.
    const isOnItsWay = now === since && !isWrite(request);
    if (now >= since && now < until && !isOnItsWay)
      this.#truth.fail('I9', 'a request before Retry-After has passed');
  }

  /** A later poll is allowed: a run may have to give up the work that followed the task. */
  #checkPoll(running: Running, path: string): void {
    const ended = this.#ended.get(running)?.get(path) ?? -minute;
    if (this.#truth.elapsed() - ended >= endedMs) return;
    const repolls = (this.#repolls.get(running)?.get(path) ?? 0) + 1;
    this.#repolls.set(running, new Map(this.#repolls.get(running)).set(path, repolls));
    if (repolls > 2) this.#truth.fail('I9', `${path} was polled after its end`);
  }

  /** Counted once it is known to have arrived: a refused connection is no request. */
  #checkWindow({ controller }: Running, bucket: string, write: boolean, refused: boolean): void {
    const recent = this.#arrivals.get(bucket) ?? [];
    if (refused) recent.splice(recent.lastIndexOf(this.#truth.elapsed()), 1);
    const limit = write ? 20 : 60;
    if (recent.length > limit && !controller.budgetUnknown())
      this.#truth.fail('I9', `${recent.length} ${write ? 'writes' : 'reads'} within 60 s`);
  }

  #bucketOf(request: HttpRequest): string {
    return `${tokenOf(this.#truth, request)} ${isWrite(request) ? 'writes' : 'reads'}`;
  }
}

/** The wait that a fresh 429 asks for. */
function waitOf(response: HttpResponse | undefined): number | undefined {
  const retryAfter = response?.status === 429 ? response.headers['retry-after'] : undefined;
  return retryAfter === undefined || isReplayed(response) ? undefined : Number(retryAfter) * 1000;
}

/** Whether the answer says that a task has ended. No client may ask for an ended task again. */
function isEndedTask(response: HttpResponse | undefined): boolean {
  if (response?.status !== 200 || !isConclusive(response)) return false;
  return (JSON.parse(response.body) as { data?: { is_terminal?: boolean } }).data?.is_terminal === true;
}
