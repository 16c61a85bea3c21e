import { isIPv4 } from 'node:net';
import { ConfigError } from '../../core/errors.ts';
import { outside } from '../../core/remedy.ts';
import { printable } from '../../core/text.ts';
import { carryOut } from '../../daemon/operator-commands/command-queue.ts';
import {
  type CommandAnswer,
  controlPath,
  giveCommand,
  type OperatorCommand,
} from '../../daemon/operator-commands/control.ts';
import type { Resolution } from '../../engine/deps.ts';
import { inSession } from '../compose.ts';
import { type ExitCode, exitCodes, usageError } from '../exit.ts';
import { type CommonFlags, isBareName, type ResultFlags } from '../flags.ts';
import { remedyLines } from '../render/remedies.ts';
import { stateLocation } from '../settings/config.ts';
import { refuseNoState } from '../settings/own-state.ts';
import { checkedKey, readSpecWithState } from '../settings/spec-source.ts';
import { type Io, paintFor } from '../terminal.ts';

export interface ResolveFlags extends ResultFlags {
  readonly adopt?: string;
  readonly absent?: boolean;
  readonly retry?: boolean;
  readonly abandon?: boolean;
}

export interface IgnoreFlags extends ResultFlags {
  readonly undo?: boolean;
}

/** Binds a key to a live resource. */
export async function adopt(key: string, id: string, flags: ResultFlags, io: Io): Promise<ExitCode> {
  return settle({ command: 'adopt', key: checkedKey(key), id: checkedId(id) }, flags, io);
}

/** Settles a blocked intent with the decision of the operator. */
export async function resolve(key: string, flags: ResolveFlags, io: Io): Promise<ExitCode> {
  const command = { command: 'resolve', key: checkedKey(key), resolution: resolutionOf(flags) } as const;
  return settle(command, flags, io);
}

/** Releases the resource of a key. */
export async function forget(key: string, flags: ResultFlags, io: Io): Promise<ExitCode> {
  return settle({ command: 'forget', key: checkedKey(key) }, flags, io);
}

/** Marks servers and addresses as ignored, or removes the mark. */
export async function ignore(names: readonly string[], flags: IgnoreFlags, io: Io): Promise<ExitCode> {
  const command = flags.undo === true ? 'unignore' : 'ignore';
  return settle({ command, names: names.map(checkedName) }, flags, io);
}

/** Approves the plan that waits for the operator. */
export async function approve(digest: string, flags: ResultFlags, io: Io): Promise<ExitCode> {
  if (!/^(sha256:)?[0-9a-f]{12,64}$/.test(digest))
    throw usageError(`${JSON.stringify(printable(digest))} is not the digest of a plan`, [
      outside('copy the digest from the log, the notification or the status page of the daemon'),
    ]);
  return settle({ command: 'approve', digest }, flags, io);
}

/** A daemon that owns the state does it itself, between two reconciliations; else this process does. */
async function settle(command: OperatorCommand, flags: ResultFlags, io: Io): Promise<ExitCode> {
  const socket = controlPath(stateLocation(flags, io));
  const answer = (socket && (await giveCommand(socket, command))) || (await settleHere(command, flags, io));
  if ('refused' in answer) throw new ConfigError(answer.refused, answer.misuse, answer.remedies);
  const { text, remedies } = answer.done;
  const message = printable(text);
  const key = 'key' in command ? command.key : null;
  const json = () => JSON.stringify({ format_version: 1, key, message, remedies });
  const shown = () => [message, ...remedyLines(remedies, paintFor(io.stdout, io), '  ')].join('\n');
  io.stdout.write(`${flags.format === 'json' ? json() : shown()}\n`);
  return exitCodes.done;
}

async function settleHere(
  command: OperatorCommand,
  flags: CommonFlags,
  io: Io,
): Promise<Extract<CommandAnswer, { done: unknown }>> {
  const desired = await readSpecWithState(flags, io);
  const { projectId, token } = desired;
  const begins = command.command === 'adopt' || command.command === 'ignore';
  if (!begins || isBareName(flags.state ?? '')) await refuseNoState(flags, io);
  return inSession(flags, io, { mode: 'write', projectId, token }, async ({ engine }) => ({
    done: await carryOut(command, engine, desired),
  }));
}

function resolutionOf({ adopt, absent, retry, abandon }: ResolveFlags): Resolution {
  const given: Resolution[] = [
    ...(adopt === undefined ? [] : [{ type: 'adopt' as const, id: checkedId(adopt) }]),
    ...(absent === true ? [{ type: 'absent' as const }] : []),
    ...(retry === true ? [{ type: 'retry' as const }] : []),
    ...(abandon === true ? [{ type: 'abandon' as const }] : []),
  ];
  const [one] = given;
  if (one !== undefined && given.length === 1) return one;
  throw usageError('resolve takes exactly one of --adopt ID, --absent, --retry and --abandon');
}

/** An id is a number, `net0`, `uiso-1` or a timestamp. Each id becomes part of a path. */
function checkedId(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_.:+-]{0,99}$/.test(text)) return text;
  throw usageError(
    `${JSON.stringify(printable(text))} is not an id of the API. Examples: 2001, net0, uiso-1`,
  );
}

function checkedName(text: string): string {
  if (/^[1-9]\d{0,15}$/.test(text) || isIPv4(text)) return text;
  throw usageError(
    `${JSON.stringify(printable(text))} is neither the id of a server nor an address. Examples: 2001, 203.0.113.10`,
  );
}
