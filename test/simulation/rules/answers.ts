import type { HttpResponse } from '../../../src/core/transport.ts';

/** A proxy's page or a broken body proves nothing: the API did not write it. */
export function isConclusive(response: HttpResponse): boolean {
  const known = conclusive.get(response);
  if (known !== undefined) return known;
  const found = response.headers['x-request-id'] !== undefined && isJson(response.body);
  conclusive.set(response, found);
  return found;
}

/** Each answer is judged several times. */
const conclusive = new WeakMap<HttpResponse, boolean>();

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export function isReplayed(response: HttpResponse | undefined): boolean {
  return response?.headers['idempotency-replayed'] !== undefined;
}
