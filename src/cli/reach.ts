import type { TransportError } from '../core/transport.ts';

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
