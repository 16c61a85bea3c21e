import { resolve } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import { isReservedVariable, type SpecTrust } from '../../spec/environment.ts';
import type { Io } from '../terminal.ts';

/** The flags that let specs use variables and files of this machine. */
export interface TrustFlags {
  readonly allowEnv?: readonly string[];
  readonly tokenFolder?: string;
  readonly tokenEnvPrefix?: string;
}

const name = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * The permissions of specs, in every command. The author of a spec need not be the operator, also where a pipeline plans
 * the file of a merge request, so a spec has no permissions by default.
 */
export function trustOf(flags: TrustFlags, { env, cwd }: Pick<Io, 'env' | 'cwd'>): SpecTrust {
  const given = flags.allowEnv ?? (env.VDCSYNC_ALLOW_ENV ?? '').split(',').map((each) => each.trim());
  const variables = given.filter((each) => each !== '');
  for (const each of variables) {
    if (name.test(each) && !isReservedVariable(each)) continue;
    throw new ConfigError(
      `--allow-env ${JSON.stringify(each)} is not possible: specs cannot use VDC_*, VDCSYNC_* and PG*, which belong to vdcsync, nor CI_*, GITHUB_* and ACTIONS_*, which belong to the pipeline`,
      true,
    );
  }
  const folder = flags.tokenFolder ?? env.VDCSYNC_TOKEN_FOLDER ?? '';
  const prefix = flags.tokenEnvPrefix ?? env.VDCSYNC_TOKEN_ENV_PREFIX ?? '';
  if (prefix !== '' && !name.test(prefix)) {
    throw new ConfigError(
      `--token-env-prefix ${JSON.stringify(prefix)} cannot be the beginning of a variable name`,
      true,
    );
  }
  return {
    variables,
    tokens: {
      ...(folder === '' ? {} : { folder: resolve(cwd, folder) }),
      ...(prefix === '' ? {} : { prefix }),
      base: cwd,
    },
  };
}
