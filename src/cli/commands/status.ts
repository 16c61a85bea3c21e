import { existsSync } from 'node:fs';
import type { Desired } from '../../core/desired.ts';
import { ConfigError, FenceError } from '../../core/errors.ts';
import { warningsJson } from '../../core/plan.ts';
import type { StateStore } from '../../core/state.ts';
import { standingFindings, withSince } from '../../engine/run/recorded-findings.ts';
import { shownLocation } from '../../state/open.ts';
import { viewOf } from '../../view/build.ts';
import type { KnownFacts, ProjectFacts } from '../../view/facts.ts';
import type { ProjectView } from '../../view/project-view.ts';
import { clockOf } from '../clock.ts';
import { openSession, openStore } from '../compose.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { whyNotRead } from '../reach.ts';
import { statusText } from '../render/status-text.ts';
import { type CommonFlags, specFiles, stateLocation } from '../settings/config.ts';
import { refuseSecondState } from '../settings/own-state.ts';
import { readSpec } from '../settings/spec-source.ts';
import { isUrl } from '../settings/state-url.ts';
import { type Io, paintFor } from '../terminal.ts';

export interface StatusFlags extends CommonFlags {
  readonly format?: 'text' | 'json';
  readonly offline?: boolean;
  readonly detailedExitcode?: boolean;
}

/** The live resources: with a spec the plan, and the server of each address. */
type Live = Pick<ProjectFacts, 'plan' | 'world' | 'prices' | 'refreshedAt'> & {
  readonly now: number;
  /** How many times faster than real time the clock of all printed times runs. */
  readonly timeScale: number;
};

/** The facts from the state and, if the API can be reached, from the API; and the speed of the API's clock. */
export async function statusFacts(
  flags: StatusFlags,
  io: Io,
): Promise<{ readonly facts: ProjectFacts; readonly timeScale: number }> {
  const location = stateLocation(flags, io);
  const { known, changedAt } = await readState(flags, io);
  const desired = await specIfAny(flags, io);
  if (desired !== undefined) await refuseSecondState(desired.projectId, flags, io);
  const live = await lookLive(flags, io, desired, known.info.projectId);
  // In a database it was born with its first change.
  const exists = isUrl(location) ? known.info.serial > 0 : location === ':memory:' || existsSync(location);
  const offer = desired && { desired, files: specFiles(flags, io), commit: undefined };
  const read = {
    id: known.info.projectId,
    offer,
    place: { location: shownLocation(location), exists, changedAt },
  };
  if (typeof live === 'string') return { facts: { ...read, known, offline: live }, timeScale: 1 };
  const { now, timeScale, ...reads } = live;
  return { facts: { ...read, ...reads, known: { ...known, now } }, timeScale };
}

/** Shows the managed resources and the status of each. */
export async function status(flags: StatusFlags, io: Io): Promise<ExitCode> {
  const { facts, timeScale } = await statusFacts(flags, io);
  const view = viewOf(facts);
  io.stdout.write(
    flags.format === 'json'
      ? `${JSON.stringify({ ...view, ...warningsJson(view.warnings) }, null, 2)}\n`
      : statusText(view, paintFor(io.stdout, io), timeScale),
  );
  return flags.detailedExitcode === true ? detailed(view) : exitCodes.done;
}

/** The exit code for monitoring: 0 only if vdcsync has seen that the project matches the spec. */
function detailed({ converged, counts }: ProjectView): ExitCode {
  if (counts.blocked > 0) return exitCodes.blocked;
  if (converged === null) return exitCodes.failed;
  return converged ? exitCodes.done : exitCodes.changes;
}

async function readState(flags: CommonFlags, io: Io) {
  const store: StateStore = await openStore(flags, io, 'read');
  try {
    const [last] = await store.journal({ limit: 1 });
    const known = {
      ...{ now: undefined, info: await store.info() },
      bindings: await store.bindings(),
      intents: await store.openIntents(),
      claims: await store.claims(),
      history: await store.intents({ limit: 1_000 }),
      findings: await withSince(store, await standingFindings(store)),
    } satisfies KnownFacts;
    return { known, changedAt: last?.at };
  } finally {
    await store.close();
  }
}

/** The command can show the state without a spec. If there is a spec, it must be valid. */
export async function specIfAny(flags: CommonFlags, io: Io): Promise<Desired | undefined> {
  try {
    return await readSpec(flags, io);
  } catch (error) {
    if (error instanceof ConfigError && error.misuse && flags.file === undefined) return undefined;
    throw error;
  }
}

/** The live side, or the reason why it was not read. */
async function lookLive(
  flags: StatusFlags,
  io: Io,
  desired: Desired | undefined,
  recorded: number | null,
): Promise<Live | string> {
  if (flags.offline === true) return '--offline';
  if (flags.emulator !== true && !io.env.VDC_BASE_URL) return 'VDC_BASE_URL is not set';
  const projectId = desired?.projectId ?? recorded;
  if (projectId === null) return 'there is neither a spec nor a state';
  const session = await openSession(flags, io, {
    mode: 'read',
    projectId,
    token: desired?.token,
  });
  try {
    const refreshedAt = session.clock.now();
    const project = await soon(session.reads.project(), io);
    if (project.id !== projectId) {
      throw new FenceError(
        `The token is for project ${project.id}, not for project ${projectId}. Use a token of project ${projectId}, correct project.id, or use the state only with --offline.`,
      );
    }
    const world = { ips: await session.reads.ips(), networks: [], observed: new Map() };
    const plan = desired && (await session.engine.plan(desired));
    const { prices } = session.profile;
    const { clock, timeScale } = session;
    return { world, plan, prices, refreshedAt, now: clock.now(), timeScale };
  } catch (error) {
    if (error instanceof TooSlow) return `the API did not answer in ${patienceMs / 1000} s`;
    return whyNotRead(error);
  } finally {
    await session.close();
  }
}

/** How long the first answer may take, in real time: a status that hangs is of no use. */
const patienceMs = 10_000;

class TooSlow extends Error {}

async function soon<T>(answer: Promise<T>, io: Io): Promise<T> {
  const stop = new AbortController();
  const late = clockOf(io)
    .sleep(patienceMs, stop.signal)
    .then(
      () => {
        throw new TooSlow();
      },
      () => answer,
    );
  try {
    return await Promise.race([answer, late]);
  } finally {
    stop.abort();
  }
}
