import type { WriteResult } from '../../src/core/ports.ts';
import { readingValues } from '../../src/emulator/readings.ts';
import type { Running } from '../../src/simulation/controller.ts';
import { operations, operationsWith, writeOfTask, writes } from './operations.ts';
import type { StoryObserver } from './story-observer.ts';

/** Operations that are answered with a task. @source API §4 */
const withTask = operationsWith(({ task }) => task);
const everything = operations;
/** The writes that an old key can repeat. A deletion that took effect is never sent again. */
const creations = operationsWith(({ creates }) => creates);
/** Answered with or without a task, depending on the reading. */
const eitherWay: readonly string[] = ['add_iso', 'create_network', 'delete_network'];

/** Longer than a client waits for anything but a task. */
const slowTaskMs = 120_000;

/** Rows of the outcome table, each with the operations that it applies to. */
export const rows = {
  '2xx with task': withTask,
  '2xx, task null or none': everything.filter((each) => !withTask.includes(each) || eitherWay.includes(each)),
  // The document promises no task for writes that only a profile enables.
  '2xx without the task field': operationsWith(({ task, profile }) => task && !profile),
  // An existing network interface or backup satisfies the spec, no matter which program made it. So its key is not used again.
  'replayed 2xx': creations.slice(0, 4),
  'refused before sending': everything,
  'reset, time-out, unidentified': everything,
  '5xx': everything,
  '502, 504': everything,
  '409 with Retry-After': everything,
  '409 bare': everything,
  '409 no_gpu_capacity': ['create_server'],
  '400, 422': everything,
  '405, 415': everything,
  '402': everything,
  '403': everything,
  '404': everything,
  '429': everything,
  '429 replayed': operationsWith(({ freshKeys }) => !freshKeys),
  '401': everything,
  'malformed 2xx': everything,
  '3xx': everything,
  'task failed': withTask,
  'task stuck': withTask,
  'task 404': withTask,
  // Longer than a client waits for anything but a task.
  'task slow': operationsWith(({ task, profile }) => task && !profile),
  'task failed, shown later': operationsWith(({ task, creates }) => task && creates),
  'crash around a probe': creations,
  'crash before the intent is durable': everything,
  'crash with the answer unknown': everything,
  'crash after the answer': everything,
  'key too old': creations,
  'state lost': everything,
  'two instances': everything,
} as const satisfies Readonly<Record<string, readonly string[]>>;
type Row = keyof typeof rows;

/** The situations that the stories have met so far. They are counted from outside: the code under test does not count. */
export interface Coverage extends StoryObserver {
  readonly hits: Map<string, number>;
  merge(other: Readonly<Record<string, number>>): void;
}

export function createCoverage(): Coverage {
  const hits = new Map<string, number>();
  const add = (name: string, by = 1) => void hits.set(name, (hits.get(name) ?? 0) + by);
  const hit = (row: Row, operation: string) => add(`row ${row} × ${operation}`);
  const count = (what: string, by = 1) => add(`count ${what}`, by);
  return {
    hits,
    count,
    crashes(running, boundary) {
      for (const [row, write] of crashRows(running, boundary)) hit(row, write);
    },
    keyTooOld: (write) => hit('key too old', write),
    storyEnds({ world }) {
      for (const { effect, createdMs, endsMs, appearsMs } of world.projects[0]?.tasks ?? []) {
        const name = writeOfTask[effect.kind];
        if (name === undefined) continue;
        if (endsMs - createdMs > slowTaskMs) hit('task slow', name);
        if (appearsMs !== undefined) hit('task failed, shown later', name);
      }
    },
    sent({ name, probe }, result, { epoch, name: machine }) {
      if (probe !== undefined) return count('probes');
      for (const row of rowsOf(result)) hit(row, name);
      if (epoch > 0) hit('state lost', name);
      if (machine !== 'a') hit('two instances', name);
      count('writes');
    },
    task(operation, end) {
      if (end === 'failed') hit('task failed', operation);
      if (end === 'stuck') hit('task stuck', operation);
      if (end === 'lost') hit('task 404', operation);
    },
    readings(readings) {
      for (const [name, values] of Object.entries(readingValues)) {
        const value = name in readings ? (readings as Record<string, unknown>)[name] : values[0];
        add(`reading ${name}: ${sideOf(values, value)}`);
      }
    },
    asked(code, kind, isFirst) {
      add(`asked ${code} × ${kind}`);
      if (isFirst) add(`asked ${code} × story`);
    },
    merge(other) {
      for (const [name, times] of Object.entries(other)) add(name, times);
    },
  };
}

