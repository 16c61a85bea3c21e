import { newToken } from '../../core/remedy.ts';
import type { Project } from '../../core/resources.ts';
import { span } from '../../core/text.ts';
import { moment } from '../../core/time.ts';
import type { Session } from '../compose.ts';
import { whyFailed } from '../exit.ts';
import { present } from '../render/values.ts';
import { check, type Finding } from './findings.ts';

/** Whether the API answers this token at all. */
export async function checkReach(session: Session): Promise<{ findings: Finding[]; project?: Project }> {
  try {
    const answer = await session.probe('/project');
    if (answer.status === 401) {
      const code = answer.sort === 'problem' ? ` (${answer.problem.code})` : '';
      const advice = `the token is unknown, expired or revoked: ${newToken}`;
      return failed('token', `the API does not know the token${code}`, advice);
    }
    if (answer.sort === 'unidentified') {
      const problem = `the answer does not come from the API: ${answer.reason}`;
      return failed('api', problem, 'check VDC_BASE_URL and any proxy in between');
    }
    const project = await session.reads.project();
    const name = `project ${project.id} ("${project.name}")`;
    const advice = 'the API refuses new spending until the project is Active';
    const status =
      project.status === 'Active'
        ? check.ok('project', `the token belongs to ${name}, which is Active`)
        : check.warning('project', `${name} is ${project.status}`, advice);
    return { findings: [check.ok('api', 'the API answers'), status], project };
  } catch (error) {
    const why = whyFailed(error);
    if (why !== undefined)
      return failed('api', why.problem, why.advice ?? 'see the code in the error reference of the API');
    throw error;
  }
}

function failed(id: string, message: string, advice: string) {
  return { findings: [check.error(id, message, advice)] };
}

/** The three that have to be about the same project. */
export function checkFence({ id }: Project, wanted: number | undefined, recorded: number | null): Finding[] {
  return present(
    wanted !== undefined &&
      wanted !== id &&
      check.error(
        'project',
        `the spec is for project ${wanted}, and the token belongs to project ${id}`,
        `use a token of project ${wanted}, or correct project.id`,
      ),
    recorded !== null &&
      recorded !== id &&
      check.error(
        'project',
        `the state belongs to project ${recorded}, and the token to project ${id}`,
        'name another state with --state',
      ),
  );
}

/** The advice after the API has refused a write of the token. */
export const levelAdvice =
  'use a token that may read and write, of a team member with this permission. After a change of the permissions, the next apply shows it. For a plan, this token is enough';

/**
 * No documented read shows a token's level. A write is no safe test: a write that was expected
 * to be refused could take effect. So the check uses the past writes of this token.
 *
 * @source API §5
 */
export async function checkLevel({ tokenLevels }: Session): Promise<Finding> {
  const levels = await tokenLevels();
  // Of several tokens, one that may write is enough.
  const { passed, refused } = levels.find((each) => each.passed !== undefined) ?? levels[0] ?? {};
  const refusal =
    refused === undefined
      ? ''
      : `the API refused ${refused.write} at ${moment(refused.at)} with ${refused.code ?? 'no code'}`;
  if (passed === undefined) {
    if (refused !== undefined)
      return check.error('token_level', `${refusal}, and has accepted no write with this token`, levelAdvice);
    return check.unknown(
      'token_level',
      'a read cannot show whether the token may write, and this state has no write with this token yet',
      'the first apply shows it; for a plan, a read token is enough',
    );
  }
  const accepted = `the API accepted ${passed.write} at ${moment(passed.at)}`;
  if (refused === undefined || refused.at <= passed.at)
    return check.ok('token_level', `the token may write: ${accepted}`);
  return check.warning(
    'token_level',
    `the token may write: ${accepted}. But ${refusal}`,
    'use a token that may do this, or change the permissions of its team member in the client area',
  );
}

const secondMs = 1000;

/** The local clock compared with the `Date` of the last answer. @assumption A35 */
export async function checkClock(session: Session): Promise<Finding> {
  const { reads, clock, timeScale } = session;
  const apiNow = reads.apiNow();
  if (apiNow === undefined) return check.ok('clock', 'the API does not show its clock');
  const skew = clock.now() - apiNow;
  if (timeScale === 1 && Math.abs(skew) <= 5 * secondMs)
    return check.ok('clock', 'the local clock agrees with that of the API');
  const speed = await apiSpeed(session);
  if (Math.abs(speed - timeScale) > Math.max(speedErrorAtMost, timeScale / 10)) {
    return check.error(
      'clock',
      `the API's clock runs about ${Math.round(speed)} times as fast as the clock of this machine, and vdcsync expects ${timeScale} times`,
      speed > 1 + speedErrorAtMost
        ? `write \`time_scale: N\` into the API profile, with the N of \`emulator --speed N\`: about ${Math.round(speed)}`
        : 'remove `time_scale` from the API profile',
    );
  }
  if (timeScale !== 1)
    return check.ok('clock', `the API's clock runs ${timeScale} times faster, as expected`);
  return check[Math.abs(skew) > 10 * 60 * secondMs ? 'error' : 'warning'](
    'clock',
    `the local clock is ${span(Math.abs(skew))} ${skew < 0 ? 'behind' : 'ahead of'} the clock of the API`,
    'synchronise the clock with NTP: vdcsync computes the ages of idempotency keys with it',
  );
}

/** `Date` has a resolution of a second, so that over one second it is wrong by one at most. */
const speedErrorAtMost = 1.5;

async function apiSpeed({ reads, probe, clock, timeScale }: Session): Promise<number> {
  await probe('/project');
  const [api = 0, own] = [reads.apiNow(), clock.monotonic()];
  await clock.sleep(secondMs * timeScale);
  await probe('/project');
  return ((reads.apiNow() ?? api) - api) / ((clock.monotonic() - own) / timeScale);
}

/** The requests that this state has sent lately under this token. Requests of other users of the token are not visible. */
export async function checkBudgets({ profile, counts }: Session): Promise<Finding> {
  const { limits } = profile;
  const { reads, throttled } = counts();
  const each = `${limits.reads} reads and ${limits.writes} writes in ${span(limits.windowMs)}`;
  return throttled === 0
    ? check.ok('budgets', `vdcsync stays within ${each}; this command used ${reads} reads`)
    : check.warning(
        'budgets',
        `the API refused ${throttled} of ${reads} reads because of its request limits, although vdcsync stays within ${each}`,
        'another program uses this token, or the limits of the API profile are too high',
      );
}
