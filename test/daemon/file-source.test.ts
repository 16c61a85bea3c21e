import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fileSource } from '../../src/daemon/sources/file-source.ts';
import { systemClock } from '../../src/platform/system.ts';
import { folderWith } from '../cli/run.ts';
import { quiet } from '../support/project.ts';

/** Watches a file and collects what is read at each hint. */
function watched(path: string, options: { rereadMs?: number; folder?: boolean } = {}) {
  const stop = new AbortController();
  const source = fileSource({
    ...{ files: [{ path, name: 'spec' }], folder: false, clock: systemClock, log: quiet, rereadMs: 60_000 },
    ...options,
  });
  const hints: string[] = [];
  const watching = source
    .watch(() => {
      void source.read(stop.signal).then(
        ({ specs }) => hints.push(JSON.stringify(specs)),
        (error: Error) => hints.push(`${error.name}: ${error.message}`),
      );
    }, stop.signal)
    .catch(() => undefined);
  onTestFinished(async () => {
    stop.abort();
    await watching;
  });
  const seen = (text: string) => expect.poll(() => hints.at(-1)).toContain(text);
  return { hints, seen };
}

describe('src/daemon/sources/file-source.ts: specs from files', () => {
  test('a burst of saves by rename is one hint, and the next save is another hint', async () => {
    const folder = folderWith({ 'a.yaml': 'zero' });
    const path = join(folder, 'a.yaml');
    const { hints, seen } = watched(path);
    await seen('zero');
    for (let save = 0; save < 10; save += 1) {
      writeFileSync(`${path}.new`, `save ${save}`);
      renameSync(`${path}.new`, path);
    }
    await seen('save 9');
    expect(hints).toHaveLength(2);
    writeFileSync(path, 'in place');
    await seen('in place');
  });

  test('a deleted file is an error until the file returns', async () => {
    const folder = folderWith({ 'a.yaml': 'first' });
    const path = join(folder, 'a.yaml');
    const { seen } = watched(path);
    await seen('first');
    rmSync(path);
    await seen('SourceError: spec: the file does not exist');
    writeFileSync(path, 'again');
    await seen('again');
  });

  test.each([
    ['raises an event', 60_000],
    ['raises no event', 300],
  ])('reads a new version of a ConfigMap whose swap %s', async (_, rereadMs) => {
    const folder = folderWith({ 'mount/..v1/a.yaml': 'one' });
    const mount = join(folder, 'mount');
    symlinkSync('..v1', join(mount, '..data'));
    symlinkSync('..data/a.yaml', join(mount, 'a.yaml'));
    const { seen } = watched(join(mount, 'a.yaml'), { rereadMs });
    await seen('one');
    mkdirSync(join(mount, '..v2'));
    writeFileSync(join(mount, '..v2/a.yaml'), 'two');
    symlinkSync('..v2', join(mount, '..data_tmp'));
    renameSync(join(mount, '..data_tmp'), join(mount, '..data'));
    await seen('two');
  });

  test('every YAML file of a folder is a spec, also a file that is added later', async () => {
    const folder = folderWith({ 'a.yaml': 'one', 'notes.txt': 'x', '.b.yaml': 'hidden' });
    const { seen, hints } = watched(folder, { folder: true });
    await seen('one');
    writeFileSync(join(folder, 'c.yml'), 'later');
    await seen('later');
    expect(hints.at(-1)).not.toContain('hidden');
  });
});
