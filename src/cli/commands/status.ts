import { existsSync } from 'node:fs';
import type { Claim } from '../../core/claims.ts';
import type { Desired, DesiredResource } from '../../core/desired.ts';
import { ApiProblem, ConfigError, FenceError } from '../../core/errors.ts';
import { blockedJson, isWaiting, type Plan, warningsJson } from '../../core/plan.ts';
import type { PriceList } from '../../core/profile.ts';
import type { Ip } from '../../core/resources.ts';
import type { Binding, Intent, JournalEntry, StateInfo, StateStore } from '../../core/state.ts';
import { TransportError } from '../../core/transport.ts';
import { type Finding, standingFindings, withSince } from '../../engine/run/recorded-findings.ts';
import { shownLocation } from '../../state/open.ts';
import { clockOf } from '../clock.ts';
import { openSession, openStore } from '../compose.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { type StatusClock, statusText } from '../render/status-text.ts';
import { type CommonFlags, stateLocation } from '../settings/config.ts';
import { refuseSecondState } from '../settings/own-state.ts';
import { readSpec } from '../settings/spec-source.ts';
import { isUrl } from '../settings/state-url.ts';
import { type StatusFacts, type StatusView, statusOf } from '../status.ts';
import { type Io, paintFor } from '../terminal.ts';

export interface StatusFlags extends CommonFlags {
  readonly format?: 'text' | 'json';
  readonly offline?: boolean;
  readonly detailedExitcode?: boolean;
}

/** The live side: a plan if there is a file, and the server of each address. */
interface Live {
  readonly plan?: Plan;
  readonly desired?: readonly DesiredResource[];
  readonly prices: PriceList | undefined;
  readonly ips: readonly Ip[];
  /** When the refresh began and ended, in wall ms of the clock of all printed times. */
  readonly at: number;
  readonly now: number;
  /** How many times faster than real time that clock runs. */
  readonly timeScale: number;
}

/** The facts from the state, and from the API where it can be reached, and the clock of their times. */
export async function statusFacts(
  flags: StatusFlags,
  io: Io,
): Promise<{ readonly facts: StatusFacts; readonly clock: StatusClock }> {
  const location = stateLocation(flags, io);
  const known = await readState(flags, io);
  const desired = await specIfAny(flags, io);
  if (desired !== undefined) await refuseSecondState(desired.projectId, flags, io);
  const live = await lookLive(flags, io, desired, known.info.projectId);
  const facts: StatusFacts = {
    location: shownLocation(location),
    // In a database it was born with its first change.
    exists: isUrl(location) ? known.info.serial > 0 : location === ':memory:' || existsSync(location),
    ...known,
    ...(typeof live === 'string' ? { offline: live } : live),
  };
  const clock = typeof live === 'string' ? { timeScale: 1 } : live;
  const declared = desired === undefined ? {} : { desired: desired.resources };
  return { facts: { ...facts, ...declared }, clock };
}

/** Shows the managed resources and the status of each. */
export async function status(flags: StatusFlags, io: Io): Promise<ExitCode> {
  const { facts, clock } = await statusFacts(flags, io);
  const view = statusOf(facts);
  io.stdout.write(
    flags.format === 'json'
      ? `${JSON.stringify({ ...view, blocked: view.blocked.map((each) => blockedJson(each)), ...warningsJson(view.warnings) }, null, 2)}\n`
      : statusText(view, paintFor(io.stdout, io), clock),
  );
  return flags.detailedExitcode === true ? detailed(view) : exitCodes.done;
}

/** The exit code for monitoring: 0 only if vdcsync has seen that the project matches the file. */
function detailed({ converged, blocked }: StatusView): ExitCode {
  if (!blocked.every(isWaiting)) return exitCodes.blocked;
  if (converged === null) return exitCodes.failed;
  return converged ? exitCodes.done : exitCodes.changes;
}

interface Known {
  readonly info: StateInfo;
  readonly bindings: readonly Binding[];
  readonly intents: readonly Intent[];
  readonly past: readonly Intent[];
  readonly findings: readonly Finding[];
  readonly claims: readonly Claim[];
  readonly last: JournalEntry | undefined;
}

async function readState(flags: CommonFlags, io: Io): Promise<Known> {
  const store: StateStore = await openStore(flags, io, 'read');
  try {
    const [last] = await store.journal({ limit: 1 });
    return {
      info: await store.info(),
      bindings: await store.bindings(),
      intents: await store.openIntents(),
      past: await store.intents({ limit: 1_000 }),
      findings: [...(await withSince(store, await standingFindings(store)))],
      claims: await store.claims(),
      last,
    };
  } finally {
    await store.close();
  }
}

/** The state can be shown without its file; a file that is there has to be right. */
async function specIfAny(flags: CommonFlags, io: Io): Promise<Desired | undefined> {
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
    const at = session.clock.now();
    const project = await soon(session.reads.project(), io);
    if (project.id !== projectId) {
      throw new FenceError(
        `The token is for project ${project.id}, not for project ${projectId}. Use a token of project ${projectId}, correct project.id, or use the state only with --offline.`,
      );
    }
    const ips = await session.reads.ips();
    const plan =
      desired === undefined ? {} : { plan: await session.engine.plan(desired), desired: desired.resources };
    const { prices } = session.profile;
    return { ips, at, now: session.clock.now(), timeScale: session.timeScale, prices, ...plan };
  } catch (error) {
    if (error instanceof TooSlow) return `the API did not answer in ${patienceMs / 1000} s`;
    if (error instanceof TransportError) return `the API cannot be reached (${error.code})`;
    if (error instanceof ApiProblem) return `the API refuses: ${error.message}`;
    throw error;
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
