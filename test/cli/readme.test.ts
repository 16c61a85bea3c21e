import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { inProcess } from './run.ts';
import { emulated } from './workspace.ts';

/** The lines of a usual screen. */
const screen = 40;

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('README.md', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const block = (start: string) => readme.split(start)[1]?.split('```')[0] ?? '';

  test('has two complete commands under its picture, and sections of one screen', () => {
    const [, below = ''] = readme.split('plan.svg)\n');
    expect(below.match(/^```sh\n[^`]*```/gm)?.slice(0, 2)).toEqual([
      '```sh\nnpm ci && npm run demo\n```',
      '```sh\nnpm ci && npm test\n```',
    ]);
    expect(below.trimStart().startsWith('```sh\nnpm ci')).toBe(true);
    const lines = readme.split(/^## /m).map((section) => section.split('\n').length);
    expect(Math.max(...lines)).toBeLessThanOrEqual(screen);
  });

  test('shows the output of its commands', async () => {
    const place = emulated(block('```yaml\n'));
    expect(readme).toContain(`$ vdcsync plan --emulator\n${(await place.out('plan')).trimEnd()}\n`);
    await place.out('apply --yes');
    expect(readme).toContain(`$ vdcsync plan --emulator\n${await place.out('plan')}`);
    const [, ...destroy] = /\$ vdcsync (destroy .*)/.exec(readme)?.[1]?.split(' ') ?? [];
    const typed = { cwd: place.cwd, terminal: true, input: 'emulated\n' };
    expect((await inProcess(['destroy', ...destroy], typed)).code).toBe(0);
  });
});
