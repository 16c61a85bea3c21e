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

function words(command: Command): string {
  return command.options.flatMap(({ short, long }) => [short, long].filter(Boolean)).join(' ');
}

function values(option: Option): readonly string[] {
  return option.argChoices ?? [];
}

function bash(program: Command, commands: readonly Command[]): string {
  const name = program.name();
  const cases = commands.map((each) => `    ${each.name()}) words="${words(each)} --help" ;;`);
  const choices = [
    ...new Map(commands.flatMap((each) => each.options).map((each) => [each.long, each])).values(),
  ]
    .filter((each) => values(each).length > 0)
    .map(
      (each) =>
        `    ${each.long}) COMPREPLY=($(compgen -W "${values(each).join(' ')}" -- "$current")); return ;;`,
    );
  return `_${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words
  case "$previous" in
${choices.join('\n')}
    -f|--file|--state|--api-profile|--prices|--plan|--out|--svg|--faults|--profile|--data) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    *) words="${commands.map((each) => each.name()).join(' ')} --help --version" ;;
  esac
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
    ...each.options.map((option) => {
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
