import { describe, expect, test } from 'vitest';
import { folderWith, inProcess, oneNetwork, served } from './run.ts';

describe('src/cli/live.ts', () => {
  test.each(['status', 'bill'])('%s refuses a token of another project', async (command) => {
    const { env } = await served({ projects: [{ id: 4712, name: 'other' }] });
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    expect(await inProcess([command], { cwd, env })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        'The token is for project 4712, not for project 4711. Use a token of project 4711, correct project.id, or use the state only with --offline.',
      ),
    });
  });
});
