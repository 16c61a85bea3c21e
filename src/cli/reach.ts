import { ApiProblem } from '../core/errors.ts';
import { newToken } from '../core/remedy.ts';
import { TransportError } from '../core/transport.ts';

/** The failure, and the advice if there is any; `undefined` for an error that does not come from a request. */
export function whyFailed(error: unknown): { problem: string; advice?: string } | undefined {
  if (error instanceof ApiProblem) return whyRefused(error);
  return error instanceof TransportError ? whyUnreached(error) : undefined;
}

/** The reason why the API was not read, in few words. Other errors are thrown again. */
export function whyNotRead(error: unknown): string {
  if (error instanceof TransportError) return whyUnreached(error).problem;
  if (error instanceof ApiProblem) return `the API refuses: ${error.message}`;
  throw error;
}

/** The failure, its reason, and the advice for it. An answer that is not of the API shows that something was reached. */
export function whyUnreached({ code, message }: TransportError): { problem: string; advice: string } {
  if (code === 'UNREADABLE_ANSWER')
    return {
      problem: `the answer does not come from the API: ${message}`,
      advice: 'check VDC_BASE_URL, and any proxy in between',
    };
  if (code === 'UNUSABLE_ID') return { problem: message, advice: 'report this to the provider' };
  return { problem: `the API cannot be reached: ${message} [${code}]`, advice: adviceFor(code) };
}

/** The refusal with its request, and the advice for it, if there is any. */
function whyRefused(error: ApiProblem): { problem: string; advice?: string } {
  const { message, requestId } = error;
  const where = requestId === null ? '' : ` (request ${requestId})`;
  const advice = adviceForRefusal(error);
  return { problem: `${message.replace(/\.$/, '')}${where}`, ...(advice === undefined ? {} : { advice }) };
}

function adviceForRefusal({ status, code, meaning }: ApiProblem): string | undefined {
  if (status === 401) return `the token is unknown, expired or revoked: ${newToken}`;
  if (code === 'insufficient_privileges')
    return 'the token belongs to a team member without this permission. Change the permissions in the client area';
  if (status === 403) return 'the token may not do this: changes need a token that may read and write';
  if (meaning === 'no_project') return 'check VDC_BASE_URL: its path does not lead to this API';
  if (meaning === 'undocumented')
    return 'check VDC_BASE_URL: it may name another service, or another version of the API';
  if (status >= 500)
    return 'the fault is in the API. Run the command again later. If the fault lasts, report the request to the provider';
  return undefined;
}

function adviceFor(code: string): string {
  if (untrusted.has(code))
    return 'if its certificate comes from your own authority, set NODE_EXTRA_CA_CERTS to the file of that authority';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'use the host name of the certificate in VDC_BASE_URL';
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return 'the server needs a valid certificate; also check the clock of this machine';
  return 'check VDC_BASE_URL and the network';
}

const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
