/**
 * The priorities of waiting reads, the most urgent first: polls that the firewall of an exposed server waits for; then
 * reads that a write depends on; then reads that show the effect of a write; then polls, which need fewer requests the
 * later they are sent; then reads that only refresh old values.
 */
const readPriorities = ['urgent', 'operation', 'evidence', 'poll', 'refresh'] as const;
export type ReadPriority = (typeof readPriorities)[number];

/** Whether the request leaves the reserved slots of the budget to the reads of waiting writes. */
export function isDeferrable(priority: ReadPriority): boolean {
  return priority !== 'operation' && priority !== 'urgent';
}

/** At most this many requests wait for a slot; one more is refused, as something loops. */
const maxWaiting = 10_000;
/** A poll that has waited this long, in ms, goes first, however much is read. */
const pollPatienceMs = 30_000;

interface Waiter {
  /** On the monotonic clock. */
  readonly since: number;
  readonly isDeferrable: boolean;
  grant(): void;
}

/** Requests that wait for a slot: by priority, then in order of arrival. */
export class WaitingLine {
  readonly #lines: Record<ReadPriority, Waiter[]> = {
    urgent: [],
    operation: [],
    evidence: [],
    poll: [],
    refresh: [],
  };

  get length(): number {
    return readPriorities.reduce((sum, priority) => sum + this.#lines[priority].length, 0);
  }

  /**
   * Resolves once `next` serves the request; rejects with the signal's reason. `onChange` is called when the request
   * joins the line, and when it leaves the line without a slot.
   */
  wait(priority: ReadPriority, since: number, onChange: () => void, signal?: AbortSignal): Promise<void> {
    if (this.length >= maxWaiting) throw new Error(`more than ${maxWaiting} requests wait for the budget`);
    const line = this.#lines[priority];
    return new Promise<void>((resolve, reject) => {
      const abort = () => {
        line.splice(line.indexOf(waiter), 1);
        onChange();
        reject(signal?.reason);
      };
      const waiter: Waiter = {
        since,
        isDeferrable: isDeferrable(priority),
        grant: () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        },
      };
      signal?.addEventListener('abort', abort, { once: true });
      line.push(waiter);
      onChange();
    });
  }

  /** Takes the request with the next turn out of the line. `onlyUrgent`: deferrable requests have no turn now. */
  next(now: number, onlyUrgent: boolean): Waiter | undefined {
    if (onlyUrgent) return this.#lines.urgent.shift() ?? this.#lines.operation.shift();
    const [poll] = this.#lines.poll;
    if (poll !== undefined && now - poll.since >= pollPatienceMs) return this.#lines.poll.shift();
    return readPriorities
      .map((priority) => this.#lines[priority])
      .find(({ length }) => length > 0)
      ?.shift();
  }
}
