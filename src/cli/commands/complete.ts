import { RootCommand, script, type Command as TabCommand } from '@bomb.sh/tab';
import { type Command, CommanderError, type Option } from 'commander';
import { partsOf } from '../../core/intent.ts';
import type { StateStore } from '../../core/state.ts';
import type { CommonFlags, Shell } from '../flags.ts';
import type { Io } from '../terminal.ts';

/** Words of the spec and the state, each with a short description. */
interface Words {
  readonly keys: ReadonlyMap<string, string>;
  readonly ids: ReadonlyMap<string, string>;
}

/** The words that are values of an argument or a flag, by its name. */
const wordsByName: ReadonlyMap<string, keyof Words> = new Map([
  ...['key', 'key-or-run', '--key', '--target', '--exclude'].map((name) => [name, 'keys'] as const),
  ...['id', '--adopt'].map((name) => [name, 'ids'] as const),
]);

/** Answers the completion script of a shell: a line for each word that can follow, with a description. It reads local files only. */
export async function complete(program: Command, typed: readonly string[], io: Io): Promise<void> {
  const command = program.commands.find((each) => each.name() === typed[0]);
  const flag = command?.options.find((each) => isFlag(each, typed.at(-2)));
  if (flag !== undefined && /<(file|path|folder)>/.test(flag.flags)) {
    // No words: the shell completes names of files.
    io.stdout.write(':0\n');
    return;
  }
  const words = command === undefined ? none : await wordsFor(command, typed, io);
  const root = new RootCommand();
  for (const each of program.createHelp().visibleCommands(program))
    mirror(each, root.command(each.name(), each.description()), words);
  root.parse([...typed]);
}

const none: Words = { keys: new Map(), ids: new Map() };

function mirror(command: Command, tab: TabCommand, words: Words): void {
  for (const option of command.createHelp().visibleOptions(command)) {
    const { long, short, description } = option;
    if (!long) continue;
    const name = long.slice(2);
    const alias = short?.slice(1);
    const takesValue = option.required || option.optional;
    if (!takesValue) tab.option(name, description, alias);
    else tab.option(name, description, suggest(valuesOf(long, option.argChoices, words)), alias);
  }
  for (const argument of command.registeredArguments) {
    const name = argument.name();
    tab.argument(name, suggest(valuesOf(name, argument.argChoices, words)), argument.variadic);
  }
}

function suggest(values: ReadonlyMap<string, string>) {
  return (add: (value: string, description: string) => void) => {
    for (const [value, description] of values) add(value, description);
  };
}

function valuesOf(name: string, choices: readonly string[] = [], words: Words): ReadonlyMap<string, string> {
  const of = wordsByName.get(name);
  return of === undefined ? new Map(choices.map((each) => [each, ''])) : words[of];
}

function isFlag({ long, short }: Option, word: string | undefined): boolean {
  return word !== undefined && (word === long || word === short);
}

/** Keys of the spec and the state, and ids of the state, if the command takes one. Files that cannot be read give none. */
async function wordsFor(command: Command, typed: readonly string[], io: Io): Promise<Words> {
  const names = [
    ...command.registeredArguments.map((each) => each.name()),
    ...command.options.map(({ long }) => long ?? ''),
  ];
  if (!names.some((name) => wordsByName.has(name))) return none;
  const flags = flagsOf(command, typed);
  const [{ openStore }, { readSpec }] = await Promise.all([
    import('../compose.ts'),
    import('../settings/spec-source.ts'),
  ]);
  const [declared, recorded] = await Promise.all([
    readSpec(flags, io).then(
      ({ resources }) => resources.map(({ key }) => [key, ''] as const),
      () => [],
    ),
    openStore(flags, io, 'read').then(recordedIn, () => none),
  ]);
  return { keys: new Map([...declared, ...recorded.keys]), ids: recorded.ids };
}

async function recordedIn(store: StateStore): Promise<Words> {
  try {
    const [bindings, intents] = await Promise.all([store.bindings(), store.openIntents()]);
    const keys = [
      ...bindings.map(({ key, id }) => [key, `id ${id}`] as const),
      ...intents.map(({ key, phase }) => [key, phase === 'blocked' ? 'blocked' : 'open write'] as const),
    ];
    const ids = [
      ...bindings.map(({ key, id }) => [id, String(key)] as const),
      ...intents.flatMap((each) =>
        (partsOf(each).blocked?.candidates ?? []).map((id) => [id, `may be ${each.key}`] as const),
      ),
    ];
    return { keys: new Map(keys), ids: new Map(ids) };
  } finally {
    await store.close();
  }
}

/** The flags among the typed words. A word that is still incomplete is no error. */
function flagsOf(command: Command, typed: readonly string[]): CommonFlags {
  try {
    command.configureOutput({ writeErr: () => {} }).parseOptions(typed.slice(1));
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
  }
  return command.opts();
}

/** Prints the script that makes a shell ask `vdcsync complete` for every word. */
export function completion(shell: Shell, io: Io): void {
  script(shell, 'vdcsync', 'vdcsync');
  if (shell === 'bash') io.stdout.write(bashExtras);
}

/** The script asks for a function that only the package bash-completion has, and completes no names of files. */
const bashExtras = `
if ! declare -F _get_comp_words_by_ref > /dev/null; then
  _get_comp_words_by_ref() {
    cur=\${COMP_WORDS[COMP_CWORD]}; prev=\${COMP_WORDS[COMP_CWORD-1]}; words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD
  }
fi
complete -o default -F __vdcsync_complete vdcsync
`;
