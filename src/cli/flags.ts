import { type Command, InvalidArgumentError, Option } from 'commander';
import { shellWord } from '../core/text.ts';
import { type Month, monthOf, parseDuration } from '../core/time.ts';
import type { Forge } from '../daemon/commit-status/forge.ts';
import { usageError } from './exit.ts';
import type { Io } from './terminal.ts';

// The defaults of flags. The help and the code that uses a flag read the same constant.
export const defaultSpec = 'vdcsync.yaml';
export const defaultState = '.vdcsync/state.db';
/** The number of writes that `history` shows. */
export const historyLimit = 50;
export const runDefaults = { interval: '5m', keep: '90d', listen: '127.0.0.1:9464', parallel: 10 };
export const gitDefaults = { ref: 'main', interval: '1m', user: 'x-access-token', statusName: 'vdcsync' };

/** Options that every command with a file, a state or the API takes. */
export interface CommonFlags extends TrustFlags {
  readonly file?: readonly string[];
  /** Merge patches over the files, in this order. */
  readonly overlay?: readonly string[];
  readonly state?: string;
  readonly apiProfile?: string;
  readonly emulator?: boolean;
  readonly prices?: string;
}

/** Options of a command that prints its result as text or as JSON. */
export interface ResultFlags extends CommonFlags {
  readonly format?: (typeof textOrJson)[number];
}

/** The flags that let specs use variables and files of this machine. */
export interface TrustFlags {
  readonly allowEnv?: readonly string[];
  readonly tokenFolder?: string;
  readonly tokenEnvPrefix?: string;
}

/** The flags of a plan for a part of the spec. */
export interface SelectionFlags {
  readonly target?: readonly string[];
  readonly exclude?: readonly string[];
  /** A run, as `vdcsync history` prints it. */
  readonly undo?: string;
}

/** Does a state's location name a database and not a file? */
export function isUrl(location: string): boolean {
  return /^\w+:\/\//.test(location);
}

/** Which of the states in a database a URL names. The last one counts: it may have been added to a URL that names one. */
export function stateNameOf(url: string): string | null {
  return URL.parse(url)?.searchParams.getAll('state').at(-1) ?? null;
}

/** A word without a path or an extension. As a new state, it is more often a mistake than a file. */
export function isBareName(location: string): boolean {
  return /^[\w-]+$/.test(location);
}

/**
 * A state's location as a shell takes it. A URL may hold a password, which no message repeats: where the environment
 * has it, the variable is named; else host, database and state alone.
 */
export function stateWord(location: string, { VDCSYNC_STATE: known = '' }: NodeJS.ProcessEnv): string {
  if (!isUrl(location)) return shellWord(isBareName(location) ? `./${location}` : location);
  const [name, usual] = [location, known].map(stateNameOf);
  if (withoutName(known) === withoutName(location) && /^[\w.-]*$/.test(name ?? '')) {
    const more = name === usual ? '' : `${known.includes('?') ? '&' : '?'}state=${name ?? 'default'}`;
    return `"$VDCSYNC_STATE${more}"`;
  }
  const { protocol = 'postgres:', host = '…', pathname = '' } = URL.parse(location) ?? {};
  return shellWord(`${protocol}//${host}${pathname}${name === null ? '' : `?state=${name}`}`);
}

function withoutName(location: string): string {
  const url = URL.parse(location);
  url?.searchParams.delete('state');
  return url?.href ?? location;
}

/** The flags that select the project. Each command in the output needs them too. */
export function callFlags(flags: CommonFlags, environment: Io['env']): string {
  const given = (flag: string, values: string | readonly string[] = []) =>
    [values].flat().map((value) => ` ${flag} ${shellWord(value)}`);
  return [
    flags.emulator === true ? ' --emulator' : '',
    ...given('-f', flags.file),
    ...given('--overlay', flags.overlay),
    flags.state === undefined ? '' : ` --state ${stateWord(flags.state, environment)}`,
    ...given('--api-profile', flags.apiProfile),
    ...given('--prices', flags.prices),
    ...given('--allow-env', flags.allowEnv),
    ...given('--token-folder', flags.tokenFolder),
    ...given('--token-env-prefix', flags.tokenEnvPrefix),
  ].join('');
}

// Flags that several commands have in common. Each function adds its flags to those of a smaller set.

