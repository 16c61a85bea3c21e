import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readTokenFile, tokenSource } from '../../src/cli/settings/config.ts';
import type { Io } from '../../src/cli/terminal.ts';
import { folderWith } from './run.ts';

describe('src/cli/settings/config.ts', () => {
  test('reads a regular file of at most 8 KiB, also through a link inside its folder', () => {
    const folder = folderWith({ 'tokens/real': 'abc\n' });
    symlinkSync('real', join(folder, 'tokens/link'));
    expect(readTokenFile(join(folder, 'tokens/link'), join(folder, 'tokens'))).toBe('abc\n');
    writeFileSync(join(folder, 'tokens/real'), 'x'.repeat(8 * 1024));
    expect(readTokenFile(join(folder, 'tokens/real'))).toHaveLength(8 * 1024);
  });

  test('reads no device, pipe, folder, large file, or file outside the folder', () => {
    const folder = folderWith({ 'tokens/large': 'x'.repeat(8 * 1024 + 1), outside: 'abc' });
    symlinkSync('../outside', join(folder, 'tokens/out'));
    execFileSync('sh', ['-c', 'mkfifo tokens/pipe'], { cwd: folder });
    const reading = (path: string, below?: string) => () => readTokenFile(path, below);
    expect(reading('/dev/urandom')).toThrow(/not a regular file/);
    expect(reading(join(folder, 'tokens/pipe'))).toThrow(/not a regular file/);
    expect(reading(join(folder, 'tokens'))).toThrow(/not a regular file/);
    expect(reading(join(folder, 'tokens/large'))).toThrow(/larger than 8 KiB/);
    expect(reading(join(folder, 'tokens/out'), join(folder, 'tokens'))).toThrow(/leads out of/);
    expect(reading('/etc/passwd', join(folder, 'tokens'))).toThrow(/leads out of/);
  });

  test('reads one token a line from a file or the files of a folder, and reads again later', () => {
    const folder = folderWith({
      several: 'one\n\n two \r\n',
      'tokens/a': 'one\n',
      'tokens/b': 'two\nthree',
      'tokens/.b.swp': 'no token',
    });
    const source = (file: string) =>
      tokenSource({ env: { VDC_TOKEN_FILE: file }, cwd: folder } as unknown as Io);
    const [file, all] = [source('several'), source('tokens')];
    expect([file(), all()]).toEqual([
      ['one', 'two'],
      ['one', 'two', 'three'],
    ]);
    writeFileSync(join(folder, 'several'), 'two\n');
    writeFileSync(join(folder, 'tokens/c'), 'four');
    expect([file(), all()]).toEqual([['two'], ['one', 'two', 'three', 'four']]);
    writeFileSync(join(folder, 'tokens/c'), 'no token');
    expect(all(), 'while a file cannot be used').toEqual(['one', 'two', 'three', 'four']);
  });

  test('refuses a file without a token or with too many, by its name and without its content', () => {
    const many = Array.from({ length: 17 }, (_, at) => `secret-${at}`).join('\n');
    const folder = folderWith({ empty: '\n', many, words: 'one two\n' });
    symlinkSync('..', join(folder, 'up'));
    const source = (file: string, below?: string) => () =>
      tokenSource(
        { env: { VDC_TOKEN_FILE: file }, cwd: folder } as unknown as Io,
        below === undefined ? undefined : { file, below, position: { file: 'a.yaml', line: 1, column: 1 } },
      );
    expect(source('empty')).toThrow('empty holds no token');
    expect(source('many')).toThrow(/^many has 17 lines/);
    expect(source('words')).toThrow(/^words has spaces/);
    expect(source(join(folder, 'up'), folder), 'a folder outside the one allowed').toThrow(/leads out of/);
  });
});
