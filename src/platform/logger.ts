import { type Logger, pino, stdTimeFunctions } from 'pino';
import { printable } from '../core/text.ts';
import type { LogFormat, LogLevel } from './log-levels.ts';

export interface LoggerOptions {
  readonly level: LogLevel;
  /** `json`: one object per line. `text`: lines for human readers. */
  readonly format: LogFormat;
  readonly write: (line: string) => void;
}

/**
 * Fields that may be logged. All other fields are dropped. The list names the allowed fields, because a list of secret
 * fields would always be incomplete.
 */
const allowedFields: ReadonlySet<string> = new Set(
  [
    ['key', 'kind', 'verb', 'operationId', 'intentId', 'resourceId', 'taskId', 'sort', 'project'],
    ['method', 'path', 'status', 'code', 'requestId', 'attempt', 'bucket', 'priority', 'replayed'],
    ['durationMs', 'waitMs', 'retryAfterMs', 'ageMs', 'count', 'reads', 'writes', 'polls', 'limited'],
    ['phase', 'condition', 'before', 'outcome', 'reason', 'detail', 'error', 'source', 'ref', 'commit'],
    ['file', 'line', 'column', 'change', 'wave', 'left', 'total', 'projects', 'address', 'port', 'url'],
    ['event', 'trigger', 'command', 'operations', 'spec', 'forge', 'deliveryId', 'version', 'signal'],
    ['warnings', 'blocked', 'unchanged', 'changes', 'differs', 'drift', 'serial', 'lineage', 'component'],
    ['digest', 'resolve', 'tokenNumber', 'tokens'],
  ].flat(),
);

/** A second protection: if an allowed field ever contains an object with one of these fields, its value is masked. */
const secretFields = ['token', 'authorization', 'secret', 'password', 'idempotencyKey', 'headers', 'body'];

/**
 * Writes lines of JSON or text. Only allow-listed fields are written. Control characters are removed
 * from their text, because the text may come from the server.
 */
export function createLogger({ level, format, write }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      redact: {
        paths: secretFields.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
        censor: '[secret]',
      },
      formatters: { level: (label) => ({ level: label }), log: onlyAllowed },
      hooks: {
        logMethod(parameters, method) {
          const clean = parameters.map((each: unknown) =>
            typeof each === 'string' ? printable(each) : each,
          );
          method.apply(this, clean as typeof parameters);
        },
      },
    },
    { write: (line) => write(format === 'json' ? line : asText(line)) },
  );
}

function onlyAllowed(fields: Record<string, unknown>): Record<string, unknown> {
  const kept = Object.entries(fields).filter(([name]) => allowedFields.has(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, plain(value, 0)]));
}

/** How deep a logged value may be; deeper parts are left out. */
const maxDepth = 4;

function plain(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return printable(value);
  if (value === null || typeof value !== 'object') return value;
  if (depth >= maxDepth) return '…';
  if (value instanceof Error) {
    const code = 'code' in value ? { code: plain(value.code, maxDepth) } : {};
    return { name: value.name, message: printable(value.message), ...code };
  }
  if (Array.isArray(value)) return value.map((each) => plain(each, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each, depth + 1)]));
}

function asText(line: string): string {
  const { time, level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const shown = Object.entries(fields).map(([name, value]) => `${name}=${fieldText(value)}`);
  return `${[time, String(level).toUpperCase().padEnd(5), msg, ...shown].join(' ')}\n`;
}

function fieldText(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  if (value !== null && typeof value === 'object' && 'message' in value) return JSON.stringify(value.message);
  return JSON.stringify(value);
}
