import { randomBytes } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import { viewOf } from '../../view/build.ts';
import { knownCondition } from '../../view/condition.ts';
import type { Daemon } from '../daemon.ts';
import { type Assignment, lastWorker } from '../fleet/board.ts';
import type { DaemonDeps } from '../ports.ts';
import type { ProjectSummary } from '../project/facts.ts';
import { isSame } from './access.ts';
import { approvals } from './approvals.ts';
import type { Changes } from './changes.ts';
import type { Metrics } from './metrics.ts';
import { type PageInput, renderBody, renderPage } from './page.ts';
import { pageNumber } from './pager.ts';
import { statusOf } from './status.ts';
import { webhooks } from './webhooks.ts';

export interface AppOptions {
  readonly daemon: Daemon;
  readonly deps: DaemonDeps;
  readonly metrics: Metrics;
  readonly changes: Changes;
  readonly version: string;
  /** The token for all requests except health and webhooks; read again for each request. */
  readonly token: (() => string) | undefined;
  readonly webhookSecret: (() => string) | undefined;
  /** Of approvals. */
  readonly approveToken: (() => string) | undefined;
  /** Only this machine can reach it. */
  readonly loopback: boolean;
}

/** Node's own request and response, if Node serves the request. */
export type App = Hono<{ Bindings: Partial<HttpBindings> }>;

/** Everything the daemon answers over HTTP. A webhook only starts a refresh. Only an approval changes something. */
export function createApp(options: AppOptions): App {
  const { daemon, deps, metrics, changes, version, token } = options;
  const app = new Hono<{ Bindings: Partial<HttpBindings> }>();

  app.use(async (context, next) => {
    await next();
    const { headers } = context.res;
    headers.set('x-content-type-options', 'nosniff');
    headers.set('cache-control', 'no-store');
    headers.set('referrer-policy', 'no-referrer');
    // A refused client keeps no connection, and sends no more of a body that is not read.
    if (context.res.status >= 400) headers.set('connection', 'close');
  });
  app.onError((error, context) => {
    deps.log.error({ error, path: context.req.path }, 'HTTP request failed');
    return context.json({ error: 'internal' }, 500);
  });

  app.get('/healthz', (context) => context.json({ alive: true }));
  app.get('/readyz', (context) => {
    // Without the details, which name paths and quote other programs: this client has shown no token.
    const reasons = daemon.notReady().map(({ reason }) => reason);
    return context.json({ ready: reasons.length === 0, reasons }, reasons.length === 0 ? 200 : 503);
  });
  app.route(
    '/',
    webhooks({
      ...{ secret: options.webhookSecret, clock: deps.clock, log: deps.log },
      onPush: () => daemon.hint('webhook'),
      onDelivery: (forge, delivery) => metrics.countDelivery(forge, delivery),
    }),
  );

  app.route(
    '/',
    approvals({
      ...{ secret: options.approveToken, clock: deps.clock, log: deps.log },
      // A replica of a fleet has a project only while it reconciles the project. So the state takes the approval.
      projects: () => (daemon.fleet === undefined ? daemon.projects() : []),
    }),
  );
  app.use(async (context, next) => {
    if (token === undefined || carries(context.req.header('authorization'), token())) return next();
    challenge(context);
    return context.json({ error: 'a bearer token is needed' }, 401);
  });
  app.use(async (context, next) => {
    // DNS rebinding: another site may give its name the address of this machine, and a browser would let that site read.
    const foreign = token === undefined && !isOwnName(context.req.header('host'), options.loopback);
    if (!foreign) return next();
    return context.json(
      { error: 'use an IP address or localhost as the host name, or set VDCSYNC_HTTP_TOKEN' },
      421,
    );
  });
  app.get('/metrics', async (context) =>
    context.body(await metrics.render(daemon), 200, { 'content-type': metrics.registry.contentType }),
  );
  app.get('/status', async (context) => {
    const { project, page } = context.req.query();
    const query = { project, page: pageNumber(page) };
    return context.body(JSON.stringify(await statusOf(daemon, version, deps.clock.now(), query)), 200, {
      'content-type': 'application/json',
    });
  });
  app.get('/', async (context) => {
    const nonce = randomBytes(16).toString('base64');
    context.header('content-security-policy', policyOf(nonce));
    return context.html(renderPage(await pageInput(options, context.req.query()), nonce));
  });
  app.get('/page', async (context) =>
    context.html(renderBody(await pageInput(options, context.req.query()))),
  );
  app.get('/events', (context) => {
    if (changes.isFull()) return context.json({ error: 'too many pages are open' }, 503);
    return streamSSE(context, async (stream) => {
      const gone = new AbortController();
      stream.onAbort(() => gone.abort());
      await changes.watch(() => stream.writeSSE({ event: 'changed', data: '' }), gone.signal);
    });
  });
  for (const path of ['/healthz', '/readyz', '/metrics', '/status', '/', '/page', '/events']) {
    app.all(path, (context) => context.json({ error: 'only GET' }, 405, { allow: 'GET, HEAD' }));
  }
  app.notFound((context) => context.json({ error: 'not found' }, 404));
  return app;
}

