import { STATUS_CODES } from 'node:http';
import type { HttpResponse } from '../core/transport.ts';

/** The stand-in for the document's {docs_url}. */
const DOCS_URL = 'https://docs.vdc.example';

/** A field that the service refuses, by its path in the body or its name in the query. `@source API §7` */
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
    title: TITLES[refusal.status] ?? STATUS_CODES[refusal.status] ?? 'Error',
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

/** Where RFC 9110 has another phrase than Node. */
const TITLES: Readonly<Record<number, string>> = {
  413: 'Content Too Large',
  422: 'Unprocessable Content',
};
