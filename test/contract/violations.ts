import type { HttpRequest, HttpResponse } from '../../src/core/transport.ts';
import type { DocumentedOperation, OpenApiDocument } from './document.ts';

/** Statuses that may come before the method of a path is looked at. */
const BEFORE_ROUTING = [401, 403, 429];

/**
 * Everything in which one exchange departs from the document; empty when it keeps to it.
 * Checks the answer (status, headers, media type, body) and, for a success, that the request was one that the
 * document allows: a strict service must not accept what the document refuses.
 */
export function violations(
  document: OpenApiDocument,
  baseUrl: string,
  request: HttpRequest,
  answer: HttpResponse,
): readonly string[] {
  const path = request.url.slice(baseUrl.length).split('?', 1)[0] ?? '';
  const documented = document.pathOf(path);
  const operation = documented === undefined ? undefined : document.operation(request.method, documented);
  const found = [...everywhere(answer)];
  if (operation !== undefined) found.push(...declared(document, operation, answer));
  else if (documented !== undefined) found.push(...wrongMethod(document, documented, answer));
  else if (![404, ...BEFORE_ROUTING].includes(answer.status)) {
    found.push(`an unknown path answered ${answer.status}, not 404`);
  }
  if (answer.status >= 400) found.push(...problem(document, answer));
  if (operation !== undefined && answer.status < 300) found.push(...accepted(document, operation, request));
  return found.map((what) => `${request.method} ${path} → ${answer.status}: ${what}`);
}

function everywhere(answer: HttpResponse): string[] {
  const found: string[] = [];
  if (!answer.headers['x-request-id']) found.push('no X-Request-Id (§4.2)');
  for (const name of Object.keys(answer.headers)) {
    if (/rate-?limit|remaining/i.test(name))
      found.push(`${name}: no header tells the remaining allowance (§8)`);
  }
  return found;
}

function declared(document: OpenApiDocument, operation: DocumentedOperation, answer: HttpResponse): string[] {
  const pointer = document.responsePointer(operation, answer.status);
  if (pointer === undefined) return ['the status is not declared'];
  return matches(document, pointer, answer);
}

function wrongMethod(document: OpenApiDocument, path: string, answer: HttpResponse): string[] {
  if (BEFORE_ROUTING.includes(answer.status)) return [];
  if (answer.status !== 405) return ['an unsupported method of an existing path is answered with 405 (§4.7)'];
  const allowed = (answer.headers.allow ?? '').split(/, */);
  return [
    ...matches(document, document.follow('/x-method-not-allowed'), answer),
    ...document
      .methodsOf(path)
      .filter((method) => !allowed.includes(method))
      .map((method) => `Allow does not list ${method}, which the path accepts`),
  ];
}

/** Headers, media type and body against one response object. */
function matches(document: OpenApiDocument, pointer: string, answer: HttpResponse): string[] {
  const found: string[] = [];
  const headers = (document.find(`${pointer}/headers`) ?? {}) as Record<string, unknown>;
  for (const name of Object.keys(headers)) {
    const header = document.follow(`${pointer}/headers/${name}`);
    const value = answer.headers[name.toLowerCase()];
    if (value === undefined) {
      if (document.find(`${header}/required`) === true) found.push(`no ${name} header`);
      continue;
    }
    const typed = document.find(`${header}/schema/type`) === 'integer' ? Number(value) : value;
    found.push(...document.complaints(`${header}/schema`, typed).map((what) => `header ${name}: ${what}`));
  }
  const content = document.at(`${pointer}/content`) as Record<string, unknown>;
  const type = (answer.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!(type in content))
    return [...found, `content type "${type}", not ${Object.keys(content).join(' or ')}`];
  const body = parsed(answer.body);
  if (body === undefined) return [...found, 'the body is not JSON'];
  const schema = `${pointer}/content/${type.replaceAll('/', '~1')}/schema`;
  return [...found, ...document.complaints(schema, body).map((what) => `body: ${what}`)];
}

/** What the members of a problem owe to each other, to the headers and to the table of codes. */
function problem(document: OpenApiDocument, answer: HttpResponse): string[] {
  const type = (answer.headers['content-type'] ?? '').split(';', 1)[0];
  if (type !== 'application/problem+json') return [`an error of type "${type}", not a problem (§7)`];
  const body = parsed(answer.body);
  if (typeof body !== 'object' || body === null) return ['the problem is not an object'];
  const complaints = document.complaints('/components/schemas/Problem', body);
  if (complaints.length > 0) return complaints.map((what) => `problem: ${what}`);
  const { status, code, type: page, request_id: requestId } = body as Record<string, unknown>;
  const found: string[] = [];
  if (status !== answer.status) found.push(`status ${String(status)} in the problem`);
  if (requestId !== answer.headers['x-request-id']) found.push('request_id is not the X-Request-Id header');
  if (!String(page).endsWith(`/errors/${String(code)}`))
    found.push(`type ${String(page)} is not the page of ${String(code)}`);
  const known = document.knownCodes.find((entry) => entry.code === code);
  if (known?.status !== undefined && known.status !== answer.status) {
    found.push(`${known.code} is answered with ${known.status}`);
  }
  const retryAfter = answer.headers['retry-after'];
  if (known?.retryAfter === 'always' && retryAfter === undefined)
    found.push(`${known.code} carries Retry-After`);
  if (known?.retryAfter === 'never' && retryAfter !== undefined)
    found.push(`${known.code} carries no Retry-After`);
  return found;
}

/** What the service should have refused. */
function accepted(document: OpenApiDocument, operation: DocumentedOperation, request: HttpRequest): string[] {
  const found: string[] = [];
  const parameters = Object.keys((document.find(`${operation.pointer}/parameters`) ?? []) as object).map(
    (index) => document.follow(`${operation.pointer}/parameters/${index}`),
  );
  const named = (place: string) =>
    parameters
      .filter((pointer) => document.at(`${pointer}/in`) === place)
      .map((pointer) => String(document.at(`${pointer}/name`)));
  for (const name of new URL(request.url).searchParams.keys()) {
    if (!named('query').includes(name)) found.push(`accepted the unknown query parameter ${name} (§4.3)`);
  }
  for (const pointer of parameters.filter((candidate) => document.at(`${candidate}/in`) === 'header')) {
    const value = request.headers[String(document.at(`${pointer}/name`)).toLowerCase()];
    if (value === undefined) continue;
    found.push(
      ...document.complaints(`${pointer}/schema`, value).map((what) => `accepted a header that ${what}`),
    );
  }
  if (request.body === undefined || request.body === '') return found;
  const schema = `${operation.pointer}/requestBody/content/application~1json/schema`;
  if (document.find(schema) === undefined) return [...found, 'accepted a body where none is documented'];
  if (!(request.headers['content-type'] ?? '').startsWith('application/json'))
    found.push('accepted a body not sent as JSON');
  const complaints = document.complaints(schema, trimmed(parsed(request.body)));
  return [...found, ...complaints.map((what) => `accepted a body in which ${what}`)];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Published patterns and lengths describe the trimmed value (§4.3). */
export function trimmed(value: unknown): unknown {
  if (typeof value === 'string') return value.trim();
  if (Array.isArray(value)) return value.map(trimmed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, trimmed(inner)]));
}
