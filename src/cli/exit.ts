import { CommanderError } from 'commander';
import {
  ApiProblem,
  ConfigError,
  type Diagnostic,
  FenceError,
  formatDiagnostic,
  messageOf,
  PlanStaleError,
  remediesOf,
  SpecError,
  StateError,
} from '../core/errors.ts';
import { newToken, type Remedy } from '../core/remedy.ts';
import { capitalised, printable } from '../core/text.ts';
import { TransportError } from '../core/transport.ts';
import { remedyLines } from './render/remedies.ts';
import { type Io, paintFor } from './terminal.ts';

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

/** A mistake in the call itself, which ends with its own exit code. */
export function usageError(message: string, remedies: readonly Remedy[] = []): ConfigError {
  return new ConfigError(message, true, remedies);
}

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
  return messageOf(error).split('\n').map(printable).join('\n');
}

const expected = [ApiProblem, ConfigError, FenceError, PlanStaleError, SpecError, StateError, TransportError];

function isExpected(error: unknown): boolean {
  return expected.some((type) => error instanceof type);
}

/** The failure, and the advice if there is any; `undefined` for an error that does not come from a request. */
export function whyFailed(error: unknown): { problem: string; advice?: string } | undefined {
  if (error instanceof ApiProblem) return whyRefused(error);
  return error instanceof TransportError ? whyUnreached(error) : undefined;
}

/** The reason why the API was not read, in few words. Other errors are thrown again. */
export function whyNotRead(error: unknown): string {
  if (error instanceof TransportError) return whyUnreached(error).problem;
  if (error instanceof ApiProblem) return `the API refuses: ${error.message}`;
  throw error;
}

/** The failure, its reason, and the advice for it. An answer that is not of the API shows that something was reached. */
function whyUnreached({ code, message }: TransportError): { problem: string; advice: string } {
  if (code === 'UNREADABLE_ANSWER')
    return {
      problem: `the answer does not come from the API: ${message}`,
      advice: 'check VDC_BASE_URL, and any proxy in between',
    };
  if (code === 'UNUSABLE_ID') return { problem: message, advice: 'report this to the provider' };
  const advice = /CERT|SIGNATURE/.test(code)
    ? 'check the host name in VDC_BASE_URL and the clock of this machine. For a certificate of your own authority, set NODE_EXTRA_CA_CERTS to the file of that authority'
    : 'check VDC_BASE_URL and the network';
  return { problem: `the API cannot be reached: ${message} [${code}]`, advice };
}

/** The refusal with its request, and the advice for it, if there is any. */
function whyRefused(error: ApiProblem): { problem: string; advice?: string } {
  const { message, requestId } = error;
  const where = requestId === null ? '' : ` (request ${requestId})`;
  const advice = adviceForRefusal(error);
  return { problem: `${message.replace(/\.$/, '')}${where}`, ...(advice === undefined ? {} : { advice }) };
}

function adviceForRefusal({ status, code, meaning }: ApiProblem): string | undefined {
  if (status === 401) return `the token is unknown, expired or revoked: ${newToken}`;
  if (code === 'insufficient_privileges')
    return 'the token belongs to a team member without this permission. Change the permissions in the client area';
  if (status === 403) return 'the token may not do this: changes need a token that may read and write';
  if (meaning === 'no_project') return 'check VDC_BASE_URL: its path does not lead to this API';
  if (meaning === 'undocumented')
    return 'check VDC_BASE_URL: it may name another service, or another version of the API';
  if (status >= 500)
    return 'the fault is in the API. Run the command again later. If the fault lasts, report the request to the provider';
  return undefined;
}
