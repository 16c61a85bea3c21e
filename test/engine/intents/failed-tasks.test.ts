import { describe, expect, test } from 'vitest';
import { rig } from '../../support/rig.ts';
import { server } from '../shop.ts';

describe('src/engine/intents: a server whose tasks always fail', () => {
  test('is sent twice in a run, and not again once it is blocked', async () => {
    const played = rig();
    played.fail({ path: 'create_server' }, { do: 'task', outcome: 'fail', leaves: 'nothing' });

    const report = await played.apply(`${server()}ips:\n  one: {server_type_id: 3}\n`);

    const { results, blocked } = report;
    expect(results.flatMap(({ code }) => code ?? [])).toEqual(['task_failed']);
    expect(blocked).toMatchObject([
      { code: 'task_failed', reason: expect.stringContaining('the task failed: ') },
    ]);
    expect(played.project.tasks.filter(({ kind }) => kind === 'create_server')).toHaveLength(2);
  });
});
