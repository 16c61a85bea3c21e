import { existsSync } from 'node:fs';
import type { Desired } from '../../core/desired.ts';
import { warningsJson } from '../../core/plan.ts';
import type { StateStore } from '../../core/state.ts';
import { standingFindings, withSince } from '../../engine/run/findings.ts';
import { shownLocation } from '../../state/postgres-url.ts';
import { viewOf } from '../../view/build.ts';
import type { KnownFacts, ProjectFacts } from '../../view/facts.ts';
import type { ProjectView } from '../../view/project-view.ts';
import { fromState } from '../compose.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { isUrl, type ResultFlags } from '../flags.ts';
import { type OfflineFlags, readLive, whyOffline } from '../live.ts';
import { statusText } from '../render/status-text.ts';
import { specFiles, stateLocation } from '../settings/config.ts';
import { specIfAny } from '../settings/spec-source.ts';
import { type Io, printResult } from '../terminal.ts';

export interface StatusFlags extends OfflineFlags, ResultFlags {
  readonly detailedExitcode?: boolean;
}

/** The facts from the state and, if the API can be reached, from the API; and the speed of the API's clock. */
export async function statusFacts(
  flags: StatusFlags,
  io: Io,
): Promise<{ readonly facts: ProjectFacts; readonly timeScale: number }> {
  const location = stateLocation(flags, io);
  const { known, changedAt } = await fromState(flags, io, readState);
  const desired = await specIfAny(flags, io);
  const live = await refreshLive(flags, io, desired, known.info.projectId);
  // In a database it was born with its first change.
  const exists = isUrl(location) ? known.info.serial > 0 : existsSync(location);
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
  const json = { ...view, ...warningsJson(view.warnings) };
  printResult(io, flags, json, (paint) => statusText(view, paint, timeScale));
  return flags.detailedExitcode === true ? detailed(view) : exitCodes.done;
}

/** The exit code for monitoring: 0 only if vdcsync has seen that the project matches the spec. */
function detailed({ converged, counts }: ProjectView): ExitCode {
  if (counts.blocked > 0) return exitCodes.blocked;
  if (converged === null) return exitCodes.failed;
  return converged ? exitCodes.done : exitCodes.changes;
}

async function readState(store: StateStore) {
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
}

/** The live side, with a spec also the plan, or the reason why the live side was not read. */
async function refreshLive(
  flags: StatusFlags,
  io: Io,
  desired: Desired | undefined,
  recorded: number | null,
) {
  const projectId = desired?.projectId ?? recorded;
  const reason = whyOffline(flags, io);
  if (reason !== undefined) return reason;
  if (projectId === null) return 'there is neither a spec nor a state';
  return readLive(flags, io, { projectId, token: desired?.token }, async (session) => {
    const { clock, timeScale } = session;
    const refreshedAt = clock.now();
    const [ips, servers] = await Promise.all([session.reads.ips(), session.reads.servers?.()]);
    const world = { ips, networks: [], observed: new Map(), ...(servers === undefined ? {} : { servers }) };
    const plan = desired && (await session.engine.plan(desired));
    return { world, plan, prices: session.profile.prices, refreshedAt, now: clock.now(), timeScale };
  });
}
