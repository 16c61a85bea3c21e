import { Command, Option } from 'commander';
import { ConfigError } from '../core/errors.ts';
import type { ApplyFlags } from './commands/apply.ts';
import { completion, type Shell, shells } from './commands/completion.ts';
import type { DoctorFlags } from './commands/doctor.ts';
import type { EmulatorFlags } from './commands/emulator.ts';
import type { ExportFlags } from './commands/export.ts';
import type { HistoryFlags } from './commands/history.ts';
import type { InitFlags } from './commands/init.ts';
import type { OutputsFlags } from './commands/outputs.ts';
import type { PlanFlags } from './commands/plan.ts';
import type { RehearseFlags } from './commands/rehearse.ts';
import type { AdoptFlags, IgnoreFlags, ResolveFlags } from './commands/settle.ts';
import type { StatusFlags } from './commands/status.ts';
import type { ValidateFlags } from './commands/validate.ts';
import type { RunFlags } from './daemon/settings.ts';
import { type ExitCode, exitCodes, report } from './exit.ts';
import { durationRange, positiveNumber, wholeNumber } from './flag-values.ts';
import { textOrJson, withApi, withChanges, withFile, withRun, withSelection, withState } from './flags.ts';
import { exampleText, programHelp } from './help.ts';
import { outputFormats } from './outputs/names.ts';
import { planFormats } from './plan/formats.ts';
import { type Call, carryingIo } from './render/carrying.ts';
import type { CommonFlags } from './settings/config.ts';
import type { Io } from './terminal.ts';
import { version } from './version.ts';

// A command's own modules are loaded when it runs: most calls need a small part of the whole.

/** Runs one call of the command line. Never rejects: whatever happens is told, and has its exit code. */
export async function main(args: readonly string[], own: Io): Promise<ExitCode> {
  let code: ExitCode = exitCodes.done;
  let call: Call = { command: '', flags: {} };
  const io = carryingIo(own, () => call);
  const program = createProgram(io, (result) => {
    code = result;
  });
  program.hook('preAction', (_program, command) => {
    call = { command: command.name(), flags: command.opts() };
  });
  try {
    await program.parseAsync(withCommand(known(args, program), program), { from: 'user' });
    return code;
  } catch (error) {
    return report(error, io, asksForJson(args));
  }
}

/** Without its `--help`, a word that is no command is told as such, instead of what there is otherwise. */
function known(args: readonly string[], program: Command): readonly string[] {
  const [first = '', ...rest] = args;
  const names = ['help', ...program.commands.map((each) => each.name())];
  if (first === 'help' && rest[0] !== undefined && !names.includes(rest[0])) return rest;
  if (first.startsWith('-') || names.includes(first)) return args;
  return args.filter((each) => each !== '--help' && each !== '-h');
}

function asksForJson(args: readonly string[]): boolean {
  return args.some(
    (each, at) => each === '--format=json' || (each === '--format' && args[at + 1] === 'json'),
  );
}

/** No arguments at all ask for the help. `vdcsync --dry-run …` and `vdcsync apply --dry-run …` are `vdcsync plan …`, with all of its flags. */
function withCommand(args: readonly string[], program: Command): string[] {
  const [first, ...rest] = args;
  if (first === undefined) return ['--help'];
  const isDryRun = args.includes('--dry-run');
  if (isDryRun && first === 'apply') return ['plan', ...rest];
  if (!first.startsWith('-')) return [...args];
  if (isDryRun) return ['plan', ...args];
  refuseFlagsAlone(first, args, program);
  return [...args];
}

/** A flag of a command, without one: no command is guessed, since some of them change the project. */
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

/** What a command is made with. `end` is given the exit code of the one that ran. */
interface Making {
  readonly command: (name: string, description: string) => Command;
  readonly io: Io;
  readonly end: (code: ExitCode) => void;
}

/** Every command and flag, in the order of the help. */
export function createProgram(io: Io, end: (code: ExitCode) => void): Command {
  const program = new Command('vdcsync');
  const making: Making = { command: commandFactory(program, io), io, end };
  program
    .description('Keeps one Virtual Data Center project equal to a YAML file.')
    .version(version)
    .exitOverride()
    .configureOutput(outputTo(io))
    .showHelpAfterError('(--help shows what there is)')
    .addHelpText('after', programHelp());
  addPlanAndApply(making);
  addBinding(making);
  addFleet(making);
  addReports(making);
  addTools(making);
  making
    .command('completion', 'print a completion script for a shell')
    .addArgument(program.createArgument('<shell>', 'which shell').choices(shells))
    .action((shell: Shell) => void io.stdout.write(completion(program, shell)));
  for (const each of program.commands) acceptCommon(each);
  return program;
}

