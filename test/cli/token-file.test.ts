import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readTokenFile } from '../../src/cli/settings/token-file.ts';
import { folderWith } from './run.ts';

describe('cli/settings/token-file', () => {
  test('a regular file of at most 8 KiB is read, also through a link inside its folder', () => {
    const folder = folderWith({ 'tokens/real': 'abc\n' });
    symlinkSync('real', join(folder, 'tokens/link'));
    expect(readTokenFile(join(folder, 'tokens/link'), join(folder, 'tokens'))).toBe('abc\n');
    writeFileSync(join(folder, 'tokens/real'), 'x'.repeat(8 * 1024));
    expect(readTokenFile(join(folder, 'tokens/real'))).toHaveLength(8 * 1024);
  });

  test('nothing else is read: no device, no pipe, no folder, no large file, nothing outside the folder', () => {
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
});
