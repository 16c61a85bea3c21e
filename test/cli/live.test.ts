import { describe, expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/http-server.ts';
import { folderWith, inProcess, oneNetwork } from './run.ts';

describe('src/cli/live.ts', () => {
  test.each(['status', 'bill'])('%s refuses a token of another project', async (command) => {
    const api = await startEmulator({ projects: [{ id: 4712, name: 'other' }] });
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const env = { VDC_BASE_URL: api.baseUrl, VDC_TOKEN: api.emulator.tokens(4712).readWrite };
    try {
      expect(await inProcess([command], { cwd, env })).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(
          'The token is for project 4712, not for project 4711. Use a token of project 4711, correct project.id, or use the state only with --offline.',
        ),
      });
    } finally {
      await api.close();
    }
  });
});