/** The page of one project, or the overview of several. */
async function pageInput(
  { daemon, deps, version }: AppOptions,
  query: Readonly<Record<string, string>>,
): Promise<PageInput> {
  const projects = daemon.projects();
  const assignments = (await daemon.fleet?.board.assignments().catch(() => undefined)) ?? [];
  const byProject = new Map(assignments.map((each) => [each.project, each]));
  const own = daemon.fleet?.replica;
  const now = deps.clock.now();
  const here = new Map(projects.map((project) => [project.id, project.summary()]));
  const ids = daemon.fleet === undefined ? [...here.keys()] : [...byProject.keys()];
  const summaries = ids.map((id) => summaryOf(here.get(id) ?? unseen(id, now), byProject.get(id), own));
  const chosen =
    projects.find(({ id }) => String(id) === query.project) ??
    (summaries.length === 1 ? projects[0] : undefined);
  const worker = chosen && byProject.get(chosen.id);
  const replica = worker === undefined ? undefined : lastWorker(worker);
  return {
    view: chosen && viewOf(await chosen.facts()),
    projects: summaries,
    wanted: { text: query.q, state: query.state, all: query.all === '1' },
    page: pageNumber(query.page),
    elsewhere:
      replica === undefined || own === undefined || replica === own
        ? undefined
        : { worker: replica, shownBy: own },
    rollouts: daemon.fleet?.board.rollouts,
    source: daemon.specs.state(),
    version,
    now,
  };
}

/** A project of a fleet that this replica has had no turn of. */
export function unseen(id: number, now: number): ProjectSummary {
  return {
    ...{ id, name: undefined, condition: 'starting', since: undefined, now, reconciledAt: undefined },
    ...{ blocked: 0, exposed: false, leaking: false, broken: false },
  };
}

/** Another replica may know more of the project than this one. Its last plan is in the project's state. */
export function summaryOf(
  own: ProjectSummary,
  assignment: Assignment | undefined,
  replica: string | undefined,
): ProjectSummary {
  const left = assignment?.memory?.history;
  const condition = knownCondition(left?.condition);
  if (left === undefined || condition === undefined) return own;
  const worksHere = assignment?.worker !== undefined && assignment.worker === replica;
  const exposed = left.exposed || (worksHere && own.exposed);
  const leaking = left.leaking || (worksHere && own.leaking);
  const reconciledAt = Math.max(left.endedAt, own.reconciledAt ?? 0) || undefined;
  const { conditionSince: since, blocked } = left;
  return { ...own, condition, since, reconciledAt, blocked, exposed, leaking };
}

/** The page loads nothing from other origins, runs only its own script, and cannot be framed. */
function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/**
 * Asks for the token in both forms. Each challenge is a line of its own: Chromium opens no dialog for the second
 * challenge of one line. The adapter of Hono joins lines of one name, so that they are set on Node's own response.
 */
function challenge({ env, header }: Context<{ Bindings: Partial<HttpBindings> }>): void {
  const challenges = ['Basic realm="vdcsync", charset="UTF-8"', 'Bearer realm="vdcsync"'];
  if (env?.outgoing === undefined) header('www-authenticate', challenges.join(', '));
  else env.outgoing.setHeader('www-authenticate', challenges);
}

/**
 * Whether a name cannot be a foreign domain that leads here: an IP address, `localhost`, and, where other
 * machines reach this one, a name without a dot, as a container has it.
 */
function isOwnName(host = '', loopback: boolean): boolean {
  const name = host.replace(/:\d+$/, '').toLowerCase();
  if (name === 'localhost' || name === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(name)) return true;
  if (loopback) return false;
  const isAddress = isIPv4(name) || (/^\[.*\]$/.test(name) && isIPv6(name.slice(1, -1)));
  return isAddress || /^[a-z0-9_-]*[a-z_-][a-z0-9_-]*$/.test(name);
}

/** Bearer, or the password of Basic, which a browser can send. */
function carries(header: string | undefined, wanted: string): boolean {
  const [scheme = '', value = ''] = (header ?? '').split(' ');
  if (/^bearer$/i.test(scheme)) return isSame(value, wanted);
  if (!/^basic$/i.test(scheme)) return false;
  const text = Buffer.from(value, 'base64').toString('utf8');
  return isSame(text.slice(text.indexOf(':') + 1), wanted);
}
