import type { HttpRequest, HttpResponse } from '../core/transport.ts';

/** Whether the answer says that a task has ended. No client may ask for an ended task again. */
export function isEndedTask(response: HttpResponse | undefined): boolean {
  if (response?.status !== 200 || !isConclusive(response)) return false;
  return (JSON.parse(response.body) as { data?: { is_terminal?: boolean } }).data?.is_terminal === true;
}

/** A proxy's page or a broken body proves nothing: the API did not write it. */
export function isConclusive({ headers, body }: HttpResponse): boolean {
  if (headers['x-request-id'] === undefined) return false;
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
}

/** The code of a refusal, or its status where it has none. */
export function refusalOf(response: HttpResponse): string | undefined {
  if (response.status < 400 || response.status >= 500 || !isConclusive(response)) return undefined;
  return (JSON.parse(response.body) as { code?: string }).code ?? `http_${response.status}`;
}

/** Its body is made invalid, so that the answer shows whether its key is in use and nothing can be carried out. */
export function isProbe({ body }: HttpRequest): boolean {
  return body?.includes('"vdcsync_probe":') === true;
}

/** The names of the boundaries that a request crosses. */
export function boundariesOf(request: HttpRequest): readonly string[] {
  const path = new URL(request.url).pathname
    .slice(3)
    .replace(/\/(\d+|uiso-\d+|task-\w+|net\d+|\d{4}-\d\d-[^/]+)(?=\/|$)/g, '/{id}');
  const line = `${request.method} ${path}`;
  if (request.method === 'GET') return ['read', line];
  return ['write', line, ...(isProbe(request) ? ['probe', `probe ${line}`] : [])];
}

/** A request as a line of the trace. */
export function describe({ method, url, body, headers }: HttpRequest): string {
  const key = headers['idempotency-key'] ?? '';
  return `${method} ${new URL(url).pathname.slice(3)} ${body ?? ''} [${key.slice(-6)}]`;
}
