import type { Command } from 'commander';
import { ConfigError } from '../core/errors.ts';

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
  throw new ConfigError(
    `no command is given. Put a command before ${flag}, for example: vdcsync plan ${flag} …\nvdcsync --help lists the commands.`,
    true,
  );
}

/** An error of the parser in the form of all other errors. */
export function inOwnForm(text: string): string {
  const hinted = /^error: too many arguments .*\.ya?ml\b/.test(text)
    ? text.replace(/\n$/, ' Name the spec with -f.\n')
    : text;
  return hinted.replace(/^error: /, 'vdcsync: ').replace(/\n\(Did you mean (.+)\?\)/, '; did you mean $1?');
}
