import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import type { Project } from '../../core/resources.ts';
import { loadSpec } from '../../spec/load.ts';
import { openSession } from '../compose.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { type Ask, interview, type ServersOnSale, schemaFile } from '../init/questions.ts';
import type { CommonFlags } from '../settings/config.ts';
import { type Io, openDialogue } from '../terminal.ts';
import { writeOut } from './output.ts';

export interface InitFlags extends Omit<CommonFlags, 'file'> {
  readonly out?: string;
  readonly project?: number;
  readonly yes?: boolean;
}

/** Writes a first spec by asking; with `--yes`, every answer is the default. */
export async function init(flags: InitFlags, io: Io): Promise<ExitCode> {
  const file = flags.out ?? 'vdcsync.yaml';
  if (existsSync(resolve(io.cwd, file))) {
    throw new ConfigError(`${file} exists, and init does not overwrite it. Name another file with --out`);
  }
  if (flags.yes !== true && !io.stdin.isTTY) {
    throw new ConfigError(
      'init asks questions, and there is no terminal. Add --yes to take every default',
      true,
    );
  }
  const { project, offer } = await lookUp(flags, io);
  const id = flags.project ?? project?.id;
  if (flags.yes === true && id === undefined) {
    throw new ConfigError(
      'init does not know the project. Give --project ID, or set VDC_BASE_URL and VDC_TOKEN',
      true,
    );
  }
  const text =
    flags.yes === true
      ? await interview(async (_question, fallback) => fallback, id, offer)
      : await atTerminal(io, (ask) => interview(ask, id, offer));
  // vdcsync must be able to read the file that it writes, for any answers.
  loadSpec([{ file, text }], {});
  writeOut(file, text, io);
  const schema = join(dirname(file), schemaFile);
  if (!existsSync(resolve(io.cwd, schema))) {
    const { projectSchemaText } = await import('../../spec/json-schema.ts');
    writeOut(schema, projectSchemaText(), io);
  }
  const more = file === 'vdcsync.yaml' ? '' : ` -f ${file}`;
  io.stderr.write(
    `vdcsync: ${file} is written. Show the plan:\n  → vdcsync plan${flags.emulator ? ' --emulator' : ''}${more}\n`,
  );
  return exitCodes.done;
}

async function atTerminal(io: Io, work: (ask: Ask) => Promise<string>): Promise<string> {
  const dialogue = await openDialogue(io);
  try {
    return await work(async (question, fallback, check = () => undefined) => {
      for (;;) {
        const given = await dialogue.ask(`${question}${fallback === '' ? '' : ` [${fallback}]`}: `);
        if (given === undefined) throw new ConfigError('the input has ended: nothing was written');
        const answer = given.trim() === '' ? fallback : given.trim();
        const wrong = check(answer);
        if (wrong === undefined) return answer;
        io.stderr.write(`  ${wrong}\n`);
      }
    });
  } finally {
    dialogue.close();
  }
}

/** Project and catalogue, where the API is at hand; a first file can be written without. */
async function lookUp(flags: InitFlags, io: Io): Promise<{ project?: Project; offer?: ServersOnSale }> {
  if (flags.emulator !== true && !io.env.VDC_BASE_URL) return {};
  const session = await openSession(flags, io, { mode: 'read', projectId: flags.project ?? 4711 });
  try {
    const project = await session.reads.project();
    const types = await session.reads.serverTypes();
    const offer = await Promise.all(
      types.map(async ({ id, name, pricing_mode: mode }) => {
        const [images, pricing] = await Promise.all([session.reads.images(id), session.reads.pricing(id)]);
        return {
          name,
          mode,
          images: images.filter(({ type }) => type !== 'useriso').map((image) => image.name),
          packages: pricing.gpu_packages.map(({ key }) => key),
        };
      }),
    );
    return { project, offer: { types: offer } };
  } finally {
    await session.close();
  }
}
