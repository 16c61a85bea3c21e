import { CommanderError } from 'commander';
import {
  ApiProblem,
  ConfigError,
  FenceError,
  PlanStaleError,
  SpecError,
  StateError,
} from '../core/errors.ts';
import { TransportError } from '../core/transport.ts';
import { type Io, printable } from './terminal.ts';

/** What the process ends with. Public: scripts branch on it. */
export const exitCodes = {
  done: 0,
  failed: 1,
  changes: 2,
  blocked: 3,
  misuse: 64,
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** A person pressed Ctrl-C. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Says what went wrong on standard error, once, and gives the exit code for it. */
export function report(error: unknown, io: Io): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.misuse;
  if (error instanceof Interrupted) return exitCodes.interrupted;
  if (error instanceof SpecError) {
    // `file:line:col: message` with nothing around it: editors and CI read these lines.
    io.stderr.write(`${error.message}\n`);
    return exitCodes.failed;
  }
  io.stderr.write(`vdcsync: ${explain(error)}\n`);
  if (!isExpected(error) && error instanceof Error && /^(debug|trace)$/.test(io.env.LOG_LEVEL ?? '')) {
    io.stderr.write(`${error.stack}\n`);
  }
  return error instanceof ConfigError && error.misuse ? exitCodes.misuse : exitCodes.failed;
}

function explain(error: unknown): string {
  if (error instanceof ApiProblem) {
    const where = error.requestId === null ? '' : ` (request ${printable(error.requestId)})`;
    return `${printable(error.message)}${where}${hint(error)}`;
  }
  if (error instanceof TransportError) {
    return `the API cannot be reached: ${printable(error.message)} [${error.code}]. Check VDC_BASE_URL and the network.`;
  }
  // Messages may hold several lines on purpose, never other control characters.
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n').map(printable).join('\n');
}

function hint({ status }: ApiProblem): string {
  if (status === 401) return '. Check VDC_TOKEN: it is unknown, expired or revoked.';
  if (status === 403) return '. The token may not do this: changes need a read and write token.';
  return '';
}

const expected = [ApiProblem, ConfigError, FenceError, PlanStaleError, StateError, TransportError];

function isExpected(error: unknown): boolean {
  return expected.some((type) => error instanceof type);
}
