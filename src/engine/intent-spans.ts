import type { Operation } from '../core/plan.ts';
import type { OperationResult } from '../core/progress.ts';
import { type Span, type Tracing, untraced } from '../core/tracing.ts';

/** The spans of writes. One span covers one write over all turns of work on its key. */
export class IntentSpans {
  readonly #tracing: Tracing;
  readonly #open = new Map<string, Span>();

  constructor(tracing: Tracing = untraced) {
    this.#tracing = tracing;
  }

  /** Runs one turn of work within the span of the write. The first turn begins the span. */
  within<Result>(
    { key, kind, verb }: Pick<Operation, 'key' | 'kind' | 'verb'>,
    turn: () => Promise<Result>,
  ): Promise<Result> {
    const attributes = { 'vdcsync.key': key, 'vdcsync.kind': kind, 'vdcsync.verb': verb };
    const span = this.#open.get(key) ?? this.#tracing.begin(`intent ${verb} ${kind}`, attributes);
    this.#open.set(key, span);
    return span.within(turn);
  }

  end({ key, outcome, requestId }: OperationResult): void {
    const span = this.#open.get(key);
    this.#open.delete(key);
    const request = requestId === undefined ? {} : { 'vdcsync.request_id': requestId };
    span?.set({ 'vdcsync.outcome': outcome, ...request });
    span?.end(outcome === 'done' ? undefined : outcome);
  }

  /** The work is over. A write that has not ended continues in a later run, in another span. */
  endAll(): void {
    for (const span of this.#open.values()) {
      span.set({ 'vdcsync.outcome': 'unresolved' });
      span.end();
    }
    this.#open.clear();
  }
}
