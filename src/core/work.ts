/** Ways to run a piece of work: once, after the work before it, in a span of a trace. */

import type { Span, SpanAttributes, Tracing } from './ports.ts';

/** Computes the value at its first use. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Runs each piece of work when those before it have ended. */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();

  take<T>(work: () => T | Promise<T>): Promise<T> {
    const done = this.#tail.then(work);
    this.#tail = done.catch(() => undefined);
    return done;
  }

  /** Resolves when all earlier work has ended. */
  async end(): Promise<void> {
    await this.#tail;
  }
}

const noSpan: Span = { within: (work) => work(), set: () => {}, end: () => {} };

/** No traces: the default. */
export const untraced: Tracing = { begin: () => noSpan };

/** Runs the whole work in one span, which fails where the work rejects. */
export async function traced<Result>(
  tracing: Tracing | undefined,
  name: string,
  attributes: SpanAttributes,
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  const span = (tracing ?? untraced).begin(name, attributes);
  try {
    const result = await span.within(() => work(span));
    span.end();
    return result;
  } catch (error) {
    // The name of the error alone: its message may hold text of the API or the spec.
    span.end(error instanceof Error ? error.name : 'Error');
    throw error;
  }
}
