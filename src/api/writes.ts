import { ConfigError } from '../core/errors.ts';
import type { HiddenTexts } from '../core/hidden-texts.ts';
import { digestOf } from '../core/json.ts';
import type { AnsweredTask, WriteName, WritePort, WriteRequest, WriteResult } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { TaskId } from '../core/resources.ts';
import { fitsPath } from '../core/text.ts';
import { TransportError } from '../core/transport.ts';
import { isRecord, printable } from './answer.ts';
import type { Call } from './call.ts';
import type { Exchanged, Pipeline } from './pipeline.ts';
import { type BuiltWrite, buildWrite } from './write-requests.ts';

/**
 * Sends each write once and returns its result. It repeats nothing and throws nothing.
 *
 * | event | result |
 * | --- | --- |
 * | no connection; no token; an unusable request | `unsent` |
 * | a lost or cut-off answer, a time-out | `ambiguous` |
 * | 3xx | `ambiguous` with its status; not followed |
 * | no `X-Request-Id`, or not the expected media type | `ambiguous` with its status |
 * | 2xx, readable | `answer` with `data` and `task` |
 * | 2xx, unreadable | `answer` with `malformed`: it did have its effect |
 * | a problem document | `answer` with its `code` |
 *
 * @source API §4 rule 5, §7
 */
export function createWrites(
  pipeline: Pipeline,
  profile: ApiProfile,
  hidden: HiddenTexts,
  learn: Learn = () => {},
): WritePort {
  const send: WritePort['send'] = async (request, idempotencyKey, token, mayGo) => {
    try {
      const built = buildWrite(hidden.open(request), profile);
      const isProbe = request.probe !== undefined;
      const call = { ...toCall(built, idempotencyKey, token), sort: request.name, isProbe, mayGo };
      const answer = await pipeline.exchange(call);
      const result = toResult(answer, built);
      if (token !== undefined) learn(answer.sentUnder, request.name, result);
      return result;
    } catch (error) {
      const reason = error instanceof Error ? printable(error.message) : String(error);
      // The pipeline fails with anything else only before the first byte.
      const unknown = error instanceof TransportError && error.effect === 'unknown';
      return unknown ? { type: 'ambiguous', reason } : { type: 'unsent', reason };
    }
  };

  function digest(request: WriteRequest): string {
    try {
      hidden.open(request);
      const { method, path, body } = buildWrite(hidden.reduced(request), profile);
      return digestOf([method, path, body ?? null]);
    } catch {
      return '';
    }
  }

  return {
    room: (signal, isWriteWaiting) => pipeline.room(signal, isWriteWaiting),
    roomMs: (writes) => pipeline.roomMs(writes),
    perWindow: () => pipeline.writesPerWindow(),
    send,
    token: () => pipeline.token(),
    digest,
  };
}

/** Called with the result of each write that was sent with a known token. */
type Learn = (token: string, write: WriteName, result: WriteResult) => void;

function toCall(built: BuiltWrite, idempotencyKey: string, token: string | undefined): Call {
  // A key that the API would not take protects from nothing. @source API §8
  if (!/^[\x21-\x7e]{8,255}$/.test(idempotencyKey)) {
    throw new ConfigError('An idempotency key has 8 to 255 printable characters.');
  }
  return {
    method: built.method,
    path: built.path,
    bucket: 'writes',
    priority: 'operation',
    idempotencyKey,
    ...(token === undefined ? {} : { token }),
    ...(built.body === undefined ? {} : { body: built.body }),
  };
}

function toResult(answer: Exchanged, built: BuiltWrite): WriteResult {
  const { status, replayed, retryAfterMs } = answer;
  if (answer.sort === 'unidentified') return { type: 'ambiguous', reason: answer.reason, status };
  const conclusive = {
    type: 'answer',
    status,
    requestId: answer.requestId,
    replayed,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(answer.ofToken === undefined ? {} : { ofToken: answer.ofToken }),
  } as const;
  switch (answer.sort) {
    case 'malformed':
      return { ...conclusive, malformed: answer.malformed };
    case 'problem':
      return { ...conclusive, ...answer.problem };
    case 'success':
      return { ...conclusive, ...readSuccess(answer.body, built) };
  }
}

interface Success {
  readonly data?: unknown;
  readonly task?: AnsweredTask;
  readonly malformed?: string;
}

function readSuccess(body: unknown, { documentsTask, needsId }: BuiltWrite): Success {
  if (!isRecord(body)) return { malformed: 'the body is not a JSON object' };
  const task = readTask(body, documentsTask);
  const known = {
    ...('data' in body ? { data: body.data } : {}),
    ...(task === undefined ? {} : { task }),
  };
  if (!('data' in body)) return { ...known, malformed: 'data: missing' };
  if (needsId && !hasId(body.data)) return { ...known, malformed: 'data.id: missing' };
  return known;
}

/** A task without a usable id cannot be polled, so it is as good as missing. @assumption A34 */
function readTask(body: Record<string, unknown>, documented: boolean): AnsweredTask | undefined {
  const { task } = body;
  if (task === null) return null;
  if (!isRecord(task) || !hasId(task)) return documented ? 'missing' : undefined;
  const ended = task.status === 'succeeded' || task.status === 'failed';
  const terminal = typeof task.is_terminal === 'boolean' ? task.is_terminal : ended;
  return { id: String(task.id) as TaskId, terminal };
}

function hasId(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { id } = value;
  return Number.isSafeInteger(id) || (typeof id === 'string' && fitsPath(id));
}
