import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Desired } from '../../core/desired.ts';
import { ConfigError, messageOf, reasonOf, SpecError } from '../../core/errors.ts';
import { documentedProfile } from '../../core/profile.ts';
import { command } from '../../core/remedy.ts';
import type { StateStore } from '../../core/state.ts';
import { counted } from '../../core/text.ts';
import { whyFolderEphemeral } from '../../daemon/ephemeral.ts';
import { heldSpending } from '../../engine/intents/pauses.ts';
import { shownLocation } from '../../state/postgres-url.ts';
import { fromState } from '../compose.ts';
import { type CommonFlags, isUrl } from '../flags.ts';
import { present } from '../render/values.ts';
import { profileOf, specFiles, stateLocation, writingSpec } from '../settings/config.ts';
import { readSpec } from '../settings/spec-source.ts';
import type { Io } from '../terminal.ts';
import { check, type Finding } from './findings.ts';

/** The spec, if there is one. */
export async function checkSpec(flags: CommonFlags, io: Io): Promise<{ spec: Finding; desired?: Desired }> {
  try {
    const desired = await readSpec(flags, io);
    const message = `the spec ${specFiles(flags, io).join(', ')} is valid: project ${desired.projectId}, ${counted(desired.resources.length, 'resource')}`;
    return { spec: check.ok('spec', message), desired };
  } catch (error) {
    if (error instanceof SpecError) {
      const count = counted(error.count, 'error');
      const first = error.message.split('\n')[0] ?? '';
      return {
        spec: check.error('spec', `the spec has ${count}, the first: ${first}`, [command('validate')]),
      };
    }
    if (error instanceof ConfigError && flags.file === undefined)
      return { spec: check.info('spec', 'there is no spec yet', writingSpec()) };
    throw error;
  }
}

/** Which deployment the client believes to talk to. */
export function checkProfile(flags: CommonFlags, io: Io): Finding[] {
  try {
    const { profile, text } = profileOf(flags, io);
    const none = 'no API profile: vdcsync uses the documented limits and operations only';
    if (text === '') return [check.info('profile', none)];
    const { limits, timeScale, operations } = profile;
    const names = Object.keys(operations).join(', ') || 'no undocumented operation';
    const documented = documentedProfile.limits;
    const isHigher = limits.reads > documented.reads || limits.writes > documented.writes;
    const isScaled = timeScale !== 1 && !flags.emulator;
    const clockNote = `the clock of vdcsync runs ${timeScale} times faster`;
    return present(
      check.ok('profile', `the API profile is valid, and enables ${names}`),
      isHigher &&
        check.warning(
          'profile',
          'its limits are higher than the documented ones',
          'make sure that the API really allows that: 429 costs more time than it saves',
        ),
      isScaled && check.info('profile', `\`time_scale: ${timeScale}\`, for an emulator: ${clockNote}`),
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [check.error('profile', error.message, 'correct the API profile')];
  }
}

/** Where the state is, and whether it can be relied on. */
export async function checkState(
  flags: CommonFlags,
  io: Io,
): Promise<{ state: Finding[]; recorded: number | null }> {
  try {
    const location = stateLocation(flags, io);
    const isFile = !isUrl(location);
    return await fromState(flags, io, async (store) => {
      const { projectId: recorded } = await store.info();
      const exists = isFile ? existsSync(location) : recorded !== null;
      const findings = await stateFindings(store, shownLocation(location), exists);
      return { state: present(findings, isFile && checkFolder(location)), recorded };
    });
  } catch (error) {
    return { state: [check.error('state', messageOf(error))], recorded: null };
  }
}

async function stateFindings(store: StateStore, location: string, exists: boolean): Promise<Finding[]> {
  if (!exists) return [check.info('state', `there is no state yet; it will be at ${location}`)];
  const { projectId, serial } = await store.info();
  const bound = (await store.bindings()).length;
  const open = await store.openIntents();
  const blocked = open.filter(({ phase }) => phase === 'blocked');
  const project = projectId === null ? 'no project yet' : `project ${projectId}`;
  const pauses = await heldSpending(store);
  const keys = blocked.map(({ key }) => key).join(', ');
  const left = open.length - blocked.length;
  const seeing = command('status', [], { when: 'to see the commands' });
  const finishing = command('apply', [], { when: 'to finish them' });
  return present(
    check.ok(
      'state',
      `the state ${location} belongs to ${project}: ${counted(bound, 'binding')}, serial ${serial}`,
    ),
    pauses && check.warning('paused', `new spending is ${pauses.reason}`, pauses.remedies),
    keys !== '' && check.warning('state', `blocked, manual decision needed: ${keys}`, [seeing]),
    left > 0 && check.info('state', counted(left, 'open write'), [finishing]),
  );
}

function checkFolder(location: string): Finding {
  const folder = nearestFolder(dirname(location));
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const problem = `${folder} cannot be written: ${reasonOf(error)}`;
    return check.error('state_folder', problem, 'name another place with --state');
  }
  const why = whyFolderEphemeral(folder);
  if (why === undefined) return check.ok('state_folder', `${folder} can be written`);
  const advice = 'put the state on a volume, with --state or VDCSYNC_STATE';
  return check.warning('state_folder', `the state would be lost with a restart: ${why}`, advice);
}

function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}
