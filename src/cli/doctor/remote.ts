import { ApiProblem } from '../../core/errors.ts';
import type { Project } from '../../core/resources.ts';
import type { Intent } from '../../core/state.ts';
import { TransportError } from '../../core/transport.ts';
import type { Session } from '../compose.ts';
import { moment, span } from '../render/values.ts';
import { type Finding, finding, ok } from './findings.ts';

/** Whether the API answers this token at all. */
export async function checkReach(
  session: Session,
): Promise<{ findings: Finding[]; project: Project | undefined }> {
  try {
    const answer = await session.probe('/project');
    if (answer.status === 401) {
      const code = answer.sort === 'problem' ? ` (${answer.problem.code})` : '';
      return failed(
        'token',
        `the API does not know the token${code}`,
        'check VDC_TOKEN: it is unknown, expired or revoked',
      );
    }
    if (answer.sort === 'unidentified') {
      return failed(
        'api',
        `something answers, and it is not the API: ${answer.reason}`,
        'check VDC_BASE_URL and any proxy in between',
      );
    }
    const project = await session.reads.project();
    const status =
      project.status === 'Active'
        ? ok('project', `the token is of project ${project.id} ("${project.name}"), which is Active`)
        : finding(
            'project',
            'warning',
            `project ${project.id} ("${project.name}") is ${project.status}`,
            'what adds spending is refused until it is Active',
          );
    return { findings: [ok('api', 'the API answers'), status], project };
  } catch (error) {
    if (error instanceof TransportError) {
      return failed(
        'api',
        `the API cannot be reached: ${error.message} [${error.code}]`,
        'check VDC_BASE_URL and the network',
      );
    }
    if (error instanceof ApiProblem)
      return failed('api', error.message, 'see the code in the error reference of the API');
    throw error;
  }
}

function failed(id: string, message: string, advice: string) {
  return { findings: [finding(id, 'error', message, advice)], project: undefined };
}

/** The three that have to be about the same project. */
export function checkFence(project: Project, wanted: number | undefined, recorded: number | null): Finding[] {
  return [
    ...(wanted === undefined || wanted === project.id
      ? []
      : [
          finding(
            'project',
            'error',
            `the file is for project ${wanted}, and the token for ${project.id}`,
            `use a token of project ${wanted}, or correct project.id`,
          ),
        ]),
    ...(recorded === null || recorded === project.id
      ? []
      : [
          finding(
            'project',
            'error',
            `the state is of project ${recorded}, and the token of ${project.id}`,
            'name another --state',
          ),
        ]),
  ];
}

/**
 * No documented read shows a token's level, and asking with a write is no way to find
 * out: what was sent against expectation could have its effect. So the past has to tell.
 *
 * @source API §5
 */
export function checkLevel(writes: readonly Intent[]): Finding {
  const last = writes.find(
    ({ outcome, detail }) => outcome === 'done' || /403|insufficient_/.test(detail ?? ''),
  );
  const cannot = 'no read of the API shows whether the token may write';
  if (last === undefined) {
    return finding(
      'token_level',
      'unknown',
      `${cannot}, and no write was ever answered`,
      'the first apply tells; plan needs a read token only',
    );
  }
  const when = moment(last.lastSentAt);
  if (last.outcome === 'done') {
    return ok(
      'token_level',
      `${cannot}; the last one, ${last.verb} ${last.key} at ${when}, was carried out, with the token of that time`,
    );
  }
  return finding(
    'token_level',
    'warning',
    `${cannot}; ${last.verb} ${last.key} at ${when} was refused: ${last.detail}`,
    'apply needs a token for reading and writing, and a team member with the permission',
  );
}

const secondMs = 1000;

/** The local clock beside the `Date` of the last answer. @assumption A35 */
export function checkClock({ reads, clock, timeScale }: Session): Finding {
  if (timeScale !== 1)
    return finding(
      'clock',
      'unknown',
      `the API's clock runs ${timeScale} times faster, so clocks cannot be compared`,
    );
  const skew = clock.now() - reads.apiNow();
  const told = `the local clock is ${span(Math.abs(skew))} ${skew < 0 ? 'behind' : 'ahead of'} the API's`;
  if (Math.abs(skew) <= 5 * secondMs) return ok('clock', 'the local clock agrees with that of the API');
  const level = Math.abs(skew) > 10 * 60 * secondMs ? 'error' : 'warning';
  return finding(
    'clock',
    level,
    told,
    'set the clock by NTP: how old a key is, and what history says, goes by it (an emulator with --speed N wants `time_scale: N` in the API profile)',
  );
}

/** What this state has sent lately under this token. Other users of the token are not seen. */
export async function checkBudgets({ profile, counts }: Session): Promise<Finding> {
  const { limits } = profile;
  const { reads, throttled } = counts();
  const each = `${limits.reads} reads and ${limits.writes} writes in ${span(limits.windowMs)}`;
  return throttled === 0
    ? ok('budgets', `the limits are taken to be ${each}; this diagnosis took ${reads} reads`)
    : finding(
        'budgets',
        'warning',
        `the API limited ${throttled} of ${reads} reads, with ${each} taken as the limits`,
        'somebody else uses this token, or the limits of the API profile are too high',
      );
}
