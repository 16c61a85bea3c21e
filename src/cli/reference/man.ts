import type { Command, Option } from 'commander';
import { endings, environment, examples, files } from '../help.ts';
import { createProgram } from '../program.ts';
import type { Io } from '../terminal.ts';

/** The manual page, from what `--help` is made of. */
export function manPage(): string {
  const program = createProgram({} as Io, () => undefined);
  const commands = program.commands.filter((each) => each.name() !== 'help');
  return `${[
    '.\\" Made by `npm run generate` from the code: changes here are lost.',
    '.TH VDCSYNC 1 "" vdcsync "User Commands"',
    '.SH NAME',
    'vdcsync \\- keeps one Virtual Data Center project equal to a YAML file',
    '.SH SYNOPSIS',
    '.B vdcsync',
    '.RI [ command ]',
    '.RI [ flags ]',
    '.SH DESCRIPTION',
    escaped(
      'It reads the file and the live project, shows the difference as a plan, and applies the plan. Every write is recorded before it is sent, so that no resource is bought twice, even after a crash or a lost answer.',
    ),
    escaped('Without a command it prints its help and changes nothing.'),
    '.SH COMMANDS',
    ...commands.flatMap(commandLines),
    '.SH ENVIRONMENT',
    ...environment.flatMap(([name, meaning]) => item(name, meaning)),
    '.SH FILES',
    ...files.flatMap(([path, meaning]) => item(path, meaning)),
    '.SH "EXIT STATUS"',
    ...endings.flatMap(([code, meaning]) => item(String(code), meaning)),
  ].join('\n')}\n`;
}

function commandLines(command: Command): string[] {
  const usage = [command.name(), ...command.registeredArguments.map((each) => `<${each.name()}>`)].join(' ');
  const own = examples[command.name()] ?? [];
  return [
    `.SS "vdcsync ${escaped(usage)}"`,
    `${escaped(sentence(command.description()))}`,
    ...command.options.filter((each) => !each.hidden).flatMap(optionLines),
    ...(own.length === 0
      ? []
      : [
          '.PP',
          'Examples:',
          '.RS',
          '.nf',
          ...own.map(([call, does]) => escaped(`${call}    # ${does}`)),
          '.fi',
          '.RE',
        ]),
  ];
}

function optionLines({ flags, description, argChoices }: Option): string[] {
  return item(flags, argChoices === undefined ? description : `${description}: ${argChoices.join(', ')}`);
}

function item(name: string, meaning: string): string[] {
  return ['.TP', `.B ${escaped(name)}`, escaped(sentence(meaning))];
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
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
