import { ConfigError, messageOf } from '../core/errors.ts';
import type { HiddenTexts } from '../core/hidden-texts.ts';
import { digestOf, given, type Json, namesIn } from '../core/json.ts';
import {
  type AnsweredTask,
  type DocumentedWrite,
  type Probe,
  probeField,
  type WriteName,
  type WritePort,
  type WriteRequest,
  type WriteResult,
} from '../core/ports.ts';
import {
  type ApiProfile,
  type OperationTemplate,
  presumedCall,
  type UndocumentedWrite,
} from '../core/profile.ts';
import type { TaskId } from '../core/resources.ts';
import { fitsPath } from '../core/text.ts';
import { TransportError } from '../core/transport.ts';
import { excerptOf, isRecord } from './answer.ts';
import type { Call } from './call.ts';
import type { Exchanged, Pipeline } from './pipeline.ts';

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
      // The first two probes send no value of the body, so they need none that the environment had.
      const opened = typeof request.probe === 'number' ? request : hidden.open(request);
      const built = buildWrite(opened, profile);
      const isProbe = request.probe !== undefined;
      const call = { ...toCall(built, idempotencyKey, token), sort: request.name, isProbe, mayGo };
      const answer = await pipeline.exchange(call);
      const result = toResult(answer, built);
      if (token !== undefined) learn(answer.sentUnder, request.name, result);
      return result;
    } catch (error) {
      const reason = excerptOf(messageOf(error));
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
    ...given({ token, body: built.body }),
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
    ...given({ retryAfterMs, ofToken: answer.ofToken }),
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

/** A write as HTTP, with the requirements for its answer. */
interface BuiltWrite {
  readonly method: string;
  /** Below the base URL. */
  readonly path: string;
  /** The exact text that is sent. */
  readonly body?: string;
  /** The document shows a `task` next to the data. */
  readonly documentsTask: boolean;
  /** Only the answer identifies the created resource, so the answer must contain `data.id`. */
  readonly needsId: boolean;
}

interface Endpoint {
  readonly method: string;
  readonly path: string;
  /** `none` also sends no content type; `optional` sends `{}` if the request has no body. */
  readonly body: 'required' | 'optional' | 'none';
  readonly task?: true;
  readonly id?: true;
  /** The documented field that a probe gives a wrong type. */
  readonly probe?: string;
  /** The field that other fields are checked by, so a request with impossible values keeps it. */
  readonly kept?: string;
  /** The presumed duration of its task in ms, until tasks have been observed. */
  readonly guessMs?: number;
}

/**
 * Every documented write. Braces mark the ids that `WriteRequest.path` must contain.
 * If there is only one id, its name does not matter.
 *
 * @source API §4
 */
const writeEndpoints: Readonly<Record<DocumentedWrite, Endpoint>> = {
  create_network: { method: 'POST', path: '/networks', body: 'required', task: true, probe: 'cidr' },
  delete_network: { method: 'DELETE', path: '/networks/{id}', body: 'none', task: true },
  // @assumption A41 `{}` is the same as no body
  allocate_ip: { method: 'POST', path: '/ips', body: 'optional', id: true, probe: 'server_type_id' },
  release_ip: { method: 'DELETE', path: '/ips/{id}', body: 'none' },
  add_iso: {
    method: 'POST',
    path: '/isos',
    body: 'required',
    task: true,
    id: true,
    probe: 'url',
    guessMs: 10_000,
  },
  delete_iso: { method: 'DELETE', path: '/isos/{id}', body: 'none' },
  create_server: {
    method: 'POST',
    path: '/servers',
    body: 'required',
    task: true,
    id: true,
    probe: 'server_type_id',
    kept: 'server_type_id',
    guessMs: 10_000,
  },
  delete_server: { method: 'DELETE', path: '/servers/{id}', body: 'none', task: true, guessMs: 6_000 },
  add_network_interface: {
    method: 'POST',
    path: '/servers/{server_id}/network-interfaces',
    body: 'required',
    task: true,
    probe: 'network_id',
  },
  put_firewall: { method: 'PUT', path: '/servers/{server_id}/firewall', body: 'required' },
  // @assumption A21 no body, no content type
  take_backup: { method: 'POST', path: '/servers/{server_id}/backups', body: 'none', id: true },
};

/** Rather short: an early poll costs a request, a late one costs time. */
export function guessedDurationMs(name: WriteName): number {
  return (isUndocumented(name) ? undefined : writeEndpoints[name].guessMs) ?? 4_000;
}

/** The creations whose key a probe can ask: those of the project, and those inside a server. */
export const probedCreations: readonly { readonly name: DocumentedWrite; readonly inServer: boolean }[] =
  namesIn(writeEndpoints)
    .filter((name) => writeEndpoints[name].probe !== undefined)
    .map((name) => ({ name, inServer: writeEndpoints[name].path.includes('{server_id}') }));

/**
 * Turns a write into its method, path and text. The same request always has the same text,
 * so that a resend under the same key is identical to the byte.
 *
 * @throws ConfigError if the profile does not enable an undocumented operation, or an id
 *   or the body is missing.
 */
export function buildWrite(request: WriteRequest, profile: ApiProfile): BuiltWrite {
  const { name } = request;
  if (isUndocumented(name)) {
    return fromTemplate(request, name, profile.operations[name]);
  }
  const endpoint = writeEndpoints[name];
  const body = probeText(request, endpoint) ?? bodyText(request, endpoint.body);
  return {
    method: endpoint.method,
    path: fillPath(endpoint.path, request),
    ...(body === undefined ? {} : { body }),
    documentsTask: endpoint.task === true,
    needsId: endpoint.id === true,
  };
}

function bodyText({ name, body }: WriteRequest, rule: Endpoint['body']): string | undefined {
  if (rule === 'none') return undefined;
  if (body === undefined && rule === 'required') throw new ConfigError(`${name} is not sent without a body.`);
  return JSON.stringify(body ?? {});
}

/**
 * The text of a probe. A backup has no documented body, so its probe is invalid by the unknown field alone: one that is
 * carried out nevertheless is the backup that the key was for.
 */
function probeText(
  { probe, body }: WriteRequest,
  { probe: field, kept }: { readonly probe?: string | undefined; readonly kept?: string },
): string | undefined {
  if (probe === undefined) return undefined;
  const mistyped = field === undefined ? {} : { [field]: { probe } };
  const fields = isRecord(body) ? body : {};
  return JSON.stringify({ ...bodyOf(probe, { fields, mistyped, kept }), [probeField]: probe });
}

function bodyOf(
  probe: Probe,
  of: { readonly fields: object; readonly mistyped: object; readonly kept: string | undefined },
): object {
  switch (probe) {
    case 'proof':
      return of.fields;
    case 'impossible': {
      const changed = Object.entries(of.fields).flatMap(([name, value]) => {
        const other = name === of.kept ? undefined : impossible(value);
        return other === undefined ? [] : [[name, other] as const];
      });
      // Without a field that can get an impossible value, the body has a wrong type.
      return { ...of.fields, ...(changed.length === 0 ? of.mistyped : Object.fromEntries(changed)) };
    }
    default:
      return of.mistyped;
  }
}

/** A well-formed value that refers to nothing, or that no resource can have; `undefined` if there is none. */
function impossible(value: unknown): unknown {
  if (typeof value === 'number') return 2 ** 31 - 1;
  if (typeof value === 'string') return 'vdcsync-probe';
  return Array.isArray(value) && value.length > 0 ? value.slice(0, 1).map(impossible) : undefined;
}

/** Methods a write may have. */
const writeMethods: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

function isUndocumented(name: WriteName): name is UndocumentedWrite {
  return !Object.hasOwn(writeEndpoints, name);
}

function fromTemplate(
  request: WriteRequest,
  name: UndocumentedWrite,
  template: OperationTemplate | undefined,
): BuiltWrite {
  if (template === undefined) {
    throw new ConfigError(`${name} is undocumented: it is sent only where the API profile enables it.`);
  }
  const { method: usual = '', path: presumed = '' } = presumedCall(name) ?? {};
  const method = (template.method ?? usual).toUpperCase();
  const path = template.path ?? presumed;
  if (!writeMethods.has(method)) throw new ConfigError(`${name}: ${method} is no method of a write.`);
  const filled = template.body === undefined ? request.body : fillBody(template.body, request);
  const [field] = Object.keys((filled as object | undefined) ?? {});
  const body =
    probeText({ ...request, body: filled as Json }, { probe: field }) ??
    (filled === undefined ? undefined : JSON.stringify(filled));
  return {
    method,
    path: fillPath(path, request),
    ...(body === undefined ? {} : { body }),
    documentsTask: false,
    needsId: false,
  };
}

const placeholder = /\{([a-z_][a-z0-9_]*)\}/gi;

/**
 * Replaces `{names}` with ids. A name that the request does not know takes the id
 * at its position (a server comes before the resources inside it), so that a profile may use
 * the names of its own documentation.
 */
function fillPath(template: string, { name, path }: WriteRequest): string {
  if (!/^\/[^/\\]/.test(template) || /\/\.{1,2}(\/|$)/.test(template)) {
    throw new ConfigError(`${name}: the path ${template} does not start below the base URL.`);
  }
  const wanted = [...template.matchAll(placeholder)].map(([, each]) => each ?? '');
  const inOrder = Object.entries(path)
    .sort(([a], [b]) => Number(b.startsWith('server')) - Number(a.startsWith('server')))
    .map(([, id]) => id);
  const byName = wanted.every((each) => each in path);
  const ids = wanted.map((each, index) => (byName ? path[each] : inOrder[index]));
  if (!byName && ids.length !== inOrder.length) {
    throw new ConfigError(
      `${name}: the path ${template} needs other ids than ${Object.keys(path).join(', ')}.`,
    );
  }
  let next = 0;
  return template.replace(placeholder, () => pathSegment(ids[next++]));
}

/** An id as one segment of a path, from which nothing can lead to another resource. */
export function pathSegment(id: string | number | undefined): string {
  const text = String(id ?? '');
  if (!fitsPath(text)) throw new ConfigError(`${JSON.stringify(text)} cannot be an id in a path.`);
  return encodeURIComponent(text);
}

/** A string that is one `{name}` alone takes that field of the request's body, or that id of its path. */
function fillBody(template: unknown, request: WriteRequest): unknown {
  if (Array.isArray(template)) return template.map((each) => fillBody(each, request));
  if (template !== null && typeof template === 'object') {
    return Object.fromEntries(Object.entries(template).map(([key, each]) => [key, fillBody(each, request)]));
  }
  const field = typeof template === 'string' ? /^\{([a-z_][a-z0-9_]*)\}$/i.exec(template)?.[1] : undefined;
  if (field === undefined) return template;
  const { body } = request;
  const fields = isRecord(body) ? body : {};
  const value = new Map<string, unknown>([...Object.entries(request.path), ...Object.entries(fields)]).get(
    field,
  );
  if (value === undefined) throw new ConfigError(`${request.name}: no value is known for {${field}}.`);
  return value;
}
