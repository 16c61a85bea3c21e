import { Hono } from 'hono';
import type { Clock } from '../../core/clock.ts';
import type { DaemonLogger } from '../ports.ts';
import { type Forge, forges } from './forges.ts';
import { secretsIn } from './secrets.ts';

/** A larger delivery is refused; by its announced length before a byte of it is read. */
const mostBytes = 1024 * 1024;
const mostRemembered = 1_000;
/** Deliveries, good and bad, in one minute. What is more can wait: the branch is polled anyway. */
const mostPerMinute = 120;
const minuteMs = 60_000;

export type Delivery = 'accepted' | 'repeated' | 'forged' | 'too_large' | 'limited' | 'unknown';

export interface WebhookOptions {
  /** One, or two separated by a comma; read anew each time. `undefined`: no delivery is taken. */
  readonly secret: (() => string) | undefined;
  /** Real time. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
  /** A genuine delivery: something may have been pushed. */
  readonly onPush: () => void;
  readonly onDelivery: (forge: string, delivery: Delivery) => void;
}

/**
 * `POST /hooks/FORGE`. A payload is never even parsed: that somebody who knows the secret
 * has sent it is the whole message, and the answer goes out before anything is fetched.
 */
export function webhooks({ secret, clock, log, onPush, onDelivery }: WebhookOptions): Hono {
  const app = new Hono();
  const remembered = new Set<string>();
  let minute = { startedAt: clock.monotonic(), count: 0 };

  function isLimited(): boolean {
    const now = clock.monotonic();
    if (now - minute.startedAt >= minuteMs) minute = { startedAt: now, count: 0 };
    minute.count += 1;
    return minute.count > mostPerMinute;
  }

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
    if (isLimited()) {
      onDelivery(name, 'limited');
      return context.json({ error: 'too many deliveries' }, 429, { 'retry-after': '60' });
    }
    const body = await readBody(context.req.raw, context.req.header('content-length'));
    if (body === undefined) {
      onDelivery(name, 'too_large');
      return context.json({ error: 'larger than 1 MiB' }, 413, { connection: 'close' });
    }
    const header = (each: string) => context.req.header(each);
    const fields = { forge: name, deliveryId: forge.deliveryId(header), event: forge.event(header) };
    if (!isGenuine(forge, header, body, secretsIn(secret()))) {
      onDelivery(name, 'forged');
      log.warn(fields, 'a delivery with a wrong signature or token was refused');
      return context.json({ error: 'wrong signature or token' }, 401);
    }
    const repeated = isRepeated(name, fields.deliveryId);
    onDelivery(name, repeated ? 'repeated' : 'accepted');
    log.info(fields, repeated ? 'a delivery was repeated' : 'a delivery was taken');
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

function isGenuine(
  forge: Forge,
  header: (name: string) => string | undefined,
  body: Uint8Array,
  secrets: readonly string[],
): boolean {
  // Every secret is tried, so that the time does not tell which one it was.
  return secrets.map((each) => forge.isGenuine(header, body, each)).includes(true);
}

/** The raw bytes, or `undefined` where they are too many: announced so, or found so. */
async function readBody(request: Request, announced: string | undefined): Promise<Uint8Array | undefined> {
  if (Number(announced ?? 0) > mostBytes) return undefined;
  const chunks: Uint8Array[] = [];
  let length = 0;
  if (request.body === null) return new Uint8Array();
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > mostBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