const spec = 'the spec; repeatable: several files form one spec; - is standard input';
export const specOrFolder =
  'the spec, or a folder with the spec of each project; repeatable: several files form one spec';

export function withFile(command: Command, meaning = spec): Command {
  return command
    .option('-f, --file <file>', meaning, listed)
    .option(
      '--overlay <file>',
      'changes to the spec as a merge patch (RFC 7396), for one environment; repeatable',
      listed,
    )
    .option('--allow-env <name>', 'a variable that the spec may use; repeatable (default: none)', listed)
    .option(
      '--token-folder <folder>',
      'folder from which the spec may read a token_file (default: no folder)',
    )
    .option(
      '--token-env-prefix <prefix>',
      'prefix of the variables that the spec may read as token_env (default: no variable)',
    );
}

export function withState(command: Command): Command {
  return command.option('--state <path>', `path or postgres:// URL of the state (default: ${defaultState})`);
}

export function withApi(command: Command, meaning = spec): Command {
  return withState(withFile(command, meaning))
    .option('--api-profile <file>', 'settings of your API deployment: limits, time_scale, operations')
    .option(
      '--emulator',
      'use an embedded emulator instead of an API; its resources are kept next to the state',
    );
}

/** For commands that show costs. */
export function withPrices(command: Command): Command {
  return command.option('--prices <file>', 'prices that the catalogue does not give');
}

export function withChanges(command: Command): Command {
  return withPrices(withApi(command))
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--dry-run', 'only show the plan; change nothing')
    .option('--timeout <duration>', 'end after this time, such as 30m, even during a wait', duration)
    .option(...checkCommand)
    .addOption(formatIn(textOrJson));
}

const checkCommand = [
  '--check-command <command>',
  'before a plan is applied, give it to this shell command as JSON; any exit code except 0 refuses the plan',
] as const;

export function withSelection(command: Command): Command {
  return command
    .option(
      '--target <key>',
      'only this resource and its dependencies; repeatable; a server includes the resources inside it',
      listed,
    )
    .option('--exclude <key>', 'all except this resource and its dependents; repeatable', listed)
    .option('--undo <run>', 'plan the way back from this run; `vdcsync history` prints its name');
}

/** Every value of a repeatable option. */
function listed(value: string, values: string[] = []): string[] {
  return [...values, value];
}

const forges = ['github', 'gitlab', 'gitea'] satisfies Forge[];

export function withRun(command: Command): Command {
  const { interval, keep, listen, parallel } = runDefaults;
  const { ref, interval: pollEvery, statusName } = gitDefaults;
  return withPrices(withApi(command, specOrFolder))
    .option('--interval <duration>', `time between reconciliations, with jitter (default: ${interval})`)
    .option('--listen <host:port>', `address of health, metrics and status page, or off (default: ${listen})`)
    .option('--keep-history <duration>', `how long ended writes stay in the history (default: ${keep})`)
    .option('--metrics-per-project', 'for a folder of projects: separate metrics for each project')
    .addOption(
      new Option('--mode <mode>', 'whether to correct differences (default), or only to report them').choices(
        ['correct', 'observe'],
      ),
    )
    .addOption(
      new Option(
        '--require-approval <plans>',
        'plans that always need an approval, even if settings.approval asks for less',
      ).choices(['plan']),
    )
    .option(...checkCommand)
    .option('--git-url <url>', 'take the spec from this Git repository (https or ssh) instead of a file')
    .option('--git-ref <ref>', `branch or tag to follow (default: ${ref})`)
    .option(
      '--git-path <path>',
      `file or folder in the repository; repeatable like --file (default: ${defaultSpec})`,
      listed,
    )
    .option('--git-interval <duration>', `time between two fetches of the repository (default: ${pollEvery})`)
    .option('--git-allow-rewind', 'follow the branch even if its history was rewritten')
    .option('--git-allow-insecure', 'for tests: also allow file:// and http:// on this machine')
    .addOption(
      new Option('--commit-status <forge>', 'set the status of each commit in this forge').choices(forges),
    )
    .option(
      '--commit-status-url <url>',
      'URL of the repository in the API of the forge (default: derived from --git-url)',
    )
    .option('--commit-status-name <name>', `name of the status (default: ${statusName})`)
    .option(
      '--parallel <count>',
      `for a folder of projects with the state in PostgreSQL: number of projects at a time (default: ${parallel})`,
      wholeNumber(1, 1_000),
    )
    .option(
      '--fleet-config <file>',
      'for a folder of projects with the state in PostgreSQL: a file with the waves of a rollout and the limits of deletions',
    );
}

