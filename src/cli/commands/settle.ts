import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import type { Resolution } from '../../engine/engine.ts';
import { openSession, type Session } from '../compose.ts';
import type { CommonFlags } from '../config.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { readSpec } from '../spec-source.ts';
import { type Io, printable } from '../terminal.ts';

export interface ResolveFlags extends CommonFlags {
  readonly adopt?: string;
  readonly absent?: boolean;
  readonly abandon?: boolean;
}

/** Binds a key to a live resource. */
export async function adopt(key: string, id: string, flags: CommonFlags, io: Io): Promise<ExitCode> {
  const checked = { key: checkedKey(key), id: checkedId(id) };
  return settle(flags, io, ({ engine }, desired) => engine.adopt(desired, checked.key, checked.id));
}

/** Settles a blocked intent as a person says. */
export async function resolve(key: string, flags: ResolveFlags, io: Io): Promise<ExitCode> {
  const checked = checkedKey(key);
  const resolution = resolutionOf(flags);
  return settle(flags, io, ({ engine }, desired) => engine.resolve(desired, checked, resolution));
}

async function settle(
  flags: CommonFlags,
  io: Io,
  work: (session: Session, desired: Desired) => Promise<string>,
): Promise<ExitCode> {
  const desired = await readSpec(flags, io);
  const { projectId, token } = desired;
  const session = await openSession(flags, io, { mode: 'write', projectId, token });
  try {
    io.stdout.write(`${printable(await work(session, desired))}\n`);
    return exitCodes.done;
  } finally {
    await session.close();
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
