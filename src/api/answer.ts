import type { Clock } from '../core/clock.ts';
import { given } from '../core/json.ts';
import { printable } from '../core/text.ts';
import type { HttpResponse } from '../core/transport.ts';

/** A refusal as the API words it. @source API §7 */
export interface Problem {
  /** `null` if the body has no code. */
  readonly code: string | null;
  readonly title?: string;
  readonly detail?: string;
  readonly invalidParams?: readonly { readonly name: string; readonly reason: string }[];
}

/**
 * One complete HTTP answer. Its sort depends on whether the API itself must have written the answer.
 *
 * - `success`: a 2xx by the API; `body` is its JSON, or `malformed` says why there is none
 * - `problem`: a conclusive refusal: identified, parseable, of the expected media type
 * - `unidentified`: a proxy's page, a redirect, a cut-off error: it says nothing about the effect
 */
export type ApiAnswer = AnswerHead &
  (
    | { readonly sort: 'success'; readonly requestId: string; readonly text: string; readonly body: unknown }
    | { readonly sort: 'malformed'; readonly requestId: string; readonly malformed: string }
    | {
        readonly sort: 'problem';
        readonly requestId: string;
        /** Of the documented media type, not plain JSON that merely has a code. */
        readonly documented: boolean;
        readonly problem: Problem;
      }
    | { readonly sort: 'unidentified'; readonly reason: string }
  );

interface AnswerHead {
  readonly status: number;
  /** An earlier answer, given again for its idempotency key. */
  readonly replayed: boolean;
  /** Real milliseconds. */
  readonly retryAfterMs?: number;
  /** Methods that the path accepts, of a 405. @source API §4 rule 7 */
  readonly allow?: readonly string[];
}

/**
 * Reads one HTTP answer. An answer is the API's own when it carries `X-Request-Id` and the
 * media type the document promises.
 *
 * @source API §4 common rules 1, 2; §7
 */
export function readAnswer(response: HttpResponse): ApiAnswer {
  const head = readHead(response);
  const requestId = response.headers['x-request-id']?.trim();
  const mediaType = mediaTypeOf(response);
  const { status } = response;
  if (status >= 300 && status < 400)
    return unidentified(head, `${status} is a redirect, which vdcsync does not follow`);
  if (!requestId)
    return unidentified(head, `${status} without X-Request-Id, so it does not come from the API`);
  if (status >= 200 && status < 300) return readSuccess(head, requestId, mediaType, response.body);
  const body = parseBounded(response.body);
  const problem = isRecord(body) ? readProblem(body) : undefined;
  const documented = mediaType === 'application/problem+json';
  const coded = mediaType === 'application/json' && typeof problem?.code === 'string';
  if (problem === undefined || !(documented || coded)) {
    return unidentified(
      head,
      `${status} with a body that is not a problem document (${mediaType || 'no type'})`,
    );
  }
  return { ...head, sort: 'problem', requestId: headerText(requestId), documented, problem };
}

function readSuccess(head: AnswerHead, id: string, mediaType: string, text: string): ApiAnswer {
  const requestId = headerText(id);
  if (text.trim() === '') return { ...head, sort: 'malformed', requestId, malformed: 'the body is empty' };
  if (mediaType !== 'application/json') {
    return unidentified(head, `${head.status} of type ${mediaType || 'none'}, not application/json`);
  }
  const body = parseBounded(text);
  if (body === undefined)
    return {
      ...head,
      sort: 'malformed',
      requestId,
      malformed: isTooDeep(text) ? 'the body is nested too deeply' : 'the body is not JSON',
    };
  return { ...head, sort: 'success', requestId, text, body };
}

function readHead({ status, headers }: HttpResponse): AnswerHead {
  const retryAfterMs = readRetryAfter(headers['retry-after'], headers.date);
  const allow = status === 405 && headers.allow !== undefined ? readAllow(headers.allow) : undefined;
  return {
    status,
    replayed: headers['idempotency-replayed']?.trim().toLowerCase() === 'true',
    ...given({ retryAfterMs, allow }),
  };
}

