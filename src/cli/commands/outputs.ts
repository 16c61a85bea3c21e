import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { ServerId } from '../../core/resources.ts';
import type { Binding, StateInfo } from '../../core/state.ts';
import { didYouMeanKey } from '../../core/suggest.ts';
import { refuseOtherProject } from '../../engine/observe.ts';
import type { OutputFormat } from '../choices.ts';
import { openSession, openStore } from '../compose.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { formatOutputs, withoutAddress } from '../outputs/formats.ts';
import { isShown, type LiveFacts, outputsOf } from '../outputs/outputs.ts';
import type { CommonFlags } from '../settings/config.ts';
import { refuseNoState, refuseSecondState } from '../settings/own-state.ts';
import { readSpec } from '../settings/spec-source.ts';
import type { Io } from '../terminal.ts';
import { writeOut } from './output.ts';

export interface OutputsFlags extends CommonFlags {
  readonly format?: OutputFormat;
  readonly key?: string;
  readonly offline?: boolean;
  readonly out?: string;
}

/** Addresses, ids and names of the managed resources, for other programs. Reads only. */
export async function outputs(flags: OutputsFlags, io: Io): Promise<ExitCode> {
  const desired = await readSpec(flags, io);
  await refuseSecondState(desired.projectId, flags, io);
  await refuseNoState(flags, io);
  const { info, bindings } = await readState(flags, io);
  const shown = flags.key === undefined ? bindings : withKey(flags.key, bindings);
  const live = flags.offline === true ? {} : { live: await readLive(flags, io, desired, shown) };
  const { resources: declared } = desired;
  const made = outputsOf({ projectId: info.projectId, declared, bindings, ...live }, flags.key);
  for (const { key, id } of missing(shown, live.live)) {
    io.stderr.write(
      `vdcsync: ${key} is left out, because the project has no server ${id}. \`vdcsync plan\` shows the difference.\n`,
    );
  }
  const format = flags.format ?? 'json';
  for (const { key } of format === 'json' || format === 'env' ? [] : withoutAddress(made)) {
    const why =
      flags.offline === true
        ? 'the state has no address of this server'
        : 'the API shows no address of this server';
    io.stderr.write(`vdcsync: ${key} is left out: ${why}\n`);
  }
  const text = formatOutputs(made, format);
  if (flags.out === undefined) io.stdout.write(text);
  else writeOut(flags.out, text, io);
  return exitCodes.done;
}

async function readState(
  flags: CommonFlags,
  io: Io,
): Promise<{ readonly info: StateInfo; readonly bindings: readonly Binding[] }> {
  const store = await openStore(flags, io, 'read');
  try {
    return { info: await store.info(), bindings: await store.bindings() };
  } finally {
    await store.close();
  }
}

function withKey(key: string, bindings: readonly Binding[]): readonly Binding[] {
  const found = bindings.filter((each) => each.key === key);
  if (found.length > 0 && key.split('.').length === 2) return found;
  const near = didYouMeanKey(
    key,
    bindings.map((each) => each.key),
  );
  throw new ConfigError(
    `--key ${key}: the state has no network, address, ISO, server or server image with this key${near === '' ? '.' : near} \`vdcsync status\` lists the managed resources.`,
    true,
  );
}

async function readLive(
  flags: CommonFlags,
  io: Io,
  desired: Desired,
  bindings: readonly Binding[],
): Promise<LiveFacts> {
  const { projectId, token } = desired;
  const session = await openSession(flags, io, { mode: 'read', projectId, token });
  try {
    const at = session.clock.now();
    refuseOtherProject(desired, await session.reads.project());
    const [ips, networks] = await Promise.all([session.reads.ips(), session.reads.networks()]);
    const servers = bindings.filter(({ kind }) => factsOf(kind).container);
    const interfaces = await Promise.all(
      servers.map(async ({ id }) => {
        const found = await session.reads.findNetworkInterfaces(Number(id) as ServerId);
        return found === undefined ? [] : [[id, found] as const];
      }),
    );
    return { at, ips, networks, interfaces: new Map(interfaces.flat()) };
  } finally {
    await session.close();
  }
}

function missing(bindings: readonly Binding[], live: LiveFacts | undefined): readonly Binding[] {
  return bindings.filter((each) => live !== undefined && !isShown(each, { live }));
}
