import { createHmac, timingSafeEqual } from 'node:crypto';
import { isSame } from './secrets.ts';

/** Looks up a request's header by its name in lower case. */
export type HeaderOf = (name: string) => string | undefined;

/** How one forge signs what it delivers. */
export interface Forge {
  /** Whether the delivery was made by somebody who knows the secret. Takes as long for any answer. */
  isGenuine(header: HeaderOf, body: Uint8Array, secret: string): boolean;
  /** Names one delivery; the same again is a repetition. */
  deliveryId(header: HeaderOf): string | undefined;
  /** What happened, for the log alone. */
  event(header: HeaderOf): string | undefined;
}

function hmacHex(body: Uint8Array, secret: string): string {
  return createHmac('sha256', secret).update(body).digest('hex');
}

/** Over the raw bytes as they came: parsed and written again, they would be others. */
function isSigned(given: string | undefined, prefix: string, body: Uint8Array, secret: string): boolean {
  const wanted = Buffer.from(`${prefix}${hmacHex(body, secret)}`);
  const found = Buffer.from(given ?? '');
  return found.length === wanted.length && timingSafeEqual(found, wanted);
}

/**
 * The forges whose deliveries are understood, by the last segment of the path.
 *
 * - GitHub signs with `X-Hub-Signature-256: sha256=…`.
 * - GitLab sends the secret itself in `X-Gitlab-Token`; there is nothing signed.
 * - Gitea signs with `X-Gitea-Signature: …`, Forgejo also with `X-Forgejo-Signature`.
 * - Bitbucket (Cloud and Data Center) signs with `X-Hub-Signature: sha256=…`.
 */
export const forges: ReadonlyMap<string, Forge> = new Map<string, Forge>([
  [
    'github',
    {
      isGenuine: (header, body, secret) => isSigned(header('x-hub-signature-256'), 'sha256=', body, secret),
      deliveryId: (header) => header('x-github-delivery'),
      event: (header) => header('x-github-event'),
    },
  ],
  [
    'gitlab',
    {
      isGenuine: (header, _body, secret) => isSame(header('x-gitlab-token') ?? '', secret),
      // Stays the same when GitLab tries again.
      deliveryId: (header) => header('idempotency-key') ?? header('x-gitlab-event-uuid'),
      event: (header) => header('x-gitlab-event'),
    },
  ],
  [
    'gitea',
    {
      isGenuine: (header, body, secret) =>
        isSigned(header('x-forgejo-signature') ?? header('x-gitea-signature'), '', body, secret),
      deliveryId: (header) => header('x-gitea-delivery') ?? header('x-forgejo-delivery'),
      event: (header) => header('x-gitea-event') ?? header('x-forgejo-event'),
    },
  ],
  [
    'bitbucket',
    {
      isGenuine: (header, body, secret) => isSigned(header('x-hub-signature'), 'sha256=', body, secret),
      deliveryId: (header) => header('x-request-uuid') ?? header('x-request-id'),
      event: (header) => header('x-event-key'),
    },
  ],
]);