function readAllow(header: string): string[] {
  return header
    .split(',')
    .flatMap((method) => /^\s*([A-Za-z]{1,20})\s*$/.exec(method)?.[1]?.toUpperCase() ?? []);
}

/** Both forms of HTTP: seconds, or a date, which is taken against the answer's own. */
function readRetryAfter(value: string | undefined, date: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(value)) return Number(value) * 1000;
  const ms = Date.parse(value) - Date.parse(date ?? '');
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function readProblem(body: Record<string, unknown>): Problem {
  const text = (name: string) => (typeof body[name] === 'string' ? excerptOf(body[name]) : undefined);
  const title = text('title');
  const detail = text('detail');
  const invalidParams = readInvalidParams(body.invalid_params);
  return {
    code: text('code') ?? null,
    ...given({ title, detail, invalidParams }),
  };
}

/** A report with more of them is no more useful. */
const mostInvalidParams = 50;

function readInvalidParams(value: unknown): Problem['invalidParams'] {
  if (!Array.isArray(value)) return undefined;
  return value
    .filter(isRecord)
    .slice(0, mostInvalidParams)
    .map(({ name, reason }) => ({
      name: typeof name === 'string' ? excerptOf(name) : '',
      reason: typeof reason === 'string' ? excerptOf(reason) : '',
    }));
}

function unidentified(head: AnswerHead, reason: string): ApiAnswer {
  return { ...head, sort: 'unidentified', reason };
}

function mediaTypeOf({ headers }: HttpResponse): string {
  return headerText((headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '');
}

/** Whether the value is a JSON object: neither `null` nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** Documented bodies have about six levels. Deeper ones could exhaust the stack of recursive code. */
const mostLevels = 64;

/** The value of a JSON text from outside; `undefined` if the text is not JSON, or is nested too deeply. */
export function parseBounded(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether brackets outside of strings are nested too deeply. The check reads only the text and builds no value. */
function isTooDeep(text: string): boolean {
  let levels = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === backslash) at += 1;
      else if (code === quote) inString = false;
    } else if (code === quote) inString = true;
    else if (code === openBracket || code === openBrace) levels += 1;
    else if (code === closeBracket || code === closeBrace) levels -= 1;
    if (levels > mostLevels) return true;
  }
  return false;
}

const [quote, backslash] = codes('"\\');
const [openBracket, closeBracket, openBrace, closeBrace] = codes('[]{}');

function codes(characters: string): number[] {
  return [...characters].map((each) => each.charCodeAt(0));
}

/** The longest piece of server text that is passed on, in characters. */
const maxLength = 1_000;
/** The limit for a header, because every line of the log contains it. */
const maxHeaderLength = 200;

/** Server text fit for a message: bounded, and without control or direction characters. */
export function excerptOf(text: string, most = maxLength): string {
  const clean = printable(text).trim();
  return clean.length > most ? `${clean.slice(0, most).toWellFormed()}…` : clean;
}

/** A header's value, fit for a message. */
function headerText(value: string): string {
  return excerptOf(value, maxHeaderLength);
}

/** The API's own time. The client measures the age of the API's timestamps with this clock. */
export interface ApiClock {
  /** Takes the time from an answer's `Date`, if the answer is the API's. */
  see(response: HttpResponse): void;
  /** Milliseconds since the epoch; `undefined` until a `Date` was seen. */
  now(): number | undefined;
}

/**
 * The last `Date` header, advanced by the clock since.
 *
 * @assumption A35 `Date` is the clock of `created_at`
 */
export function createApiClock(clock: Clock): ApiClock {
  let seen: { readonly date: number; readonly at: number } | undefined;
  return {
    see: ({ headers }) => {
      const date = Date.parse(headers.date ?? '');
      // A proxy's page carries the proxy's time.
      if (Number.isFinite(date) && headers['x-request-id']) seen = { date, at: clock.monotonic() };
    },
    now: () => (seen === undefined ? undefined : seen.date + (clock.monotonic() - seen.at)),
  };
}
