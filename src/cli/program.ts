import { Command, Option } from 'commander';
import { type ExitCode, exitCodes, report } from './exit.ts';
import {
  asksForJson,
  billFormats,
  type CommonFlags,
  calendarMonth,
  callFlags,
  defaultSpec,
  formatIn,
  historyLimit,
  inOwnForm,
  known,
  outputFormats,
  planFormats,
  positiveNumber,
  type Shell,
  shells,
  specOrFolder,
  textOrJson,
  visibleCommands,
  wholeNumber,
  withApi,
  withChanges,
  withCommand,
  withFile,
  withPrices,
  withRun,
  withSelection,
  withState,
} from './flags.ts';
import { exampleText, formatItem, programHelp } from './help.ts';
import { type Io, packaged, specSchema, version } from './terminal.ts';

// A command's own modules are loaded when it runs: most calls need a small part of the whole.
/** Runs one call of the command line. Never rejects: every error is reported, and has its exit code. */
export async function main(args: readonly string[], own: Io): Promise<ExitCode> {
  let code: ExitCode = exitCodes.done;
  let flags: CommonFlags = {};
  const io: Io = {
    ...own,
    get flags() {
      return callFlags(flags, own.env);
    },
  };
  const program = createProgram(io, (result) => {
    code = result;
  });
  program.hook('preAction', (_program, command) => {
    flags = command.opts();
  });
  try {
    await program.parseAsync(withCommand(known(args, program), program), { from: 'user' });
    return code;
  } catch (error) {
    return report(error, io, asksForJson(args));
  }
}

type CommandAction = (...given: unknown[]) => Promise<void>;

/** The parts that each command needs. */
interface Making {
  readonly command: (name: string, description: string) => Command;
  /** The action that runs a function of a command's own module, with the arguments, the flags and `io`. */
  readonly calls: (load: () => Promise<(...given: never[]) => Promise<ExitCode>>) => CommandAction;
  readonly io: Io;
}

/** Every command and flag, in the order of the help. */
export function createProgram(io: Io, end: (code: ExitCode) => void): Command {
  const program = new Command('vdcsync');
  const making: Making = {
    command: commandFactory(program, io),
    calls:
      (load) =>
      // The parser gives the arguments, the flags and the command.
      async (...given) =>
        end(await Reflect.apply(await load(), undefined, [...given.slice(0, -1), io])),
    io,
  };
  program
    .description('Keeps one Virtual Data Center project equal to a YAML file.')
    .version(version)
    .exitOverride()
    .configureOutput(outputTo(io))
    .configureHelp({ formatItem })
    .showHelpAfterError('  → vdcsync --help  # to list the commands')
    .addHelpText('after', ({ command }) => programHelp(command));
  program.commandsGroup('Plan and apply:');
  addPlanAndApply(making);
  program.commandsGroup('Bind, resolve and approve:');
  addBinding(making);
  program.commandsGroup('Reports:');
  addReports(making);
  program.commandsGroup('Tools:').helpCommand('help [command]', 'display help for command');
  addTools(making);
  addCompletion(making, program);
  for (const each of visibleCommands(program)) acceptCommon(each);
  return program;
}

function addPlanAndApply({ command, calls }: Making): void {
  withFile(
    command('validate', 'check the spec offline, and print every error as file:line:col: message'),
    `${specOrFolder}; - is standard input`,
  )
    .addOption(formatIn(textOrJson))
    .action(calls(async () => (await import('./commands/validate.ts')).validate));

  withSelection(withPrices(withApi(command('plan', 'show the operations of the next apply; change nothing'))))
    .addOption(formatIn(planFormats))
    .option('--out <file>', 'write the plan to a file: JSON for `apply --plan`, or the format of --format')
    .addOption(new Option('--dry-run', 'plan is one').hideHelp())
    .addOption(new Option('-y, --yes', 'there is nothing to ask').hideHelp())
    .addOption(new Option('--timeout <duration>', 'there is nothing to wait for').hideHelp())
    .option('--prove', 'also ask the API whether it accepts the creations, by requests that create nothing')
    .option('--detailed-exitcode', 'exit with 2 if there are changes, and with 3 if an operation is blocked')
    .action(calls(async () => (await import('./commands/plan.ts')).plan));

  withSelection(withChanges(command('apply', 'apply the plan until the project has converged')))
    .option(
      '--plan <file>',
      'apply exactly this saved plan, with its --target and --exclude; fail if the project or the spec has changed',
    )
    .action(calls(async () => (await import('./commands/apply.ts')).apply));

  withChanges(command('destroy', 'delete all managed resources'))
    .option(
      '--max-deletions <count>',
      'maximum number of deletions, instead of settings.max_deletions',
      wholeNumber(0, 1_000_000),
    )
    .action(calls(async () => (await import('./commands/apply.ts')).destroy));

  const running = 'run as a daemon that keeps the project equal to a spec, from a file or a branch';
  withRun(command('run', running)).action(
    calls(async () => {
      const { keepYoungHeapSmall } = await import('../platform/system.ts');
      keepYoungHeapSmall();
      return (await import('./commands/run.ts')).runDaemon;
    }),
  );
}