function addPlanAndApply({ command, io, end }: Making): void {
  withFile(command('validate', 'check the file offline; every error at once, as file:line:col: message'))
    .addOption(textOrJson())
    .action(async (flags: ValidateFlags) => {
      const { validate } = await import('./commands/validate.ts');
      end(await validate(flags, io));
    });

  withSelection(withApi(command('plan', 'show what apply would do; changes nothing')))
    .addOption(new Option('--format <format>', 'form of the result (default: text)').choices(planFormats))
    .option(
      '--out <file>',
      'write the plan to a file; as JSON for apply --plan, where no format is asked for',
    )
    .addOption(new Option('--dry-run', 'plan is one').hideHelp())
    .addOption(new Option('-y, --yes', 'there is nothing to ask').hideHelp())
    .addOption(new Option('--timeout <duration>', 'there is nothing to wait for').hideHelp())
    .option('--detailed-exitcode', 'exit with 2 where there are changes, and 3 where something is blocked')
    .action(async (flags: PlanFlags) => {
      const { plan } = await import('./commands/plan.ts');
      end(await plan(flags, io));
    });

  withSelection(withChanges(command('apply', 'carry the plan out until the project is as the file says')))
    .option(
      '--plan <file>',
      'carry out exactly this saved plan, with its --target and --exclude, or refuse if world or file have moved',
    )
    .action(async (flags: ApplyFlags) => {
      const { apply } = await import('./commands/apply.ts');
      end(await apply(flags, io));
    });

  withChanges(command('destroy', 'delete everything that is managed'))
    .option(
      '--max-deletions <count>',
      "at most so many, instead of the file's settings.max_deletions",
      wholeNumber(0, 1_000_000),
    )
    .action(async (flags: ApplyFlags) => {
      const { apply } = await import('./commands/apply.ts');
      end(await apply(flags, io, true));
    });

  withRun(command('run', 'the daemon: watch the file or a branch, and keep the project equal to it')).action(
    async (flags: RunFlags) => {
      const { keepYoungHeapSmall } = await import('../platform/young-heap.ts');
      keepYoungHeapSmall();
      const { run } = await import('./commands/run.ts');
      end(await run(flags, io));
    },
  );
}

/** What binds, lets go of and settles resources. */
function addBinding({ command, io, end }: Making): void {
  withApi(
    command('export', 'print a spec of the live project, ids included; planning it gives nothing but adopt'),
  )
    .option('--out <file>', 'write it to a file, which must not be there yet')
    .addOption(
      new Option('--format <format>', 'form of the result (default: yaml)').choices(['yaml', 'json']),
    )
    .action(async (flags: ExportFlags) => {
      const { exportProject } = await import('./commands/export.ts');
      end(await exportProject(flags, io));
    });

  withApi(command('adopt', 'bind a key of the file to a live resource'))
    .argument('<key>', 'such as servers.web-1')
    .argument('<id>', "the API's own id")
    .addOption(textOrJson())
    .action(async (key: string, id: string, flags: AdoptFlags) => {
      const { adopt } = await import('./commands/settle.ts');
      end(await adopt(key, id, flags, io));
    });

  withApi(command('forget', 'let go of what a key stands for, and leave it as it is'))
    .argument('<key>', 'such as servers.web-1, which has left the file')
    .addOption(textOrJson())
    .action(async (key: string, flags: AdoptFlags) => {
      const { forget } = await import('./commands/settle.ts');
      end(await forget(key, flags, io));
    });

  withApi(
    command(
      'ignore',
      "say of servers and addresses that they are somebody else's, and of backups that they need not be told of",
    ),
  )
    .argument(
      '<id...>',
      'ids of servers, also of one that is gone and left backups, and addresses such as 203.0.113.10',
    )
    .option('--undo', 'take that back: they are asked about again; `vdcsync status` lists what is left alone')
    .addOption(textOrJson())
    .action(async (names: readonly string[], flags: IgnoreFlags) => {
      const { ignore } = await import('./commands/settle.ts');
      end(await ignore(names, flags, io));
    });

  withApi(command('resolve', 'settle a blocked write, whose outcome only an operator can tell'))
    .argument('<key>', 'such as servers.web-1')
    .option('--adopt <id>', 'it did happen, and made this')
    .option('--absent', 'it did not happen; or what was bound is gone, and its id used again')
    .option(
      '--abandon',
      'forget it, whatever it did; or try a replacement again that an earlier refusal still holds back',
    )
    .addOption(textOrJson())
    .action(async (key: string, flags: ResolveFlags) => {
      const { resolve } = await import('./commands/settle.ts');
      end(await resolve(key, flags, io));
    });
}

function addFleet({ command, io, end }: Making): void {
  withState(
    command(
      'approve-commit',
      'let a change of the specs of a fleet go on that waits for an approval or has stopped',
    ),
  )
    .argument('<commit>', 'the commit or digest that log, notification and status name')
    .action(async (change: string, flags: CommonFlags) => {
      const { approveCommit } = await import('./commands/approve-commit.ts');
      end(await approveCommit(change, flags, io));
    });
}

