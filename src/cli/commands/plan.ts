import { given } from '../../core/json.ts';
import { isRecorded, isWaiting, type Plan } from '../../core/plan.ts';
import { openSession } from '../compose.ts';
import { type ExitCode, exitCodes, InterruptedError } from '../exit.ts';
import type { CommonFlags, PlanFormat, SelectionFlags } from '../flags.ts';
import { nothingManaged } from '../render/plan-text.ts';
import { askedBy, capped, checkUndo, readSpecWithState } from '../settings/spec-source.ts';
import { type Io, paintFor, untilSignal } from '../terminal.ts';
import { putPlan } from './output.ts';

export interface PlanFlags extends CommonFlags, SelectionFlags {
  readonly format?: PlanFormat;
  readonly out?: string;
  readonly detailedExitcode?: boolean;
  readonly maxDeletions?: number;
  readonly prove?: boolean;
}

/** Reads, compares, prints; changes nothing, the local state included. With `prove`, the state records the proofs. */
export async function plan(flags: PlanFlags, io: Io, destroy = false): Promise<ExitCode> {
  checkUndo(flags);
  const desired = capped(await readSpecWithState(flags, io), flags.maxDeletions);
  const { projectId, token } = desired;
  const mode = flags.prove === true ? 'write' : 'read';
  const session = await openSession(flags, io, { mode, projectId, token });
  const done = new AbortController();
  try {
    // Nothing is written, so there is nothing to settle before the end.
    const interrupted = untilSignal(done.signal).then(() => {
      throw new InterruptedError('interrupted');
    });
    const { desired: wanted, selection, undo } = await askedBy(flags, desired, session);
    const options = { destroy, ...given({ selection }) };
    const { engine } = session;
    const planned = flags.prove === true ? engine.prove(wanted, options) : engine.plan(wanted, options);
    const made = await Promise.race([planned, interrupted]);
    const isIdle = made.operations.length + made.blocked.length === 0;
    const isText = (flags.format ?? 'text') === 'text';
    if (destroy && isIdle && isText) io.stdout.write(nothingManaged(made, paintFor(io.stdout, io)));
    else {
      if (undo !== undefined) (isText ? io.stdout : io.stderr).write(undo.header);
      putPlan(made, flags, io);
    }
    return flags.detailedExitcode === true ? detailed(made) : exitCodes.done;
  } finally {
    done.abort();
    await session.close();
  }
}

/** An operation that only waits for an open write is a change: the next apply continues without a decision. */
function detailed({ blocked, operations, warnings, summary }: Plan): ExitCode {
  if (!blocked.every(isWaiting)) return exitCodes.blocked;
  const changes = operations.length + blocked.length + (summary.in_progress ?? 0);
  return changes > 0 || warnings.some(isRecorded) ? exitCodes.changes : exitCodes.done;
}