/** The commands that bind, release and resolve resources, and that approve changes. */
function addBinding({ command, calls }: Making): void {
  withApi(command('export', 'print a spec of the live project, with the ids of its resources'))
    .option('--out <file>', 'write the spec to a new file')
    .addOption(formatIn(['yaml', 'json']))
    .action(calls(async () => (await import('./commands/export.ts')).exportProject));

  withApi(command('adopt', 'bind a key of the spec to a live resource'))
    .argument('<key>', 'such as servers.web-1')
    .argument('<id>', "the API's own id")
    .addOption(formatIn(textOrJson))
    .action(calls(async () => (await import('./commands/settle.ts')).adopt));

  withApi(command('forget', 'release a resource: vdcsync no longer manages it, and it stays unchanged'))
    .argument('<key>', 'such as servers.old')
    .addOption(formatIn(textOrJson))
    .action(calls(async () => (await import('./commands/settle.ts')).forget));

  withApi(command('ignore', 'mark servers, addresses and backups as not managed by this spec'))
    .argument(
      '<id...>',
      'ids of servers, and addresses such as 203.0.113.10; for the backups of a deleted server, the id of that server',
    )
    .option('--undo', 'remove the mark; `vdcsync status` lists ignored resources')
    .addOption(formatIn(textOrJson))
    .action(calls(async () => (await import('./commands/settle.ts')).ignore));

  withApi(command('resolve', 'resolve a blocked write: report its outcome, or give it up'))
    .argument('<key>', 'such as servers.web-1')
    .option('--adopt <id>', 'the write succeeded, and created this resource')
    .option('--absent', 'the resource does not exist')
    .option('--retry', 'the write had no effect, or the reason of the refusal is gone: send the write again')
    .option('--abandon', 'give up the write')
    .addOption(formatIn(textOrJson))
    .action(calls(async () => (await import('./commands/settle.ts')).resolve));

  withApi(command('approve', 'approve a plan that a daemon waits to apply (settings.approval)'))
    .argument('<digest>', 'the digest in the log, the notification or the status page')
    .addOption(formatIn(textOrJson))
    .action(calls(async () => (await import('./commands/settle.ts')).approve));

  command('approve-commit', 'continue a rollout of a fleet that waits for approval or has stopped')
    .option('--state <url>', 'postgres:// URL of the state of the fleet (default: VDCSYNC_STATE)')
    .argument('<commit>', 'the commit or digest in the log, in the notification or in /status of the daemon')
    .action(calls(async () => (await import('./commands/approve-commit.ts')).approveCommit));
}

