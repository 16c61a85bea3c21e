import { type Context, context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Span, SpanAttributes, Tracing } from '../core/ports.ts';

export interface OpenTelemetryOptions {
  readonly version: string;
  /** W3C trace context of the caller, such as a CI job: the parent of spans that have none of their own. */
  readonly traceparent?: string | undefined;
}

export interface OpenTelemetryTracing extends Tracing {
  /** Exports the remaining spans of the SDK. Takes at most `flushMs`, and never fails. */
  flush(): Promise<void>;
}

/** A collector that does not answer must not keep a command from ending. Real ms. */
const flushMs = 5_000;

/**
 * Creates spans with the OpenTelemetry SDK that the process has loaded. Without an SDK, spans are dropped. The SDK
 * brings the exporters, and the async context that connects a span to its children.
 */
export function openTelemetry({ version, traceparent }: OpenTelemetryOptions): OpenTelemetryTracing {
  const tracer = trace.getTracer('vdcsync', version);
  const caller = callerOf(traceparent);
  return {
    begin(name, attributes) {
      const active = context.active();
      const parent = trace.getSpanContext(active) === undefined ? caller : active;
      const kind = 'http.request.method' in attributes ? SpanKind.CLIENT : SpanKind.INTERNAL;
      const span = tracer.startSpan(name, { attributes, kind }, parent);
      const inside = trace.setSpan(parent, span);
      return {
        within: (work) => context.with(inside, work),
        set: (more: SpanAttributes) => void span.setAttributes(more),
        end(failure) {
          if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
          span.end();
        },
      } satisfies Span;
    },
    async flush() {
      const late = new Promise<void>((resolve) => setTimeout(resolve, flushMs).unref());
      await Promise.race([flushed().catch(() => {}), late]);
    },
  };
}

/** Providers of the SDK can flush, but the types of the API package do not declare it. */
interface Provider {
  getDelegate?(): Provider;
  forceFlush?(): Promise<void>;
}

async function flushed(): Promise<void> {
  const provider = trace.getTracerProvider() as Provider;
  await (provider.getDelegate?.() ?? provider).forceFlush?.();
}

/** The span that `traceparent` names. The root context if `traceparent` is missing or not valid. */
function callerOf(traceparent: string | undefined): Context {
  const [, traceId = '', spanId = '', flags = ''] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent?.trim() ?? '') ?? [];
  const spanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return trace.isSpanContextValid(spanContext)
    ? trace.setSpanContext(ROOT_CONTEXT, spanContext)
    : ROOT_CONTEXT;
}
