/** Values that a trace shows in addition to a span's name; never a body, a header or a value of the spec. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** One timed piece of work of a trace. */
export interface Span {
  /** Runs a part of the work: spans that begin within it are children of this one. */
  within<Result>(work: () => Promise<Result>): Promise<Result>;
  set(attributes: SpanAttributes): void;
  /** `failure`: why the work failed; without it, it succeeded. Exactly one call. */
  end(failure?: string): void;
}

/** Where spans go. `begin` is called in the async context of the parent. */
export interface Tracing {
  begin(name: string, attributes: SpanAttributes): Span;
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
