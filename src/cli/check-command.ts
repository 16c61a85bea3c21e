import { spawn } from 'node:child_process';
import type { TokenPlace } from '../core/desired.ts';
import { type Plan, planJson } from '../core/plan.ts';
import { isOwnVariable } from '../spec/environment.ts';
import type { Io } from './terminal.ts';

interface CheckCall {
  readonly command: string;
  readonly io: Pick<Io, 'cwd' | 'env'>;
  /** The place of the project's token, which the command must not get. */
  readonly token: TokenPlace | undefined;
  readonly signal: AbortSignal;
  readonly onOutput: (text: string) => void;
}

/**
 * Asks a command of the operator whether a plan may be applied. The command reads the plan as JSON on its standard input
 * and exits with 0 to accept it. A command that does not start, or ends by a signal, refuses the plan. The command gets no
 * variable of vdcsync and not the token of the project. Returns why the command refuses the plan.
 */
export async function refusalOf(plan: Plan, call: CheckCall): Promise<string | undefined> {
  const { command, io, token, signal, onOutput } = call;
  const env = Object.fromEntries(
    Object.entries(io.env).filter(([name]) => !isOwnVariable(name) && name !== token?.env),
  );
  // A process group of its own, because the shell may have started other programs.
  const child = spawn(command, { shell: true, cwd: io.cwd, env, stdio: 'pipe', detached: true });
  const end = () => killGroup(child.pid);
  // A program that the command leaves running would keep the output open.
  child.once('exit', end);
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => onOutput(text.toString('utf8')));
  }
  // A command that decides without reading it all closes its input.
  child.stdin.on('error', () => undefined);
  child.stdin.end(`${JSON.stringify(planJson(plan))}\n`);
  const outcome = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`does not run: ${error.message}`));
    child.once('close', (code, ended) =>
      resolve(code === null ? `was ended by ${ended}` : `exits with ${code}`),
    );
  });
  signal.removeEventListener('abort', end);
  return outcome === 'exits with 0' ? undefined : `${command} ${outcome}`;
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // All its processes have ended.
  }
}

/** Asks the command of `apply`. Its output goes to standard error. */
export async function isPlanAccepted(
  command: string,
  plan: Plan,
  token: TokenPlace | undefined,
  io: Io,
  signal: AbortSignal,
): Promise<boolean> {
  const onOutput = (text: string) => void io.stderr.write(text);
  const refusal = await refusalOf(plan, { command, io, token, signal, onOutput });
  if (refusal === undefined) return true;
  io.stderr.write(
    `vdcsync: the command of --check-command refuses the plan, so vdcsync applies nothing: ${refusal}\n`,
  );
  return false;
}

/** A daemon does not wait longer for the command. Real ms. */
const timeoutMs = 60_000;
/** The daemon reports the beginning of the output. */
const mostCharacters = 2_000;

/** The question that the daemon asks before each apply. Absent without a command. */
export function planCheck(command: string | undefined, io: Pick<Io, 'cwd' | 'env'>, tokenPrefix: string) {
  if (command === undefined) return undefined;
  const kept = Object.entries(io.env).filter(([name]) => tokenPrefix === '' || !name.startsWith(tokenPrefix));
  const own = { cwd: io.cwd, env: Object.fromEntries(kept) };
  return async (plan: Plan, token: TokenPlace | undefined, halt: AbortSignal) => {
    let output = '';
    const onOutput = (text: string) => {
      output = `${output}${text}`.slice(0, mostCharacters);
    };
    const late = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([halt, late]);
    const refusal = await refusalOf(plan, { command, io: own, token, signal, onOutput });
    if (refusal === undefined) return undefined;
    const end = late.aborted ? `${command} does not end within ${timeoutMs / 1_000} s` : refusal;
    return output.trim() === '' ? end : `${output.trim()} (${end})`;
  };
}
