import { shellWord } from '../../core/escape.ts';
import type { CommonFlags } from '../settings/config.ts';
import { stateWord } from '../settings/state-url.ts';
import type { Io } from '../terminal.ts';

/** The flags that select the project. Each command in the output needs them too. */
export function callFlags(flags: CommonFlags, environment: Io['env']): string {
  return [
    flags.emulator === true ? ' --emulator' : '',
    ...(flags.file ?? []).map((file) => ` -f ${shellWord(file)}`),
    ...(flags.overlay ?? []).map((file) => ` --overlay ${shellWord(file)}`),
    flags.state === undefined ? '' : ` --state ${stateWord(flags.state, environment)}`,
    flags.apiProfile === undefined ? '' : ` --api-profile ${shellWord(flags.apiProfile)}`,
    flags.prices === undefined ? '' : ` --prices ${shellWord(flags.prices)}`,
    ...(flags.allowEnv ?? []).map((name) => ` --allow-env ${shellWord(name)}`),
    flags.tokenFolder === undefined ? '' : ` --token-folder ${shellWord(flags.tokenFolder)}`,
    flags.tokenEnvPrefix === undefined ? '' : ` --token-env-prefix ${shellWord(flags.tokenEnvPrefix)}`,
  ].join('');
}
