import { describe, expect, test } from 'vitest';
import { applied, rig } from '../support/rig.ts';
import { executed } from './shop.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

const server = (more: string) =>
  `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, ${more}}\n`;

describe('src/engine: a refusal that an edit of the spec resolves', () => {
  const spec = (rule: string) =>
    server(`firewall: {enabled: true, policy_in: drop, rules: [{direction: in, action: accept${rule}}]}`);

  test('is not reported again', async () => {
    const played = await applied(spec(', source: 198.51.100.7'));
    const before = played.events.length;

    await played.apply(spec(''));

    const ends = played.events.slice(before).flatMap((each) => (each.type === 'ended' ? [each.result] : []));
    expect(ends.map(({ key, outcome }) => [key, outcome])).toEqual([['servers.web.firewall', 'done']]);
  });

  test('stays in the history, with the answer of the API', async () => {
    const played = await applied(spec(', source: 198.51.100.7'));
    expect((await played.apply(spec(''))).outcome).toBe('converged');

    const details = (await played.store.intents({ limit: 100 })).map(({ detail = '' }) => detail);
    expect(details).toContainEqual(
      expect.stringMatching(/^422 invalid_request .*source.*; given up later: the spec has changed$/),
    );
  });
});

describe('src/engine: one run', () => {
  test('takes one backup of a server, however soon the next one is due', async () => {
    const played = await applied(server('backup: {max_age: 1m}'));

    expect(played.writes().filter(({ path }) => path.endsWith('/backups'))).toHaveLength(1);
  });

  test('retries a failed download once, and reports the reason of the API', async () => {
    const spec = `${head}isos:\n  bad: {url: "https://nowhere.invalid/fail.iso"}\n`;
    const played = await applied(spec);

    const report = await played.apply(spec);

    expect(executed(played, 'iso')).toBe(2);
    expect(played.project.isos).toHaveLength(1);
    expect(report.outcome).toBe('blocked');
    expect(report.blocked).toMatchObject([
      { key: 'isos.bad', code: 'tainted', reason: 'the host name cannot be resolved' },
    ]);
  });

  test('reports at its end the resources that stay billed', async () => {
    const played = await applied(server('keep_ip: true, backup: {max_age: 24h}'));

    const report = await played.apply(head);

    const left = report.plan.cost.left_billed.join('\n');
    expect(report.outcome).toBe('converged');
    expect(left).toContain('stays billed: keep_ip');
    expect(left).toContain('1 backup of servers.web');
  });

  test.each([402, 403, 422])('reports the request id of a %i, and stores it', async (status) => {
    const played = rig();
    played.fail({ path: 'allocate_ip', nth: 1, times: 9 }, { do: 'answer', status, code: 'odd' });

    const { results } = await played.apply(`${head}ips:\n  one: {}\n`);

    const [kept] = await played.store.intents({ limit: 1 });
    expect(results[0]?.requestId).toMatch(/^req_/);
    expect(kept?.requestId).toBe(results[0]?.requestId);
  });
});
