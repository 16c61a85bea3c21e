import type { Command, Option } from 'commander';

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/** A completion script, made from the commands themselves, so that it cannot be behind them. */
export function completion(program: Command, shell: Shell): string {
  const commands = program.commands.filter((each) => each.name() !== 'help');
  switch (shell) {
    case 'bash':
      return bash(program, commands);
    case 'zsh':
      return `#compdef ${program.name()}\nautoload -U +X bashcompinit && bashcompinit\n${bash(program, commands)}`;
    case 'fish':
      return fish(program, commands);
  }
}

/** As `--help` shows them. */
function shown(command: Command): readonly Option[] {
  return command.options.filter(({ hidden }) => !hidden);
}

function words(command: Command): string {
  const flags = shown(command).flatMap(({ short, long }) => [short, long].filter(Boolean));
  return [...argumentsOf(command), ...flags, '--help'].join(' ');
}

function argumentsOf({ registeredArguments }: Command): readonly string[] {
  return registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
}

function values(option: Option): readonly string[] {
  return option.argChoices ?? [];
}

function bash(program: Command, commands: readonly Command[]): string {
  const name = program.name();
  const cases = commands.map((each) => `    ${each.name()}) words="${words(each)}" ;;`);
  const choices = commands.flatMap((command) =>
    shown(command).flatMap((option) => {
      const listed = values(option).join(' ');
      const at = `${command.name()}:${option.long}`;
      return listed === ''
        ? []
        : [`    ${at}) COMPREPLY=($(compgen -W "${listed}" -- "$current")); return ;;`];
    }),
  );
  return `_${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words
  case "\${COMP_WORDS[1]}:$previous" in
${choices.join('\n')}
    *:-f|*:--file|*:--state|*:--api-profile|*:--prices|*:--plan|*:--out|*:--svg|*:--faults|*:--profile|*:--data) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    *) words="${commands.map((each) => each.name()).join(' ')} --help --version" ;;
  esac
  [ "$COMP_CWORD" = 1 ] && words="${commands.map((each) => each.name()).join(' ')} --help --version"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _${name} ${name}
`;
}

function fish(program: Command, commands: readonly Command[]): string {
  const name = program.name();
  const quoted = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`;
  const lines = commands.flatMap((each) => [
    `complete -c ${name} -f -n __fish_use_subcommand -a ${each.name()} -d ${quoted(each.description())}`,
    ...argumentsOf(each).map(
      (value) => `complete -c ${name} -f -n '__fish_seen_subcommand_from ${each.name()}' -a ${value}`,
    ),
    ...shown(each).map((option) => {
      const parts = [
        `complete -c ${name} -n '__fish_seen_subcommand_from ${each.name()}'`,
        ...(option.short ? [`-s ${option.short.slice(1)}`] : []),
        ...(option.long ? [`-l ${option.long.slice(2)}`] : []),
        ...(option.required ? ['-r'] : []),
        ...(values(option).length > 0 ? [`-f -a ${quoted(values(option).join(' '))}`] : []),
        `-d ${quoted(option.description)}`,
      ];
      return parts.join(' ');
    }),
  ]);
  return `${lines.join('\n')}\n`;
}
