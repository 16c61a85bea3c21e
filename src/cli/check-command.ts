import { spawn } from 'node:child_process';
import type { Plan } from '../core/plan.ts';
import { isOwnVariable } from '../spec/environment.ts';
import type { Io } from './terminal.ts';

/**
 * Asks a command of the operator whether a plan may be applied. The command reads the plan as JSON on its standard input
 * and exits with 0 to accept it. Its output goes to standard error. A command that does not start, or ends by a signal, refuses
 * the plan. The command gets no variable of vdcsync, and so no token.
 */
export async function isPlanAccepted(
  command: string,
  plan: Plan,
  io: Io,
  signal: AbortSignal,
): Promise<boolean> {
  const env = Object.fromEntries(Object.entries(io.env).filter(([name]) => !isOwnVariable(name)));
  const child = spawn(command, { shell: true, cwd: io.cwd, env, stdio: 'pipe', signal });
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => void io.stderr.write(text.toString('utf8')));
  }
  // A command that decides without reading it all closes its input.
  child.stdin.on('error', () => undefined);
  child.stdin.end(`${JSON.stringify(plan)}\n`);
  const outcome = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`does not run: ${error.message}`));
    child.once('close', (code, ended) =>
      resolve(code === null ? `was ended by ${ended}` : `exits with ${code}`),
    );
  });
  if (outcome === 'exits with 0') return true;
  io.stderr.write(
    `vdcsync: the check does not accept the plan, so no change is applied: ${command} ${outcome}\n`,
  );
  return false;
}