function addReports({ command, calls }: Making): void {
  withPrices(
    withApi(command('status', 'show managed, blocked, billed and unused resources, and open writes')),
  )
    .addOption(formatIn(textOrJson))
    .option('--offline', 'use the state only')
    .option(
      '--detailed-exitcode',
      'exit with 2 if the project has not converged, with 3 if an operation is blocked, and with 1 if the API was not read',
    )
    .action(calls(async () => (await import('./commands/status.ts')).status));

  withPrices(withApi(command('bill', 'show the cost of each resource in a month')))
    .option(
      '--month <month>',
      'the month in UTC, such as 2026-11 (default: the current month)',
      calendarMonth,
    )
    .addOption(formatIn(billFormats))
    .option('--offline', 'use the state only; it has no prices of graphics card packages')
    .action(calls(async () => (await import('./commands/bill.ts')).bill));

  withApi(command('explain', 'explain a code, or show everything that vdcsync knows about a key'))
    .argument('<code-or-key>', 'such as outcome_unknown or servers.web-1')
    .option('--offline', 'use the state only')
    .addOption(formatIn(textOrJson))
    .action(calls(async () => (await import('./commands/explain.ts')).explain));

  withApi(command('output', 'print addresses, ids and names of managed resources for other programs'))
    .addOption(formatIn(outputFormats))
    .option('--key <key>', 'only this resource, such as servers.web-1')
    .option('--offline', 'use the state only; it has no private addresses')
    .option('--out <file>', 'write the result to a file')
    .action(calls(async () => (await import('./commands/outputs.ts')).outputs));

  withApi(command('doctor', 'check token, project, clock, state and API; only --probe-writes sends writes'))
    .addOption(formatIn(textOrJson))
    .option(
      '--probe-writes',
      'also check how the API treats idempotency keys, with requests that it must refuse',
    )
    .action(calls(async () => (await import('./commands/doctor.ts')).doctor));

  withState(withFile(command('history', 'show the writes that vdcsync has sent, newest first')))
    .addOption(formatIn(textOrJson))
    .argument('[key-or-run]', 'only this resource, or only this run, such as 2026-01-31T12:00:00Z')
    .option(
      '--limit <count>',
      `maximum number of writes (default: ${historyLimit}; of one run: all)`,
      wholeNumber(1, 100_000),
    )
    .option('--svg <file>', 'write a picture of the run, or of the last one, on a time axis')
    .action(calls(async () => (await import('./commands/history.ts')).history));

  withFile(
    command(
      'rehearse',
      'apply the spec to the emulator many times: each time with a crash at another step, or with another common fault',
    ),
  )
    .option('--api-profile <file>', 'settings of your API deployment: limits, time_scale, operations')
    .option('--svg <file>', 'write a picture of the operations on a time axis')
    .option(
      '--trials <count>',
      'maximum number of crashes and faults (default: all)',
      wholeNumber(1, 100_000),
    )
    .addOption(formatIn(textOrJson))
    .action(calls(async () => (await import('./commands/rehearse.ts')).rehearse));
}

function addTools({ command, calls, io }: Making): void {
  command('emulator', 'serve an emulated API on this machine')
    .option('--port <port>', 'port; 0 selects a free one (default: 0)', wholeNumber(0, 65_535))
    .option('--speed <factor>', 'speed of its clock, as a multiple of real time (default: 1)', positiveNumber)
    .option('--seed <text>', 'the same seed gives the same ids and durations')
    .option('--faults <file>', 'faults to inject, YAML or JSON')
    .option('--profile <file>', 'API profile: limits and undocumented operations to serve')
    .option('--data <file>', 'keep the resources in this file')
    .addOption(formatIn(textOrJson))
    .action(calls(async () => (await import('./commands/emulator.ts')).emulator));

  command('init', 'write a first spec to edit: a network, an address and a server')
    .option('--out <file>', `new file (default: ${defaultSpec})`)
    .option(
      '--project <id>',
      'id of the project (default: the project of the token)',
      wholeNumber(1, Number.MAX_SAFE_INTEGER),
    )
    .option('--emulator', 'use the catalogue of the emulator')
    .action(calls(async () => (await import('./commands/init.ts')).init));

  command('render', 'run a TypeScript or JavaScript file that defines a project, and print its spec')
    .argument('<program>', 'the file; its default export is the project')
    .option('--out <file>', 'write the spec to this file')
    .action(calls(async () => (await import('./commands/render.ts')).render));

  command('schema', 'print the JSON Schema of the spec file').action(() => {
    io.stdout.write(packaged(specSchema));
  });
}

function addCompletion({ command, io }: Making, program: Command): void {
  command('completion', 'print a completion script for a shell')
    .addArgument(program.createArgument('<shell>', 'which shell').choices(shells))
    .action(async (shell: Shell) => {
      const { completion } = await import('./commands/complete.ts');
      completion(shell, io);
    });
  // The script asks for words by this command: `vdcsync complete -- resolve serv`.
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: readonly string[]) => {
      const { complete } = await import('./commands/complete.ts');
      await complete(program, words, io);
    });
}

/** A script can pass the same flags to every command: a flag without a meaning is accepted and hidden. */
function acceptCommon(command: Command): void {
  const taken = new Set(command.options.map(({ long }) => long));
  const common = withPrices(withApi(new Command())).options.filter(({ long }) => !taken.has(long));
  for (const option of common) command.addOption(option.hideHelp());
}

function commandFactory(program: Command, io: Io) {
  return (name: string, description: string): Command =>
    program
      .command(name)
      .description(description)
      .configureOutput(outputTo(io))
      .showHelpAfterError(`  → vdcsync ${name} --help  # to list the arguments and flags`)
      .addHelpText('after', ({ command }) => exampleText(command))
      .exitOverride();
}

function outputTo(io: Io) {
  return {
    writeOut: (text: string) => void io.stdout.write(text),
    writeErr: (text: string) => void io.stderr.write(text),
    outputError: (text: string, write: (text: string) => void) => write(inOwnForm(text)),
  };
}
