import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import * as z from 'zod';
import { parseText } from './profile.ts';
import { refusal } from './words.ts';
import { WORLD_FORMAT, type World } from './world.ts';

/** The world in a data file; null without the file. Throws `DataFileError` for a damaged file, or another program's. */
export function readWorldFile(path: string): World | null {
  if (!existsSync(path)) return null;
  try {
    const document = parseText(readFileSync(path, 'utf8'), 'data file');
    const shape = worldSchema.safeParse(document);
    if (!shape.success) throw refusal(shape.error, 'data file');
    return document as World;
  } catch (error) {
    const folder = error instanceof Error && 'code' in error && error.code === 'EISDIR';
    const why = folder ? 'it is a folder' : error instanceof Error ? error.message : String(error);
    throw new DataFileError(
      `${path} is not a data file of an emulator (${why}). The file was not changed: move it, or name another file.`,
    );
  }
}

/** Replaces the data file so that a crash at any point leaves the old or the new one whole. */
export function writeWorldFile(path: string, world: World): void {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.tmp`;
  const file = openSync(temporary, 'w', 0o600);
  try {
    writeSync(file, `${JSON.stringify(world)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  // Without this the rename itself may be lost with the power.
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** The data file cannot be used; it has not been touched. */
export class DataFileError extends Error {
  override readonly name = 'DataFileError';
}

const objects = z.array(z.looseObject({}));

/** Enough of the shape to recognise a foreign or incomplete file. */
const worldSchema = z.looseObject({
  format: z.literal(WORLD_FORMAT),
  version: z.literal(1),
  seed: z.string(),
  dice: z.number(),
  clock: z.looseObject({ callerMs: z.number(), emulatorMs: z.number() }),
  account: z.looseObject({ sshKeys: objects }),
  serverTypes: objects,
  projects: z
    .array(
      z.looseObject({
        id: z.number(),
        servers: objects,
        ips: objects,
        networks: objects,
        isos: objects,
        backups: objects,
        tasks: objects,
        answers: objects,
      }),
    )
    .min(1),
  tokens: objects,
  buckets: z.record(z.string(), z.unknown()),
  nextId: z.looseObject({}),
  poolCursors: z.record(z.string(), z.number()),
  executions: objects,
  late: objects,
  faultHits: z.record(z.string(), z.unknown()),
});
