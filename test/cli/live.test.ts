import { describe, expect, test } from 'vitest';
import { oneNetwork, served } from './run.ts';
import { Workspace } from './workspace.ts';

describe('src/cli/live.ts', () => {
  test.each(['status', 'bill'])('%s refuses a token of another project', async (command) => {
    const { env } = await served({ projects: [{ id: 4712, name: 'other' }] });
    const place = new Workspace({ 'vdcsync.yaml': oneNetwork }, env);
    expect(await place.refused(1, command)).toContain(
      'The token is for project 4712, not for project 4711. Use a token of project 4711, correct project.id, or use the state only with --offline.',
    );
  });
});
