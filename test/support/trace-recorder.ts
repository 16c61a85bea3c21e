// A small OpenTelemetry provider, for `node --import`: writes each ended span as a line to the file that OTEL_TEST_FILE names.
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  type SpanStatus,
  type Tracer,
  trace,
} from '@opentelemetry/api';

export interface RecordedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | null;
  readonly attributes: Attributes;
  readonly status: SpanStatus | null;
}

const file = process.env.OTEL_TEST_FILE ?? '';
const kept: string[] = [];
const storage = new AsyncLocalStorage<Context>();

const manager: ContextManager = {
  active: () => storage.getStore() ?? ROOT_CONTEXT,
  with: (active, work, self, ...args) => storage.run(active, () => work.call(self, ...args)),
  bind: (_active, target) => target,
  enable: () => manager,
  disable: () => manager,
};

function startSpan(name: string, options: SpanOptions = {}, parent: Context = context.active()): Span {
  const above = trace.getSpanContext(parent);
  const spanContext = {
    traceId: above?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    traceFlags: 1,
  };
  const attributes = { ...options.attributes };
  let status: SpanStatus | null = null;
  const span = {
    spanContext: () => spanContext,
    setAttributes: (more: Attributes) => {
      Object.assign(attributes, more);
      return span;
    },
    setStatus: (given: SpanStatus) => {
      status = given;
      return span;
    },
    end: () => {
      const { traceId, spanId } = spanContext;
      const recorded = { name, traceId, spanId, parentId: above?.spanId ?? null, attributes, status };
      kept.push(JSON.stringify(recorded));
    },
  } as unknown as Span;
  return span;
}

const tracer = { startSpan } as unknown as Tracer;
// As a batching exporter: what is not flushed is lost.
const provider = {
  getTracer: () => tracer,
  forceFlush: async () =>
    appendFileSync(
      file,
      kept
        .splice(0)
        .map((line) => `${line}\n`)
        .join(''),
    ),
};
context.setGlobalContextManager(manager);
trace.setGlobalTracerProvider(provider);
