import { createHash, timingSafeEqual } from 'node:crypto';
import { Hono } from 'hono';
import type { Daemon } from '../daemon.ts';
import type { DaemonDeps } from '../ports.ts';
import { statusOf } from '../status.ts';

export interface AppOptions {
  readonly daemon: Daemon;
  readonly deps: DaemonDeps;
  readonly version: string;
  /** Asked of everything but health and webhooks, where there is one. Read anew each time. */
  readonly token: (() => string | undefined) | undefined;
}

/** Everything the daemon answers over HTTP. Nothing here changes anything but by making it look again. */
export function createApp(options: AppOptions): Hono {
  const { daemon, deps, version } = options;
  const app = new Hono();

  app.use(async (context, next) => {
    await next();
    const { headers } = context.res;
    headers.set('x-content-type-options', 'nosniff');
    headers.set('cache-control', 'no-store');
    headers.set('referrer-policy', 'no-referrer');
  });
  app.onError((error, context) => {
    deps.log.error({ error, path: context.req.path }, 'a request could not be answered');
    return context.json({ error: 'internal' }, 500);
  });

  app.get('/healthz', (context) => context.json({ alive: true }));
  app.get('/readyz', (context) => {
    const reasons = daemon.notReady();
    return context.json({ ready: reasons.length === 0, reasons }, reasons.length === 0 ? 200 : 503);
  });

  app.use(async (context, next) => {
    const wanted = options.token?.();
    if (wanted === undefined || carries(context.req.header('authorization'), wanted)) return next();
    return context.json({ error: 'a bearer token is needed' }, 401, {
      'www-authenticate': 'Bearer realm="vdcsync", Basic realm="vdcsync"',
    });
  });
  app.get('/status', async (context) => context.json(await statusOf(daemon, version, deps.clock.now())));
  return app;
}

/** Bearer, or the password of Basic, which is what a browser can send. */
function carries(header: string | undefined, wanted: string): boolean {
  const [scheme = '', value = ''] = (header ?? '').split(' ');
  if (/^bearer$/i.test(scheme)) return isSame(value, wanted);
  if (!/^basic$/i.test(scheme)) return false;
  const text = Buffer.from(value, 'base64').toString('utf8');
  return isSame(text.slice(text.indexOf(':') + 1), wanted);
}

/** In a time that tells nothing, whatever the lengths. */
export function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
