import { accessSync, constants, existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Desired } from '../../core/desired.ts';
import { ConfigError, messageOf, SpecError } from '../../core/errors.ts';
import { documentedProfile } from '../../core/profile.ts';
import { run } from '../../core/remedy.ts';
import type { Intent, StateStore } from '../../core/state.ts';
import { counted } from '../../core/text.ts';
import { whyEphemeral } from '../../daemon/ephemeral.ts';
import { heldSpending } from '../../engine/intents/pauses.ts';
import { shownLocation } from '../../state/postgres-url.ts';
import { fromState } from '../compose.ts';
import { type CommonFlags, isUrl } from '../flags.ts';
import { profileOf, reasonOf, specFiles, stateLocation, writingSpec } from '../settings/config.ts';
import { readSpec } from '../settings/spec-source.ts';
import type { Io } from '../terminal.ts';
import { type Finding, finding, ok } from './findings.ts';

/** The facts of the state that the other checks need. */
export interface StateFacts {
  readonly projectId: number | null;
}

/** The spec, if there is one. */
export async function checkSpec(
  flags: CommonFlags,
  io: Io,
): Promise<{ findings: Finding[]; desired: Desired | undefined }> {
  try {
    const desired = await readSpec(flags, io);
    const message = `the spec ${specFiles(flags, io).join(', ')} is valid: project ${desired.projectId}, ${counted(desired.resources.length, 'resource')}`;
    return { findings: [ok('spec', message)], desired };
  } catch (error) {
    if (error instanceof SpecError) {
      const count = counted(error.count, 'error');
      const first = error.message.split('\n')[0] ?? '';
      return {
        findings: [finding('spec', 'error', `the spec has ${count}, the first: ${first}`, [run('validate')])],
        desired: undefined,
      };
    }
    if (error instanceof ConfigError && flags.file === undefined) {
      return {
        findings: [finding('spec', 'info', 'there is no spec yet', writingSpec())],
        desired: undefined,
      };
    }
    throw error;
  }
}

/** Which deployment the client believes to talk to. */
export function checkProfile(flags: CommonFlags, io: Io): Finding[] {
  try {
    const { profile, text } = profileOf(flags, io);
    if (text === '') {
      return [
        finding('profile', 'info', 'no API profile: vdcsync uses the documented limits and operations only'),
      ];
    }
    const { limits, timeScale, operations } = profile;
    const names = Object.keys(operations);
    const higher =
      limits.reads > documentedProfile.limits.reads || limits.writes > documentedProfile.limits.writes;
    return [
      ok(
        'profile',
        `the API profile is valid, and enables ${names.length === 0 ? 'no undocumented operation' : names.join(', ')}`,
      ),
      ...(higher
        ? [
            finding(
              'profile',
              'warning',
              'its limits are higher than the documented ones',
              'make sure that the API really allows that: 429 costs more time than it saves',
            ),
          ]
        : []),
      ...(timeScale === 1 || flags.emulator
        ? []
        : [
            finding(
              'profile',
              'info',
              `\`time_scale: ${timeScale}\`, for an emulator: the clock of vdcsync runs ${timeScale} times faster`,
            ),
          ]),
    ];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [finding('profile', 'error', error.message, 'correct the API profile')];
  }
}

/** Where the state is, and whether it can be relied on. */
export async function checkState(
  flags: CommonFlags,
  io: Io,
): Promise<{ findings: Finding[]; facts: StateFacts }> {
  const nothing: StateFacts = { projectId: null };
  try {
    const location = stateLocation(flags, io);
    const file = !isUrl(location);
    return await fromState(flags, io, async (store) => {
      const facts = { projectId: (await store.info()).projectId };
      const exists = file ? existsSync(location) : facts.projectId !== null;
      const findings = await told(store, shownLocation(location), exists);
      return { findings: [...findings, ...(file ? checkFolder(location) : [])], facts };
    });
  } catch (error) {
    return { findings: [finding('state', 'error', messageOf(error))], facts: nothing };
  }
}

async function told(store: StateStore, location: string, exists: boolean): Promise<Finding[]> {
  if (!exists) return [finding('state', 'info', `there is no state yet; it will be at ${location}`)];
  const { projectId, serial } = await store.info();
  const bound = (await store.bindings()).length;
  const open = await store.openIntents();
  const blocked = open.filter(({ phase }) => phase === 'blocked');
  const summary = ok(
    'state',
    `the state ${location} belongs to ${projectId === null ? 'no project yet' : `project ${projectId}`}: ${counted(bound, 'binding')}, serial ${serial}`,
  );
  const held = await heldSpending(store);
  const settle = (keys: readonly Intent[]) => keys.map(({ key }) => key).join(', ');
  return [
    summary,
    ...(held === undefined
      ? []
      : [finding('paused', 'warning', `new spending is ${held.reason}`, held.remedies)]),
    ...(blocked.length === 0
      ? []
      : [
          finding('state', 'warning', `blocked, manual decision needed: ${settle(blocked)}`, [
            run('status', [], { when: 'to see the commands' }),
          ]),
        ]),
    ...(open.length === blocked.length
      ? []
      : [
          finding('state', 'info', `${counted(open.length - blocked.length, 'open write')}`, [
            run('apply', [], { when: 'to finish them' }),
          ]),
        ]),
  ];
}

function checkFolder(location: string): Finding[] {
  const folder = nearestFolder(dirname(location));
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    return [
      finding(
        'state_folder',
        'error',
        `${folder} cannot be written: ${reasonOf(error)}`,
        'name another place with --state',
      ),
    ];
  }
  const why = ephemeral(folder);
  if (why === undefined) return [ok('state_folder', `${folder} can be written`)];
  return [
    finding(
      'state_folder',
      'warning',
      `the state would be lost with a restart: ${why}`,
      'put the state on a volume, with --state or VDCSYNC_STATE',
    ),
  ];
}

function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

function ephemeral(folder: string): string | undefined {
  try {
    return whyEphemeral(readFileSync('/proc/self/mountinfo', 'utf8'), realpathSync(folder));
  } catch {
    // The system is not Linux, so it has no `/proc`.
    return undefined;
  }
}