/** The first choice is the default. */
export function formatIn(choices: readonly string[]): Option {
  return new Option('--format <format>', `format of the result (default: ${choices[0]})`).choices(choices);
}

// Parsers of flags with a format. Any other text is a mistake in the call.

/** A duration, in ms. */
export function duration(text: string): number {
  const ms = parseDuration(text) ?? 0;
  if (ms > 0) return ms;
  throw new InvalidArgumentError('It must be a duration, such as 90s or 30m.');
}

export function wholeNumber(least: number, most: number) {
  return (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

export function calendarMonth(text: string): Month {
  const month = monthOf(text);
  if (month !== undefined) return month;
  throw new InvalidArgumentError('It must be a month, such as 2026-11.');
}

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It must be a number over 0.');
}

/** Removes `--help` after an unknown command, so that the unknown command is reported instead of the general help. */
export function known(args: readonly string[], program: Command): readonly string[] {
  const [first = '', ...rest] = args;
  const names = ['help', ...program.commands.map((each) => each.name())];
  if (first === 'help' && rest[0] !== undefined && !names.includes(rest[0])) return rest;
  if (first.startsWith('-') || names.includes(first)) return args;
  return args.filter((each) => each !== '--help' && each !== '-h');
}

export function asksForJson(args: readonly string[]): boolean {
  return args.some(
    (each, at) => each === '--format=json' || (each === '--format' && args[at + 1] === 'json'),
  );
}

/** No arguments at all ask for the help. `vdcsync --dry-run …` and `vdcsync apply --dry-run …` are `vdcsync plan …`, with all of its flags. */
export function withCommand(args: readonly string[], program: Command): string[] {
  const [first, ...rest] = args;
  if (first === undefined) return ['--help'];
  const isDryRun = args.includes('--dry-run');
  if (isDryRun && first === 'apply') return ['plan', ...rest];
  if (!first.startsWith('-')) return [...args];
  if (isDryRun) return ['plan', ...args];
  refuseFlagsAlone(first, args, program);
  return [...args];
}

/** A flag without its command. vdcsync guesses no command, because some commands change the project. */
function refuseFlagsAlone(first: string, args: readonly string[], program: Command): void {
  const [flag = ''] = first.split('=');
  const isOfCommand = program.commands.some(({ options }) =>
    options.some(({ long, short }) => long === flag || short === flag),
  );
  if (!isOfCommand || args.includes('--help') || args.includes('-h')) return;
  throw usageError(
    `no command is given. Put a command before ${flag}, for example: vdcsync plan ${flag} …\nvdcsync --help lists the commands.`,
  );
}

/** An error of the parser in the form of all other errors. */
export function inOwnForm(text: string): string {
  const hinted = /^error: too many arguments .*\.ya?ml\b/.test(text)
    ? text.replace(/\n$/, ' Name the spec with -f.\n')
    : text;
  return hinted.replace(/^error: /, 'vdcsync: ').replace(/\n\(Did you mean (.+)\?\)/, '; did you mean $1?');
}

// The choices of flags and arguments, apart from the commands, whose modules are loaded when they run.

/** The output formats of most commands. */
export const textOrJson = ['text', 'json'] as const;

/** The output formats of a plan. */
export const planFormats = ['text', 'json', 'markdown', 'svg'] as const;
export type PlanFormat = (typeof planFormats)[number];

/** The forms of `vdcsync output`; all but `json` and `env` are of servers alone. */
export const outputFormats = ['json', 'env', 'ansible', 'ssh-config'] as const;
export type OutputFormat = (typeof outputFormats)[number];

export const billFormats = ['text', 'json', 'csv', 'svg'] as const;
export type BillFormat = (typeof billFormats)[number];

/** Shells that have a completion script. */
export const shells = ['bash', 'zsh', 'fish', 'powershell'] as const;
export type Shell = (typeof shells)[number];

/** The commands of the help, without the help itself. */
export function visibleCommands(program: Command): readonly Command[] {
  return program
    .createHelp()
    .visibleCommands(program)
    .filter((each) => each.name() !== 'help');
}
