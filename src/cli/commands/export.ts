import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import { command, commandLine } from '../../core/remedy.ts';
import { counted, escapeUnseenInLines } from '../../core/text.ts';
import { refuseOtherProject } from '../../engine/observe.ts';
import { inSession, type SessionOptions } from '../compose.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { readInventory } from '../export/inventory.ts';
import { Names } from '../export/names.ts';
import { exportedSpec } from '../export/spec.ts';
import { exportedValue, exportedYaml } from '../export/yaml.ts';
import { type CommonFlags, callFlags } from '../flags.ts';
import { readSpec } from '../settings/spec-source.ts';
import type { Io } from '../terminal.ts';
import { writeOut } from './output.ts';

export interface ExportFlags extends CommonFlags {
  readonly format?: 'yaml' | 'json';
  readonly out?: string;
}

/** Prints a spec of the live project, ids included. Reads only; with a spec, of its project alone. */
export async function exportProject(flags: ExportFlags, io: Io): Promise<ExitCode> {
  const { out } = flags;
  if (out !== undefined && existsSync(resolve(io.cwd, out))) {
    throw new ConfigError(`${out} exists, and export does not overwrite it. Name another file with --out`);
  }
  // Without -f, export reads no spec: this command writes the first one.
  const desired = flags.file === undefined ? undefined : await readSpec(flags, io);
  const live = io.stderr.isTTY && io.env.TERM !== 'dumb';
  const options: SessionOptions = {
    mode: 'read',
    projectId: desired?.projectId ?? (await anyProject(flags, io)),
    token: desired?.token,
    writeLog: (line) => void io.stderr.write(live ? `\r\x1b[K${line}` : line),
  };
  return inSession(flags, io, options, async ({ reads, hidden, store }) => {
    if (desired !== undefined) {
      refuseOtherProject(desired, await reads.project());
      hidden.learn(desired, (await store.info()).lineage);
    }
    const inventory = await readInventory(reads, progressOn(io, live));
    const spec = exportedSpec(inventory, new Names(await store.bindings()));
    const json = () => `${escapeUnseenInLines(JSON.stringify(exportedValue(spec), null, 2))}\n`;
    const text = flags.format === 'json' ? json() : exportedYaml(spec);
    if (out === undefined) io.stdout.write(text);
    else {
      writeOut(out, text, io);
      const others = callFlags({ ...flags, file: [], overlay: [] }, io.env);
      const next = commandLine(command('plan', ['-f', out]), others);
      io.stderr.write(`vdcsync: ${out} is written, with project ${spec.projectId}. Next: ${next}\n`);
    }
    if (!inventory.complete) {
      io.stderr.write(
        'vdcsync: servers without a public address are missing in this spec, because the API does not list them\n',
      );
    }
    return exitCodes.done;
  });
}

/** The token identifies the project. Only an embedded emulator needs the id. */
async function anyProject(flags: CommonFlags, io: Io): Promise<number> {
  const saved = flags.emulator === true && (await import('../embedded.ts')).savedProject(flags, io);
  return saved || 4711;
}

/** In place on a terminal; elsewhere one line. */
function progressOn({ stderr }: Io, live: boolean) {
  return (done: number, of: number) => {
    if (live) stderr.write(done === of ? '\r\x1b[K' : `\rreading server ${done + 1} of ${of}`);
    else if (done === 0 && of > 0) stderr.write(`vdcsync: reading ${counted(of, 'server')}\n`);
  };
}
