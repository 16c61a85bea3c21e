import type { Command, Option } from 'commander';
import { visibleCommands } from '../src/cli/flags.ts';
import { endings, environment, examples, files } from '../src/cli/help.ts';
import { createProgram } from '../src/cli/program.ts';
import type { Io } from '../src/cli/terminal.ts';
import { capitalised } from '../src/core/text.ts';

/** Every manual page by its file name: one of the program, and one of each command. All come from the texts of `--help`. */
export function manPages(): ReadonlyMap<string, string> {
  const program = createProgram({} as Io, () => undefined);
  const commands = visibleCommands(program);
  return new Map([
    ['vdcsync.1', programPage(commands)],
    ...commands.map((command) => [`vdcsync-${command.name()}.1`, commandPage(command)] as const),
  ]);
}

function programPage(commands: readonly Command[]): string {
  return page('VDCSYNC', [
    '.SH NAME',
    'vdcsync \\- keeps one Virtual Data Center project equal to a YAML file',
    '.SH SYNOPSIS',
    '.B vdcsync',
    '.I command',
    '.RI [ flags ]',
    '.SH DESCRIPTION',
    escaped(
      'vdcsync reads the file and the live project, shows the difference as a plan, and applies the plan. It records every write before it sends the write, so that nothing is bought twice, even after a crash.',
    ),
    escaped('Without a command vdcsync prints its help and changes nothing.'),
    '.SH COMMANDS',
    ...[...Map.groupBy(commands, (each) => each.helpGroup())].flatMap(([group, members]) => [
      `.SS "${escaped(group.replace(/:$/, ''))}"`,
      ...members.flatMap((each) => item(`vdcsync-${each.name()}(1)`, each.description())),
    ]),
    '.SH ENVIRONMENT',
    ...environment.flatMap(([name, meaning]) => item(name, meaning)),
    '.SH FILES',
    ...files.flatMap(([path, meaning]) => item(path, meaning)),
    ...exitStatus(),
  ]);
}

function commandPage(command: Command): string {
  const name = command.name();
  const own = examples[name] ?? [];
  const options = command.options.filter((each) => !each.hidden);
  return page(`VDCSYNC-${name.toUpperCase()}`, [
    '.SH NAME',
    escaped(`vdcsync-${name} - ${command.description()}`),
    '.SH SYNOPSIS',
    `.B vdcsync ${escaped(name)}`,
    ...command.registeredArguments.map((each) => `.I ${escaped(each.name())}${each.variadic ? ' ...' : ''}`),
    ...(options.length === 0 ? [] : ['.RI [ flags ]']),
    ...(options.length === 0 ? [] : ['.SH OPTIONS', ...options.flatMap(optionLines)]),
    ...(own.length === 0
      ? []
      : ['.SH EXAMPLES', '.nf', ...own.map(([call, does]) => escaped(`${call}    # ${does}`)), '.fi']),
    ...exitStatus(),
    '.SH "SEE ALSO"',
    escaped('vdcsync(1)'),
  ]);
}

function page(title: string, lines: readonly string[]): string {
  const head = [
    '.\\" Made by `npm run generate` from the code: changes here are lost.',
    `.TH ${escaped(title)} 1 "" vdcsync "User Commands"`,
  ];
  return `${[...head, ...lines].join('\n')}\n`;
}

function exitStatus(): string[] {
  return ['.SH "EXIT STATUS"', ...endings.flatMap(([code, meaning]) => item(String(code), meaning))];
}

function optionLines({ flags, description, argChoices }: Option): string[] {
  return item(flags, argChoices === undefined ? description : `${description}: ${argChoices.join(', ')}`);
}

function item(name: string, meaning: string): string[] {
  return ['.TP', `.B ${escaped(name)}`, escaped(`${capitalised(meaning)}.`)];
}

/** Text that is no request of roff, and whose hyphens can be copied. */
function escaped(text: string): string {
  return text
    .replace(/\\/g, '\\e')
    .replace(/-/g, '\\-')
    .replace(/"/g, '\\(dq')
    .replace(/…/g, '...')
    .replace(/^([.'])/gm, '\\&$1');
}
