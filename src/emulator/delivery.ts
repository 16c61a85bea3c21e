import type { HttpResponse } from '../core/transport.ts';
import type { FaultAction } from './faults.ts';

/** The part of an exchange that reaches the client: an answer, a part of one, or nothing. */
export type Exchange =
  | { readonly kind: 'answer'; readonly response: HttpResponse }
  /** The connection breaks after `sentBytes` of the body. */
  | { readonly kind: 'truncated'; readonly response: HttpResponse; readonly sentBytes: number }
  | { readonly kind: 'reset' }
  | { readonly kind: 'refused' };

/** The exchange when the fault prevents any effect of the request; null: the fault does not prevent it. */
export function deliverWithoutEffect(fault: FaultAction | null): Exchange | null {
  switch (fault?.do) {
    case 'refuse':
      return { kind: 'refused' };
    case 'reset':
    case 'html':
    case 'redirect':
      return fault.effect === 'done' ? null : spoil(fault);
    default:
      return null;
  }
}

/** The exchange after the fault has acted on the answer. */
export function deliver(fault: FaultAction | null, response: HttpResponse): Exchange {
  switch (fault?.do) {
    case 'reset':
    case 'html':
    case 'redirect':
      return spoil(fault);
    case 'truncate': {
      const bytes = Buffer.byteLength(response.body);
      return {
        kind: 'truncated',
        response,
        sentBytes: Math.min(fault.keep ?? Math.floor(bytes / 2), bytes - 1),
      };
    }
    case 'malformed':
      return { kind: 'answer', response: { ...response, body: `${response.body.slice(0, -1)},` } };
    default:
      return { kind: 'answer', response };
  }
}

function spoil(fault: FaultAction & { do: 'reset' | 'html' | 'redirect' }): Exchange {
  if (fault.do === 'reset') return { kind: 'reset' };
  const status = fault.status ?? (fault.do === 'html' ? 502 : 302);
  const body = `<html><head><title>${status}</title></head><body><h1>${status}</h1><hr>proxy</body></html>`;
  const headers = {
    'content-type': 'text/html',
    ...(fault.do === 'redirect' ? { location: fault.location ?? '/login' } : {}),
  };
  return { kind: 'answer', response: { status, headers, body } };
}
