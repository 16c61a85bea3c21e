import type { Desired } from '../../core/desired.ts';
import { ConfigError, StateError } from '../../core/errors.ts';
import { command } from '../../core/remedy.ts';
import { counted, printable } from '../../core/text.ts';
import { openSession, type Session } from '../compose.ts';
import { check, type Finding, findingJson } from '../doctor/findings.ts';
import { probeKeys } from '../doctor/keys.ts';
import { checkProfile, checkSpec, checkState } from '../doctor/local.ts';
import { probeOperations } from '../doctor/probes.ts';
import { checkBudgets, checkClock, checkFence, checkLevel, checkReach } from '../doctor/remote.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import type { ResultFlags } from '../flags.ts';
import { remedyLines } from '../render/remedies.ts';
import { present } from '../render/values.ts';
import { type Io, type Paint, printResult, type Style } from '../terminal.ts';

export interface DoctorFlags extends ResultFlags {
  /** Also sends requests that the API must refuse. */
  readonly probeWrites?: boolean;
}

/** Checks everything that an apply relies on, by safe reads. It sends refused writes only if the operator asks for them. */
export async function doctor(flags: DoctorFlags, io: Io): Promise<ExitCode> {
  const { spec, desired } = await checkSpec(flags, io);
  const { state, recorded } = await checkState(flags, io);
  const profile = checkProfile(flags, io);
  const isUsable = !profile.some(({ level }) => level === 'error');
  const remote = isUsable ? await checkRemote(flags, io, desired, recorded) : { findings: [], project: null };
  const findings = [spec, ...state, ...profile, ...remote.findings];
  const healthy = !findings.some(({ level }) => level === 'error');
  const { project } = remote;
  printResult(
    io,
    flags,
    { format_version: 1, healthy, project, findings: findings.map(findingJson) },
    (paint) => diagnosisText(findings, healthy, paint),
  );
  return healthy ? exitCodes.done : exitCodes.failed;
}

async function checkRemote(
  flags: DoctorFlags,
  io: Io,
  desired: Desired | undefined,
  recorded: number | null,
) {
  const unread = (...problem: Parameters<typeof check.error>) => {
    return { project: null, findings: [check.error(...problem)] };
  };
  if (flags.emulator !== true && !io.env.VDC_BASE_URL) {
    const advice = 'set VDC_BASE_URL and VDC_TOKEN, or try --emulator';
    return unread('api', 'VDC_BASE_URL is not set, so vdcsync did not check the API', advice);
  }
  const wanted = desired?.projectId ?? recorded ?? undefined;
  let session: Session;
  try {
    session = await openSession(flags, io, {
      mode: 'read',
      projectId: wanted ?? 4711,
      token: desired?.token,
    });
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof StateError)) throw error;
    return unread('api', error.message);
  }
  try {
    const { findings, project } = await checkReach(session);
    if (project === undefined) return { project: null, findings };
    const { id, name, status } = project;
    const fence = checkFence(project, wanted, recorded);
    const level = await checkLevel(session);
    const all = present(
      ...[findings, fence, level],
      await checkClock(session),
      await probeOperations(session),
      flags.probeWrites === true && (await probeKeys(session, fence.length === 0 ? wanted : undefined)),
      await checkBudgets(session),
    );
    // A refused probe shows the level of the token, which the past writes may not show.
    const shown = all.findLast((each) => each.id === level.id);
    return {
      project: { id, name, status },
      findings: all.filter((each) => each !== level || each === shown),
    };
  } finally {
    await session.close();
  }
}

const marks: Readonly<Record<Finding['level'], readonly [string, Style]>> = {
  ok: ['✓', 'green'],
  info: ['·', 'dim'],
  unknown: ['?', 'cyan'],
  warning: ['!', 'yellow'],
  error: ['✗', 'red'],
};

/** Joins several probes without a result into one line: in a new project there is no resource to probe. */
function grouped(findings: readonly Finding[]): readonly Finding[] {
  const isOpen = ({ id, level }: Finding) => level === 'unknown' && id.startsWith('probe:');
  const open = findings.filter(isOpen);
  if (open.length < 2) return findings;
  const names = [...new Set(open.map(({ id }) => id.replace('probe:', '')))].join(', ');
  const message = `a read could not show whether the API has ${names}`;
  const when = 'shows the reason for each';
  const advice = [command('doctor', ['--format', 'json'], { when })];
  return [
    ...findings.filter((each) => !isOpen(each)),
    check.unknown('undocumented_operations', message, advice),
  ];
}

function diagnosisText(findings: readonly Finding[], healthy: boolean, paint: Paint): string {
  const lines = grouped(findings).flatMap(({ id, level, message, remedies }) => {
    const [mark, style] = marks[level];
    const subject = id.replace(/^probe:/, '').replaceAll('_', ' ');
    return [
      `${paint(style, mark)} ${paint('bold', subject)}: ${printable(message)}`,
      ...remedyLines(remedies, paint, '    '),
    ];
  });
  const count = (level: Finding['level']) => findings.filter((each) => each.level === level).length;
  const verdict = healthy ? 'Fit to run' : 'Not fit to run';
  return `${[...lines, '', paint('bold', `${verdict}: ${counted(count('error'), 'error')}, ${counted(count('warning'), 'warning')}, ${grouped(findings).filter(({ level }) => level === 'unknown').length} unknown.`)].join('\n')}\n`;
}
