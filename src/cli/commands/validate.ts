import type { CommonFlags } from '../config.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { counted } from '../render/values.ts';
import { readSpec } from '../spec-source.ts';
import type { Io } from '../terminal.ts';

/** Checks the file offline; errors are thrown as `SpecError`, all at once. */
export async function validate(flags: CommonFlags, io: Io): Promise<ExitCode> {
  const { projectId, resources } = await readSpec(flags, io);
  io.stdout.write(`The spec is valid: project ${projectId}, ${counted(resources.length, 'resource')}.\n`);
  return exitCodes.done;
}
