import type { HttpResponse } from '../core/transport.ts';
import type { Step } from './call.ts';
import { invalid, Refusal } from './problem.ts';
import type { Readings } from './readings.ts';
import type { StoredAnswer } from './world.ts';

/** How long an answer stays under its key. `@source API §8` */
const KEY_RETENTION_MS = 86_400_000;

/** The request of a key. */
type KeyedRequest = Pick<Step, 'call' | 'project' | 'nowMs' | 'readings'>;

/** The key of a write, or null. Throws 422 for a key other than 8 to 255 printable characters. `@source API §4` */
export function readKey(header: string | undefined): string | null {
  if (header === undefined) return null;
  if (!isKey(header)) {
    throw invalid({ name: 'Idempotency-Key', reason: 'must be 8 to 255 printable characters' });
  }
  return header;
}

/** Has the text the form of a key? `@source API §4` */
export function isKey(text: string): boolean {
  return /^[\x20-\x7e]{8,255}$/.test(text);
}

/** Is the answer of another request stored under the key? */
export function holdsAnother(request: KeyedRequest, key: string): boolean {
  const answer = storedUnder(request, key);
  return answer !== undefined && !isOf(answer, request);
}

/**
 * The answer stored under the key, to be replayed; null when there is none.
 * Throws when the key was used for something else. `@source API §8` `@assumption A3` `@assumption A4` `@assumption A5`
 */
export function findAnswer(request: KeyedRequest, key: string): StoredAnswer | null {
  const { nowMs, readings } = request;
  const answer = storedUnder(request, key);
  if (answer === undefined) return null;
  if (!isOf(answer, request)) {
    const reason = 'was used for another request';
    if (readings.reusedKeyCode === 'invalid_request') throw invalid({ name: 'Idempotency-Key', reason });
    throw new Refusal(readings.reusedKeyStatus, readings.reusedKeyCode, `The key ${reason}.`);
  }
  if (readings.retentionFrom === 'last') answer.sinceMs = nowMs;
  return answer;
}

function storedUnder({ project, nowMs }: KeyedRequest, key: string): StoredAnswer | undefined {
  project.answers = project.answers.filter((answer) => nowMs - answer.sinceMs < KEY_RETENTION_MS);
  return project.answers.find((candidate) => candidate.key === key);
}

/** `@assumption A5` */
function isOf(answer: StoredAnswer, { call, readings }: KeyedRequest): boolean {
  const samePlace = answer.method === call.method && answer.path === (call.path ?? '');
  return sameBody(answer.body, call.request.body ?? '') && (samePlace || readings.keyMatches === 'body');
}

/** Whether answers of this status are stored: 5xx and 409 are not, other refusals are. `@source API §8` `@assumption A1` */
export function isStored(status: number, readings: Readings): boolean {
  if (status === 429) return readings.stored429;
  return status < 500 && status !== 409;
}

/** Keeps an answer under its key. */
export function storeAnswer(
  { call, project, nowMs }: KeyedRequest,
  key: string,
  response: HttpResponse,
): void {
  project.answers = project.answers.filter((answer) => answer.key !== key);
  project.answers.push({
    key,
    method: call.method,
    path: call.path ?? '',
    body: call.request.body ?? '',
    sinceMs: nowMs,
    status: response.status,
    headers: { ...response.headers },
    text: response.body,
  });
}

/** The stored answer as it was, request id included, and marked. `@source API §4` */
export function replay(answer: StoredAnswer): HttpResponse {
  return {
    status: answer.status,
    headers: { ...answer.headers, 'idempotency-replayed': 'true' },
    body: answer.text,
  };
}

/** Equal as JSON values where both are JSON: white space and the order of members do not make another body. */
function sameBody(one: string, other: string): boolean {
  return one === other || canonical(one) === canonical(other);
}

function canonical(text: string): string {
  if (text === '') return '';
  try {
    return JSON.stringify(sorted(JSON.parse(text)));
  } catch {
    return text;
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, member]) => [name, sorted(member)]);
}
