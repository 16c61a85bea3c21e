import { ConfigError } from '../../core/errors.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import { controlPath, giveOrder, type Order } from '../../daemon/control.ts';
import type { Resolution } from '../../engine/engine.ts';
import { openSession } from '../compose.ts';
import { type CommonFlags, stateLocation } from '../config.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { readSpec } from '../spec-source.ts';
import { type Io, printable } from '../terminal.ts';

export interface AdoptFlags extends CommonFlags {
  readonly format?: 'text' | 'json';
}

export interface ResolveFlags extends AdoptFlags {
  readonly adopt?: string;
  readonly absent?: boolean;
  readonly abandon?: boolean;
}

/** Binds a key to a live resource. */
export async function adopt(key: string, id: string, flags: AdoptFlags, io: Io): Promise<ExitCode> {
  return settle({ order: 'adopt', key: checkedKey(key), id: checkedId(id) }, flags, io);
}

/** Settles a blocked intent as a person says. */
export async function resolve(key: string, flags: ResolveFlags, io: Io): Promise<ExitCode> {
  const order = { order: 'resolve', key: checkedKey(key), resolution: resolutionOf(flags) } as const;
  return settle(order, flags, io);
}

/** A daemon that owns the state does it itself, between two passes; else this process does. */
async function settle(order: Order, flags: AdoptFlags, io: Io): Promise<ExitCode> {
  const socket = controlPath(stateLocation(flags, io));
  const answer = (socket && (await giveOrder(socket, order))) || (await settleHere(order, flags, io));
  if ('refused' in answer) throw new ConfigError(answer.refused, answer.misuse);
  const message = printable(answer.done);
  const json = () => JSON.stringify({ format_version: 1, key: order.key, message });
  io.stdout.write(`${flags.format === 'json' ? json() : message}\n`);
  return exitCodes.done;
}

async function settleHere(order: Order, flags: CommonFlags, io: Io): Promise<{ readonly done: string }> {
  const desired = await readSpec(flags, io);
  const { projectId, token } = desired;
  const { engine, close } = await openSession(flags, io, { mode: 'write', projectId, token });
  try {
    const done =
      order.order === 'adopt'
        ? await engine.adopt(desired, order.key, order.id)
        : await engine.resolve(desired, order.key, order.resolution);
    return { done };
  } finally {
    await close();
  }
}

function resolutionOf({ adopt, absent, abandon }: ResolveFlags): Resolution {
  const given: Resolution[] = [
    ...(adopt === undefined ? [] : [{ type: 'adopt' as const, id: checkedId(adopt) }]),
    ...(absent === true ? [{ type: 'absent' as const }] : []),
    ...(abandon === true ? [{ type: 'abandon' as const }] : []),
  ];
  const [one] = given;
  if (one !== undefined && given.length === 1) return one;
  throw new ConfigError('resolve takes exactly one of --adopt ID, --absent and --abandon', true);
}

function checkedKey(text: string): ResourceKey {
  const parsed = parseKey(text);
  if (parsed !== undefined) return parsed.key;
  throw new ConfigError(
    `${JSON.stringify(printable(text))} is no key: keys look like servers.web-1 or servers.web-1.network_interfaces.backend`,
    true,
  );
}

/** Ids are numbers, `net0`, `uiso-1` or timestamps; whatever they are, they stand in a path. */
function checkedId(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_.:+-]{0,99}$/.test(text)) return text;
  throw new ConfigError(`${JSON.stringify(printable(text))} is no id of the API`, true);
}