/** A reading with any number has two sides: its default, and another. */
function sideOf(values: readonly unknown[], value: unknown): string {
  return values.includes('number') && value !== values[0] ? 'another' : JSON.stringify(value);
}

/** The situations that a full run must have met. */
export function wantedCoverage(): readonly string[] {
  const cells = Object.entries(rows).flatMap(([row, each]) =>
    each.map((operation) => `row ${row} × ${operation}`),
  );
  const sides = Object.entries(readingValues).flatMap(([name, values]) =>
    values.map((value) => `reading ${name}: ${value === 'number' ? 'another' : JSON.stringify(value)}`),
  );
  return [...cells, ...sides];
}

export function missingCoverage({ hits }: Coverage): readonly string[] {
  return wantedCoverage().filter((name) => !hits.has(name));
}

/** The rows of the outcome table that the moment of death belongs to. */
function crashRows(running: Running, boundary: string): (readonly [Row, string])[] {
  const begun = /^beginIntent (\w+):before$/.exec(boundary)?.[1];
  const probed = /^probe (.+):(?:before|after)$/.exec(boundary)?.[1];
  const sending = [...running.mirror.open.values()].filter(({ phase }) => phase === 'sending');
  return [
    ...(begun === undefined ? [] : [['crash before the intent is durable', begun] as const]),
    ...operations
      .filter((name) => writes[name].path === probed)
      .map((name) => ['crash around a probe', name] as const),
    ...sending.map(({ idempotencyKey, request }) => {
      const isAnswered = running.answered.has(idempotencyKey);
      return [isAnswered ? 'crash after the answer' : 'crash with the answer unknown', request.name] as const;
    }),
  ];
}

function rowsOf(result: WriteResult): readonly Row[] {
  switch (result.type) {
    case 'unsent':
      return ['refused before sending'];
    case 'ambiguous': {
      const { status } = result;
      const redirect = status !== undefined && status >= 300 && status < 400;
      return [redirect ? '3xx' : 'reset, time-out, unidentified'];
    }
    case 'answer':
      return result.status < 300 ? acceptedRows(result) : refusedRows(result);
  }
}

type Answer = WriteResult & { readonly type: 'answer' };

function acceptedRows({ replayed, malformed, task }: Answer): readonly Row[] {
  if (malformed !== undefined) return ['malformed 2xx'];
  const how: Row[] = replayed ? ['replayed 2xx'] : [];
  if (task === 'missing') return [...how, '2xx without the task field'];
  return [...how, task === null || task === undefined ? '2xx, task null or none' : '2xx with task'];
}

function refusedRows({ status, code, replayed, retryAfterMs }: Answer): readonly Row[] {
  if (status === 502 || status === 504) return ['502, 504'];
  if (status >= 500) return ['5xx'];
  if (status >= 300 && status < 400) return ['3xx'];
  switch (status) {
    case 409:
      if (code === 'no_gpu_capacity') return ['409 no_gpu_capacity'];
      return [retryAfterMs === undefined ? '409 bare' : '409 with Retry-After'];
    case 401:
      return ['401'];
    case 402:
      return ['402'];
    case 403:
      return ['403'];
    case 404:
      return ['404'];
    case 405:
    case 415:
      return ['405, 415'];
    case 429:
      return [replayed ? '429 replayed' : '429'];
    default:
      return ['400, 422'];
  }
}
