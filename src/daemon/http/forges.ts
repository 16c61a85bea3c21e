import { createHmac, timingSafeEqual } from 'node:crypto';
import { isSame } from './secrets.ts';

/** Looks up a request's header by its name in lower case. */
export type HeaderOf = (name: string) => string | undefined;

/** The proof that a delivery carries. Each secret is tried to its end, so that the time says nothing about it. */
export interface DeliveryProof {
  /** Takes the next raw bytes of the body. Serialized again, they could differ. */
  readonly take: (chunk: Uint8Array) => void;
  /** After the last byte: whether the sender knows one of the secrets. */
  readonly isGenuine: () => boolean;
}

/** How one forge signs a delivery. */
export interface WebhookForge {
  /** `undefined`: the headers alone show that the sender knows none of the secrets, so that no body needs to be read. */
  proof(header: HeaderOf, secrets: readonly string[]): DeliveryProof | undefined;
  /** Names one delivery; the same again is a repetition. */
  deliveryId(header: HeaderOf): string | undefined;
  /** The event, for the log alone. */
  event(header: HeaderOf): string | undefined;
}

/** An HMAC over the body, in hexadecimal digits. */
function signature(
  given: string | undefined,
  prefix: string,
  secrets: readonly string[],
): DeliveryProof | undefined {
  const found = given?.startsWith(prefix) === true ? given.slice(prefix.length) : '';
  if (!/^[0-9a-f]{64}$/.test(found)) return undefined;
  const digests = secrets.map((secret) => createHmac('sha256', secret));
  return {
    take: (chunk) => {
      for (const digest of digests) digest.update(chunk);
    },
    isGenuine: () =>
      digests.map((digest) => timingSafeEqual(digest.digest(), Buffer.from(found, 'hex'))).includes(true),
  };
}

/** The secret itself; nothing is signed. */
function token(given: string, secrets: readonly string[]): DeliveryProof | undefined {
  const isKnown = secrets.map((secret) => isSame(given, secret)).includes(true);
  return isKnown ? { take: () => {}, isGenuine: () => true } : undefined;
}

/**
 * The forges whose deliveries are understood, by the last segment of the path.
 *
 * - GitHub signs with `X-Hub-Signature-256: sha256=…`.
 * - GitLab sends the secret itself in `X-Gitlab-Token`, and no signature.
 * - Gitea signs with `X-Gitea-Signature: …`, Forgejo also with `X-Forgejo-Signature`.
 * - Bitbucket (Cloud and Data Center) signs with `X-Hub-Signature: sha256=…`.
 */
export const forges: ReadonlyMap<string, WebhookForge> = new Map<string, WebhookForge>([
  [
    'github',
    {
      proof: (header, secrets) => signature(header('x-hub-signature-256'), 'sha256=', secrets),
      deliveryId: (header) => header('x-github-delivery'),
      event: (header) => header('x-github-event'),
    },
  ],
  [
    'gitlab',
    {
      proof: (header, secrets) => token(header('x-gitlab-token') ?? '', secrets),
      // Stays the same when GitLab tries again.
      deliveryId: (header) => header('idempotency-key') ?? header('x-gitlab-event-uuid'),
      event: (header) => header('x-gitlab-event'),
    },
  ],
  [
    'gitea',
    {
      proof: (header, secrets) =>
        signature(header('x-forgejo-signature') ?? header('x-gitea-signature'), '', secrets),
      deliveryId: (header) => header('x-gitea-delivery') ?? header('x-forgejo-delivery'),
      event: (header) => header('x-gitea-event') ?? header('x-forgejo-event'),
    },
  ],
  [
    'bitbucket',
    {
      proof: (header, secrets) => signature(header('x-hub-signature'), 'sha256=', secrets),
      deliveryId: (header) => header('x-request-uuid') ?? header('x-request-id'),
      event: (header) => header('x-event-key'),
    },
  ],
]);
