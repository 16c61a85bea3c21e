import { CommanderError } from 'commander';
import {
  ApiProblem,
  ConfigError,
  type Diagnostic,
  FenceError,
  formatDiagnostic,
  PlanStaleError,
  remediesOf,
  SpecError,
  StateError,
} from '../core/errors.ts';
import { capitalised } from '../core/text.ts';
import { TransportError } from '../core/transport.ts';
import { whyFailed } from './reach.ts';
import { remedyLines } from './render/remedies.ts';
import { type Io, paintFor, printable } from './terminal.ts';

/** The exit codes of the process. Public: scripts branch on them. */
export const exitCodes = {
  done: 0,
  failed: 1,
  changes: 2,
  blocked: 3,
  misuse: 64,
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** An operator pressed Ctrl-C. */
export class InterruptedError extends Error {
  override readonly name = 'Interrupted';
}

/**
 * Reports an error on standard error, once, and returns its exit code. With
 * JSON output, standard output gets the error too, as one more line.
 */
export function report(error: unknown, io: Io, json = false): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.misuse;
  if (error instanceof InterruptedError) return exitCodes.interrupted;
  const misuse = error instanceof ConfigError && error.misuse;
  const code = misuse ? exitCodes.misuse : exitCodes.failed;
  // `file:line:col: message` with nothing around it: editors and CI read these lines.
  io.stderr.write(error instanceof SpecError ? specLines(error) : `vdcsync: ${explain(error)}\n`);
  for (const line of remedyLines(remediesOf(error), paintFor(io.stderr, io), '  '))
    io.stderr.write(`${line}\n`);
  if (!isExpected(error) && error instanceof Error && /^(debug|trace)$/.test(io.env.LOG_LEVEL ?? '')) {
    io.stderr.write(`${error.stack}\n`);
  }
  if (json) io.stdout.write(`${JSON.stringify(errorJson(error, code))}\n`);
  return code;
}

function specLines({ diagnostics }: SpecError): string {
  const excerptOf = ({ excerpt }: Diagnostic) =>
    excerpt === undefined ? '' : `${excerpt.split('\n').map(printable).join('\n')}\n`;
  return diagnostics.map((each) => `${formatDiagnostic(each)}\n${excerptOf(each)}`).join('');
}

/** The public JSON of a call that failed. */
function errorJson(error: unknown, exitCode: ExitCode): object {
  const problem = error instanceof ApiProblem ? error : undefined;
  const name = error instanceof Error ? error.name : 'Error';
  return {
    format_version: 1,
    type: 'error',
    error: isExpected(error) ? name : 'Error',
    message: explain(error),
    code: problem?.code ?? (error instanceof TransportError ? error.code : null),
    status: problem?.status ?? null,
    request_id: problem?.requestId ?? null,
    remedies: remediesOf(error),
    exit_code: exitCode,
  };
}

function explain(error: unknown): string {
  const why = whyFailed(error);
  if (why !== undefined)
    return [
      printable(why.problem),
      ...(why.advice === undefined ? [] : [`${capitalised(why.advice)}.`]),
    ].join('. ');
  // Messages may hold several lines on purpose, never other control characters.
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n').map(printable).join('\n');
}

const expected = [ApiProblem, ConfigError, FenceError, PlanStaleError, SpecError, StateError, TransportError];

function isExpected(error: unknown): boolean {
  return expected.some((type) => error instanceof type);
}