function addReports({ command, io, end }: Making): void {
  withApi(command('status', 'show what is managed, blocked, in flight, billed and idle'))
    .addOption(textOrJson())
    .option('--offline', 'from the state alone')
    .option(
      '--detailed-exitcode',
      'exit with 2 where it has not converged, with 3 where something is blocked, and with 1 where it cannot be told',
    )
    .action(async (flags: StatusFlags) => {
      const { status } = await import('./commands/status.ts');
      end(await status(flags, io));
    });

  withApi(command('output', 'print addresses, ids and names of what is managed, for other programs'))
    .addOption(new Option('--format <format>', 'form of the result (default: json)').choices(outputFormats))
    .option('--key <key>', 'only of this resource, such as servers.web-1')
    .option('--offline', 'from the state alone, without private addresses, which it does not hold')
    .option('--out <file>', 'write it to a file')
    .action(async (flags: OutputsFlags) => {
      const { outputs } = await import('./commands/outputs.ts');
      end(await outputs(flags, io));
    });

  withApi(command('doctor', 'check all that an apply relies on, by safe reads alone'))
    .addOption(textOrJson())
    .option(
      '--probe-writes',
      'also send requests that the API must refuse, and report how it treats idempotency keys',
    )
    .action(async (flags: DoctorFlags) => {
      const { doctor } = await import('./commands/doctor.ts');
      end(await doctor(flags, io));
    });

  withState(withFile(command('history', 'show every write ever sent, newest first')))
    .addOption(textOrJson())
    .option('--key <key>', 'only of this resource')
    .option('--limit <count>', 'at most so many', wholeNumber(1, 100_000))
    .action(async (flags: HistoryFlags) => {
      const { history } = await import('./commands/history.ts');
      end(await history(flags, io));
    });

  withFile(
    command(
      'rehearse',
      'play the file against the emulator, with a crash at every step and every usual fault',
    ),
  )
    .option(
      '--api-profile <file>',
      'what belongs to one deployment of the API: limits, time_scale, operations',
    )
    .option('--svg <file>', 'draw the operations on a time axis')
    .option(
      '--crashes <count>',
      'at most so many, spread over the run (default: 400)',
      wholeNumber(0, 100_000),
    )
    .option(
      '--trials <count>',
      'at most so many in all, crashes and faults, spread over them (default: all)',
      wholeNumber(1, 100_000),
    )
    .addOption(textOrJson())
    .action(async (flags: RehearseFlags) => {
      const { rehearse } = await import('./commands/rehearse.ts');
      end(await rehearse(flags, io));
    });
}

function addTools({ command, io, end }: Making): void {
  command('emulator', 'serve the whole API on this machine, to try and to test against')
    .option('--port <port>', '0, the default, picks a free one', wholeNumber(0, 65_535))
    .option('--speed <factor>', 'how many times faster its clock runs (default: 1)', positiveNumber)
    .option('--seed <text>', 'the same seed gives the same world')
    .option('--faults <file>', 'faults to play, YAML or JSON')
    .option('--task-time <range>', 'how long each task takes, such as 5m or 1m..25m', durationRange)
    .option('--profile <file>', 'API profile: limits and undocumented operations to serve')
    .option('--data <file>', 'keep the world in this file')
    .option('--project <id>', 'id of its project (default: 4711)', wholeNumber(1, Number.MAX_SAFE_INTEGER))
    .addOption(textOrJson())
    .action(async (flags: EmulatorFlags) => {
      const { emulator } = await import('./commands/emulator.ts');
      end(await emulator(flags, io));
    });

  command('init', 'write a first spec by asking')
    .option('--out <file>', 'where to (default: vdcsync.yaml); must not be there yet')
    .option(
      '--project <id>',
      'id of the project; else the one of the token',
      wholeNumber(1, Number.MAX_SAFE_INTEGER),
    )
    .option('-y, --yes', 'ask nothing, take every default')
    .option('--emulator', 'with the catalogue of the emulator')
    .action(async (flags: InitFlags) => {
      const { init } = await import('./commands/init.ts');
      end(await init(flags, io));
    });

  command('schema', 'print the JSON Schema of the spec file').action(async () => {
    const { projectSchemaText } = await import('../spec/generate-schema.ts');
    io.stdout.write(projectSchemaText());
  });
}

/** One set of flags serves every command of a script: where one has no meaning, it is taken and not shown. */
function acceptCommon(command: Command): void {
  const taken = new Set(command.options.map(({ long }) => long));
  const common = withApi(new Command()).options.filter(({ long }) => !taken.has(long));
  for (const option of common) command.addOption(option.hideHelp());
}

function commandFactory(program: Command, io: Io) {
  return (name: string, description: string): Command =>
    program
      .command(name)
      .description(description)
      .configureOutput(outputTo(io))
      .showHelpAfterError('(--help shows what there is)')
      .addHelpText('after', exampleText(name))
      .exitOverride();
}

function outputTo(io: Io) {
  return {
    writeOut: (text: string) => void io.stdout.write(text),
    writeErr: (text: string) => void io.stderr.write(text),
    outputError: (text: string, write: (text: string) => void) =>
      write(
        /^error: too many arguments .*\.ya?ml\b/.test(text)
          ? text.replace(/\n$/, ' A spec is named with -f.\n')
          : text,
      ),
  };
}
