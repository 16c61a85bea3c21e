import type { HttpResponse } from '../core/transport.ts';

/** The stand-in for the document's {docs_url}. */
const DOCS_URL = 'https://docs.vdc.example';

export interface InvalidParam {
  name: string;
  reason: string;
}

interface RefusalDetails {
  readonly invalidParams?: InvalidParam[];
  readonly headers?: Record<string, string>;
}

/**
 * A refusal by the service, thrown wherever it is decided and answered as a
 * problem document. `@source API §7`
 */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly code: string;
  readonly detail: string | undefined;
  readonly details: RefusalDetails;

  constructor(status: number, code: string, detail?: string, details: RefusalDetails = {}) {
    super(detail ?? code);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.details = details;
  }
}

/** A validation failure that names the offending fields. */
export function invalid(...invalidParams: InvalidParam[]): Refusal {
  return new Refusal(422, 'invalid_request', 'The request is not valid.', { invalidParams });
}

/** The refusal as `application/problem+json`. `@source API §7` */
export function problemResponse(refusal: Refusal, requestId: string): HttpResponse {
  const { detail } = refusal;
  const { invalidParams, headers } = refusal.details;
  const body = {
    type: `${DOCS_URL}/errors/${refusal.code}`,
    title: TITLES[refusal.status] ?? 'Error',
    status: refusal.status,
    code: refusal.code,
    ...(detail === undefined ? {} : { detail }),
    request_id: requestId,
    ...(invalidParams === undefined ? {} : { invalid_params: invalidParams }),
  };
  return {
    status: refusal.status,
    headers: { 'content-type': 'application/problem+json', 'x-request-id': requestId, ...headers },
    body: JSON.stringify(body),
  };
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};
