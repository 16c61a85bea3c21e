import { resolve } from 'node:path';
import type { Desired } from '../../core/desired.ts';
import { given } from '../../core/json.ts';
import { deletionsOf } from '../../core/plan.ts';
import type { StateStore } from '../../core/state.ts';
import { controlPath, listenForCommands } from '../../daemon/operator-commands/control.ts';
import type { DaemonLogger, OpenProject, ProjectSession } from '../../daemon/ports.ts';
import type { GivenFile } from '../../daemon/sources/file-source.ts';
import type { PostgresInspection } from '../../state/postgres-inspection.ts';
import type { Replica } from '../../state/postgres-sessions.ts';
import { inSession, openSession } from '../compose.ts';
import type { CommonFlags } from '../flags.ts';
import { ownState, stateLocation } from '../settings/config.ts';
import { refuseStateBeside } from '../settings/own-state.ts';
import { refuseSecondState } from '../settings/spec-source.ts';
import type { Io } from '../terminal.ts';
import type { DaemonSettings, RunFlags } from './settings.ts';

/** How this process owns the states of its projects. */
interface Owned {
  readonly replica: Replica | undefined;
  readonly inspection: PostgresInspection | undefined;
  /** Projects whose own state is known to be in use. */
  readonly settled: Set<number>;
}

export async function openProject(
  flags: RunFlags,
  io: Io,
  { mode, projects }: DaemonSettings,
  { projectId, token, log, onEvent, onWait }: OpenProject,
  { replica, inspection, settled }: Owned,
): Promise<ProjectSession> {
  const own = ownFlags(projectId, flags, io, projects);
  if (projects === 'one') await refuseSecondState(projectId, flags, io);
  // Only until it is known, and not at each reconciliation.
  else if (!settled.has(projectId) && (await refuseStateBeside(projectId, flags, io, inspection)))
    settled.add(projectId);
  const session = await openSession(own, io, {
    mode: mode === 'observe' ? 'read' : 'write',
    ...{ projectId, token, onEvent, logger: log },
    ...(mode === 'observe' ? {} : { onWait, replica }),
  });
  const { store, readsAs: reads } = session;
  const control = mode === 'observe' ? undefined : controlPath(stateLocation(own, io));
  let commands: { close(): Promise<void> } | undefined;
  return {
    ...session,
    reads,
    onCommand: async (take) => {
      if (control !== undefined) commands = await listenForCommands(control, take);
    },
    close: async () => {
      await commands?.close();
      if (projects === 'many' && (await isClaimed(store))) settled.add(projectId);
      await session.close();
    },
  };
}

/** The number of deletions and replacements that this spec would cause in one project of a fleet. Changes nothing. */
export async function deletionsNow(
  flags: RunFlags,
  io: Io,
  desired: Desired,
  log: DaemonLogger,
): Promise<number> {
  const { projectId, token } = desired;
  const own = ownFlags(projectId, flags, io, 'many');
  return inSession(own, io, { mode: 'read', projectId, token, logger: log }, async ({ engine }) =>
    deletionsOf(await engine.plan(desired)),
  );
}

/** If the state does not answer, the next call asks it again. */
async function isClaimed(store: StateStore): Promise<boolean> {
  return store.info().then(
    ({ projectId }) => projectId !== null,
    () => false,
  );
}

/** The flags with which a command of the operator refers to this project. */
export function projectFlags(
  projectId: number,
  named: readonly string[],
  flags: RunFlags,
  io: Io,
  settings: DaemonSettings,
): CommonFlags {
  const { emulator, state, apiProfile, allowEnv, tokenFolder, tokenEnvPrefix } = flags;
  const { projects } = settings;
  const file = filesOf(named, flags, io, settings);
  const own = stateLocation(ownFlags(projectId, flags, io, projects), io);
  const overlays = givenFiles(settings).filter(({ overlay }) => overlay === true);
  return {
    ...given({ emulator, file, allowEnv, tokenEnvPrefix }),
    ...(projects === 'many' || state !== undefined ? { state: own } : {}),
    ...(apiProfile === undefined ? {} : { apiProfile: resolve(io.cwd, apiProfile) }),
    ...(overlays.length === 0 ? {} : { overlay: overlays.map(({ path }) => path) }),
    ...(tokenFolder === undefined ? {} : { tokenFolder: resolve(io.cwd, tokenFolder) }),
  };
}

/** The files and overlays that the daemon was started with. In a branch, a path is also the name. */
function givenFiles({ git, files }: DaemonSettings): readonly GivenFile[] {
  return git?.files.map((each) => ({ ...each, name: each.path })) ?? files;
}

/** Each project of a folder has its own file. Paths of a branch are those of a checkout of the branch. */
function filesOf(
  named: readonly string[],
  flags: RunFlags,
  io: Io,
  settings: DaemonSettings,
): readonly string[] | undefined {
  const { projects, git } = settings;
  const given = givenFiles(settings);
  if (projects === 'many') {
    const overlays = new Set(given.flatMap(({ name, overlay }) => (overlay === true ? [name] : [])));
    const own = named.filter((each) => !overlays.has(each));
    return git === undefined ? own.map((each) => resolve(io.cwd, each)) : own;
  }
  return (git === undefined ? flags.file : flags.gitPath) === undefined
    ? undefined
    : given.flatMap(({ path, overlay }) => (overlay === true ? [] : path));
}

function ownFlags(
  projectId: number,
  flags: RunFlags,
  io: Io,
  projects: DaemonSettings['projects'],
): RunFlags {
  return projects === 'many' ? { ...flags, state: ownState(stateLocation(flags, io), projectId) } : flags;
}
