import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { z } from 'zod';
import { within } from '../../core/clock.ts';
import type { DaemonDeps } from '../ports.ts';
import type { DaemonProject } from '../project/project.ts';
import { isSame, MinuteLimit, secretsIn } from './access.ts';

const mostBytes = 4 * 1024;
/** Requests with a wrong token in one minute that are answered with 401 and logged. */
const mostForged = 60;
/** A project that works on a write carries the command out afterwards. Real ms. */
const answerMs = 30_000;

export interface ApprovalOptions extends Pick<DaemonDeps, 'clock' | 'log'> {
  /** One token, or two separated by a comma. Read again for each request. `undefined`: no approval is accepted. */
  readonly secret: (() => string) | undefined;
  readonly projects: () => readonly Pick<DaemonProject, 'id' | 'take'>[];
}

const requestSchema = z.strictObject({
  /** The digest of the plan that waits, or its beginning. */
  digest: z.string().min(1).max(100),
  /** Only where the daemon has several projects. */
  project: z.int().positive().optional(),
});

/**
 * `POST /approve`: an operator approves a plan without a shell on the host. It needs a token of its own, because readers of the
 * page may not approve, and the token is in a header, so that no other page can send it.
 */
export function approvals({ secret, projects, clock, log }: ApprovalOptions): Hono {
  const app = new Hono();
  const forged = new MinuteLimit(mostForged, clock);
  const isGenuine = (header: string | undefined) =>
    secretsIn(secret?.() ?? '').some((each) => isSame(header ?? '', `Bearer ${each}`));

  app.use('/approve', async (context, next) => {
    if (secret === undefined) return context.json({ error: 'no token for approvals is set' }, 404);
    if (context.req.method !== 'POST') return context.json({ error: 'only POST' }, 405, { allow: 'POST' });
    if (isGenuine(context.req.header('authorization'))) return next();
    if (!forged.allows()) return context.json({ error: 'too many requests' }, 429, { 'retry-after': '60' });
    log.warn({}, 'approval refused: wrong token');
    return context.json({ error: 'wrong token' }, 401, {
      'www-authenticate': 'Bearer realm="vdcsync approve"',
    });
  });
  const refuseLarge = () => Response.json({ error: 'larger than 4 KiB' }, { status: 413 });
  app.post('/approve', bodyLimit({ maxSize: mostBytes, onError: refuseLarge }), async (context) => {
    const asked = requestSchema.safeParse(await context.req.json().catch(() => undefined));
    if (!asked.success)
      return context.json(
        { error: 'send {"digest": "DIGEST"}, with "project": ID if there are several' },
        400,
      );
    const { digest, project: id } = asked.data;
    const here = projects().filter((each) => id === undefined || each.id === id);
    const [project] = here;
    if (project === undefined)
      return context.json({ error: 'this process does not work on this project' }, 404);
    if (here.length > 1) return context.json({ error: 'name the "project"' }, 400);
    const answer = await within(clock, answerMs, project.take({ command: 'approve', digest }));
    if (answer === undefined) return context.json({ accepted: true }, 202);
    return 'done' in answer
      ? context.json({ approved: true, text: answer.done.text })
      : context.json({ error: answer.refused }, 409);
  });
  return app;
}
