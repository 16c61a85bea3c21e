import { type Command, Option } from 'commander';
import { duration, wholeNumber } from './flag-values.ts';

// Flags that several commands have in common: each function adds its own to what it builds on.

export function withFile(command: Command): Command {
  return command.option(
    '-f, --file <file>',
    'the spec; repeatable: the files add up to one; - is standard input',
    (file, files: string[] = []) => [...files, file],
  );
}

export function withState(command: Command): Command {
  return command.option('--state <path>', 'where the state is (default: .vdcsync/state.db)');
}

export function withApi(command: Command): Command {
  return withState(withFile(command))
    .option(
      '--api-profile <file>',
      'what belongs to one deployment of the API: limits, time_scale, operations',
    )
    .option('--emulator', 'use an embedded emulator, its world kept beside the state, instead of an API')
    .option('--prices <file>', 'what the catalogue does not price, for the cost of a plan');
}

export function withChanges(command: Command): Command {
  return withApi(command)
    .option('-y, --yes', 'do not ask')
    .option('--dry-run', 'only show the plan; changes nothing')
    .option('--timeout <duration>', 'end after so long, such as 30m, in the middle of any wait', duration)
    .addOption(textOrJson());
}

export function withSelection(command: Command): Command {
  return command
    .option(
      '--target <key>',
      'only this resource with what it needs; repeatable, a server stands for all in it',
      listed,
    )
    .option('--exclude <key>', 'all but this resource and what needs it; repeatable', listed);
}

/** Every value of a repeatable option. */
function listed(value: string, values: string[] = []): string[] {
  return [...values, value];
}

export function withRun(command: Command): Command {
  return withApi(command)
    .option('--interval <duration>', 'how often everything is looked at again, jittered (default: 5m)')
    .option(
      '--listen <host:port>',
      'where health, metrics and the status page are (default: 127.0.0.1:9464); off',
    )
    .option('--keep-history <duration>', 'how long writes that have ended stay in the history (default: 90d)')
    .option(
      '--metrics-per-project',
      'of a folder of projects: metrics of each project, and not of all together',
    )
    .addOption(new Option('--mode <mode>', 'observe only looks and reports').choices(['correct', 'observe']))
    .option('--git-url <url>', 'take the spec from this Git repository (https or ssh) instead of a file')
    .option('--git-ref <ref>', 'branch or tag to follow (default: main)')
    .option('--git-path <path>', 'file or folder in the repository (default: vdcsync.yaml)')
    .option('--git-interval <duration>', 'how often the repository is asked (default: 1m)')
    .option('--git-allow-rewind', 'follow the branch also where its history was rewritten')
    .option('--git-allow-insecure', 'for trials: also file:// and http:// of this machine')
    .option(
      '--parallel <count>',
      'of a folder of projects in PostgreSQL: so many at a time (default: 10)',
      wholeNumber(1, 1_000),
    )
    .option(
      '--fleet-config <file>',
      'of a folder of projects in PostgreSQL: waves, and how many deletions one change may make (default: 10)',
    )
    .option(
      '--allow-env <name>',
      'a variable that specs of a folder or of Git may use; repeatable (default: none)',
      listed,
    )
    .option(
      '--token-folder <folder>',
      'where specs of a folder or of Git may name files with `token_file` (default: nowhere)',
    )
    .option(
      '--token-env-prefix <prefix>',
      'what variables begin with that specs of a folder or of Git may name with `token_env` (default: none)',
    );
}

export function textOrJson(): Option {
  return new Option('--format <format>', 'form of the result (default: text)').choices(['text', 'json']);
}
