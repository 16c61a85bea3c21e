import { resolve } from 'node:path';
import { isNode, LineCounter, parseDocument } from 'yaml';
import { ConfigError } from '../../core/errors.ts';
import { given } from '../../core/json.ts';
import { loadFaults } from '../../emulator/faults-file.ts';
import { type RunningEmulator, type ServeOptions, startEmulator } from '../../emulator/http-server.ts';
import { loadProfile } from '../../emulator/profile.ts';
import { EmulatorInputError } from '../../emulator/readings.ts';
import { type ExitCode, exitCodes, usageError } from '../exit.ts';
import { readText } from '../settings/config.ts';
import { type Io, paintFor, untilSignal } from '../terminal.ts';

export interface EmulatorFlags {
  readonly port?: number;
  readonly speed?: number;
  readonly seed?: string;
  readonly faults?: string;
  readonly profile?: string;
  readonly data?: string;
  readonly format?: 'text' | 'json';
}

/** Serves the API on loopback until a signal stops it. */
export async function emulator(flags: EmulatorFlags, io: Io): Promise<ExitCode> {
  const running = await start(flags, io);
  const done = new AbortController();
  const ended = untilSignal(done.signal);
  io.stdout.write(
    flags.format === 'json' ? `${JSON.stringify(connection(running))}\n` : howTo(running, flags, io),
  );
  await ended;
  done.abort();
  await running.close();
  if (flags.format !== 'json') io.stderr.write('vdcsync: the emulator has ended\n');
  return exitCodes.done;
}

async function start(flags: EmulatorFlags, io: Io): Promise<RunningEmulator> {
  const { port, speed, seed, data } = flags;
  const options: ServeOptions = {
    ...given({ port, speed, seed }),
    ...(data === undefined ? {} : { dataFile: resolve(io.cwd, data) }),
    ...fromFile(flags.profile, 'the profile', io, (text) => ({ profile: loadProfile(text) })),
    ...fromFile(flags.faults, 'the faults file', io, loadFaults),
  };
  try {
    return await startEmulator(options);
  } catch (error) {
    if (error instanceof EmulatorInputError) throw usageError(error.message);
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code === 'EADDRINUSE') throw new ConfigError(`port ${port} is taken; --port 0 picks a free one`);
    if (code === 'EACCES' && port !== undefined)
      throw new ConfigError(`port ${port} may not be used: permission denied`);
    throw error;
  }
}

function fromFile<T>(
  path: string | undefined,
  what: string,
  io: Io,
  load: (text: string) => T,
): T | undefined {
  if (path === undefined) return undefined;
  const text = readText(path, what, io);
  try {
    return load(text);
  } catch (error) {
    if (!(error instanceof EmulatorInputError)) throw error;
    throw new ConfigError(`${path}:${placeIn(text, error.path)} ${error.message.split('\n')[0]}`);
  }
}

/** `line:col:` of the value at a path, or of its nearest existing parent; an empty text if the file is no YAML. */
function placeIn(text: string, path: readonly PropertyKey[]): string {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0) return '';
  for (let length = path.length; length > 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true);
    const range = isNode(node) ? node.range : undefined;
    if (range == null) continue;
    const { line, col } = lines.linePos(range[0]);
    return `${line}:${col}:`;
  }
  return '';
}

/** The public JSON of `vdcsync emulator --format json`. */
function connection({ baseUrl, projects: [first] }: RunningEmulator) {
  if (first === undefined) throw new ConfigError('the emulator has no project');
  const { readWrite, read, member } = first.tokens;
  return {
    base_url: baseUrl,
    project: { id: first.id, name: first.name },
    tokens: { read_write: readWrite, read, member },
  };
}

/** The settings that the client needs: the speed of the clock, and the operations that the emulator's profile enables. */
function profileLines({ speed = 1, profile }: EmulatorFlags, dim: (text: string) => string): string[] {
  const own = (file: string) => [`export VDCSYNC_API_PROFILE=${file}`];
  if (profile === undefined) {
    if (speed === 1) return [];
    return [
      '',
      dim(`# the clock runs ${speed} times faster: set the same speed in the client`),
      `echo 'time_scale: ${speed}' > api-profile.yaml`,
      ...own('api-profile.yaml'),
    ];
  }
  const clockNote = speed === 1 ? '' : `, with \`time_scale: ${speed}\` in it`;
  return ['', dim(`# use the same profile in the client${clockNote}`), ...own(profile)];
}

function howTo(running: RunningEmulator, flags: EmulatorFlags, io: Io): string {
  const paint = paintFor(io.stdout, io);
  const { base_url: url, project, tokens } = connection(running);
  return [
    paint('bold', `The emulator serves project ${project.id} (${project.name}) at ${url}`),
    '',
    paint('dim', '# in another terminal:'),
    `export VDC_BASE_URL=${url}`,
    `export VDC_TOKEN=${tokens.read_write}`,
    ...profileLines(flags, (text) => paint('dim', text)),
    '',
    `curl -H "Authorization: Bearer $VDC_TOKEN" $VDC_BASE_URL/project`,
    'vdcsync plan -f vdcsync.yaml',
    '',
    paint('dim', '# two more tokens, with fewer rights:'),
    `VDC_TOKEN=${tokens.read}  ${paint('dim', '# read only')}`,
    `VDC_TOKEN=${tokens.member}  ${paint('dim', '# a team member: no deletions')}`,
    '',
    paint(
      'dim',
      `Show all data: curl ${url.replace(/\/v1$/, '')}/_emulator/world · Ctrl-C ends the emulator`,
    ),
    '',
  ].join('\n');
}
