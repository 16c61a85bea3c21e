import { createHmac, timingSafeEqual } from 'node:crypto';
import { Hono } from 'hono';
import type { DaemonDeps } from '../ports.ts';
import { isSame, MinuteLimit, secretsIn } from './access.ts';

/** A larger delivery is refused. A delivery that announces its length is refused before a byte of its body is read. */
const mostBytes = 1024 * 1024;
const mostRemembered = 1_000;
/**
 * Genuine deliveries in one minute. vdcsync refuses more deliveries, and finds their commits when it polls the branch.
 */
const mostGenuine = 120;
/**
 * Forged deliveries in one minute that are answered with 401 and logged. They have their own limit, so that they
 * cannot use up the limit of genuine deliveries.
 */
const mostForged = 60;
/** Forges name deliveries and events in about 40 characters, but a forged header can hold thousands. */
const mostLogged = 100;

export type Delivery = 'accepted' | 'repeated' | 'forged' | 'too_large' | 'limited' | 'unknown';

export interface WebhookOptions extends Pick<DaemonDeps, 'clock' | 'log'> {
  /** One secret, or two separated by a comma. Read again for each delivery. `undefined`: no delivery is accepted. */
  readonly secret: (() => string) | undefined;
  /** Called for a genuine delivery: the branch may have changed. */
  readonly onPush: () => void;
  readonly onDelivery: (forge: string, delivery: Delivery) => void;
}

/**
 * `POST /hooks/FORGE`. vdcsync never parses a payload: a valid signature is enough to refresh the source. The answer
 * goes out before anything is fetched.
 */
export function webhooks({ secret, clock, log, onPush, onDelivery }: WebhookOptions): Hono {
  const app = new Hono();
  const remembered = new Set<string>();
  const [genuine, forged] = [new MinuteLimit(mostGenuine, clock), new MinuteLimit(mostForged, clock)];

  function isRepeated(forge: string, id: string | undefined): boolean {
    if (id === undefined) return false;
    const name = `${forge} ${id.slice(0, 200)}`;
    if (remembered.has(name)) return true;
    remembered.add(name);
    const [oldest] = remembered;
    if (remembered.size > mostRemembered && oldest !== undefined) remembered.delete(oldest);
    return false;
  }

  app.post('/hooks/:forge', async (context) => {
    const name = context.req.param('forge');
    const forge = forges.get(name);
    if (forge === undefined || secret === undefined) {
      onDelivery('unknown', 'unknown');
      return context.json({ error: forge === undefined ? 'unknown forge' : 'no webhook secret is set' }, 404);
    }
    const header = (each: string) => context.req.header(each);
    const logged = (text: string | undefined) => text?.slice(0, mostLogged);
    const deliveryId = forge.deliveryId(header);
    const fields = { forge: name, deliveryId: logged(deliveryId), event: logged(forge.event(header)) };
    const limited = () => {
      onDelivery(name, 'limited');
      return context.json({ error: 'too many deliveries' }, 429, { 'retry-after': '60' });
    };
    const refuse = () => {
      if (!forged.allows()) return limited();
      onDelivery(name, 'forged');
      log.warn(fields, 'webhook delivery refused: wrong signature or token');
      return context.json({ error: 'wrong signature or token' }, 401);
    };
    const refuseLarge = () => {
      onDelivery(name, 'too_large');
      return context.json({ error: 'larger than 1 MiB' }, 413);
    };
    if (Number(header('content-length') ?? 0) > mostBytes) return refuseLarge();
    const proof = forge.proof(header, secretsIn(secret()));
    if (proof === undefined) return refuse();
    if (!(await readBody(context.req.raw, proof.take))) return refuseLarge();
    if (!proof.isGenuine()) return refuse();
    if (!genuine.allows()) return limited();
    const repeated = isRepeated(name, deliveryId);
    onDelivery(name, repeated ? 'repeated' : 'accepted');
    log.info(fields, repeated ? 'webhook delivery repeated' : 'webhook delivery accepted');
    if (!repeated) onPush();
    return context.json({ accepted: true, repeated }, 202);
  });
  app.all('/hooks/:forge', (context, next) =>
    forges.has(context.req.param('forge')) && secret !== undefined
      ? context.json({ error: 'only POST' }, 405, { allow: 'POST' })
      : next(),
  );
  app.all('/hooks/*', (context) => context.json({ error: 'POST /hooks/FORGE' }, 404));
  return app;
}

/** Passes the bytes on as they arrive, and keeps none of them. Returns `false` once the body is too large. */
async function readBody(request: Request, take: (chunk: Uint8Array) => void): Promise<boolean> {
  let length = 0;
  if (request.body === null) return true;
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > mostBytes) return false;
    take(chunk);
  }
  return true;
}

/** Looks up a request's header by its name in lower case. */
type HeaderOf = (name: string) => string | undefined;

/** The proof that a delivery carries. Each secret is tried to its end, so that the time says nothing about it. */
interface DeliveryProof {
  /** Takes the next raw bytes of the body. Serialized again, they could differ. */
  readonly take: (chunk: Uint8Array) => void;
  /** After the last byte: whether the sender knows one of the secrets. */
  readonly isGenuine: () => boolean;
}

/** How one forge signs a delivery. */
interface WebhookForge {
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
const forges: ReadonlyMap<string, WebhookForge> = new Map(
  Object.entries({
    github: {
      proof: (header, secrets) => signature(header('x-hub-signature-256'), 'sha256=', secrets),
      deliveryId: (header) => header('x-github-delivery'),
      event: (header) => header('x-github-event'),
    },
    gitlab: {
      proof: (header, secrets) => token(header('x-gitlab-token') ?? '', secrets),
      // Stays the same when GitLab tries again.
      deliveryId: (header) => header('idempotency-key') ?? header('x-gitlab-event-uuid'),
      event: (header) => header('x-gitlab-event'),
    },
    gitea: {
      proof: (header, secrets) =>
        signature(header('x-forgejo-signature') ?? header('x-gitea-signature'), '', secrets),
      deliveryId: (header) => header('x-gitea-delivery') ?? header('x-forgejo-delivery'),
      event: (header) => header('x-gitea-event') ?? header('x-forgejo-event'),
    },
    bitbucket: {
      proof: (header, secrets) => signature(header('x-hub-signature'), 'sha256=', secrets),
      deliveryId: (header) => header('x-request-uuid') ?? header('x-request-id'),
      event: (header) => header('x-event-key'),
    },
  } satisfies Readonly<Record<string, WebhookForge>>),
);
