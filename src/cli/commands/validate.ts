import { type Diagnostic, formatDiagnostic, SpecError } from '../../core/errors.ts';
import type { CommonFlags } from '../config.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { counted } from '../render/values.ts';
import { readSpec } from '../spec-source.ts';
import { type Io, printable } from '../terminal.ts';

export interface ValidateFlags extends CommonFlags {
  readonly format?: 'text' | 'json';
}

/** Checks the file offline; errors are thrown as `SpecError`, all at once, or listed as JSON. */
export async function validate(flags: ValidateFlags, io: Io): Promise<ExitCode> {
  try {
    const { projectId, resources } = await readSpec(flags, io);
    const count = resources.length;
    const doubts = resources.flatMap((each) => each.doubts ?? []);
    if (flags.format === 'json') {
      putJson(
        { valid: true, project_id: projectId, resources: count, errors: [], warnings: doubts.map(flat) },
        io,
      );
    } else {
      for (const { position, message } of doubts) {
        io.stderr.write(`${formatDiagnostic({ position, message: `warning: ${printable(message)}` })}\n`);
      }
      io.stdout.write(`The spec is valid: project ${projectId}, ${counted(count, 'resource')}.\n`);
    }
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof SpecError) || flags.format !== 'json') throw error;
    const errors = error.diagnostics.map(flat);
    putJson({ valid: false, project_id: null, resources: 0, errors, warnings: [] }, io);
    return exitCodes.failed;
  }
}

function flat({ position, message }: Diagnostic) {
  return { ...position, message };
}

function putJson(result: object, io: Io): void {
  io.stdout.write(`${JSON.stringify({ format_version: 1, ...result }, null, 2)}\n`);
}
