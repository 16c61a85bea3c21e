import { describe, expect, test } from 'vitest';
import { oneNetwork, vdcsync } from '../cli/run.ts';
import { emulate, live, type RunningDaemon, startDaemon } from './support.ts';

const spec = oneNetwork.replace('networks:', 'settings: { approval: plan }\nnetworks:');
const edited = spec.replace('networks:', 'networks:\n  extra: { cidr: 10.30.0.0/24 }');

/** The commands that the notifications about a waiting plan name. */
const commandsOf = ({ notified }: RunningDaemon) =>
  notified
    .filter(({ condition }) => condition === 'awaiting_approval')
    .map(({ resolve = [] }) => resolve.join());

const digestIn = (command = '') => /vdcsync approve ([0-9a-f]{12})/.exec(command)?.[1] ?? '';

describe('src/daemon: settings.approval', () => {
  test('the daemon waits with its plan, reports each plan once, and carries out the approved plan', async () => {
    const api = await emulate();
    const daemon = await startDaemon(api, { spec });
    await daemon.until(({ condition }) => condition === 'awaiting_approval');
    const names = () => live(api).networks.map(({ name }) => name);
    const call = { cwd: daemon.folder };
    // Further reconciliations find the same plan and report nothing.
    for (const _ of [1, 2, 3]) {
      daemon.child.kill('SIGHUP');
      await daemon.reconciled(1);
    }
    expect([names().includes('backend'), commandsOf(daemon).length]).toEqual([false, 1]);
    const [ended] = daemon.log().filter(({ msg }) => msg === 'reconciliation ended');
    expect(ended).toMatchObject({ outcome: 'awaiting_approval' });
    const first = digestIn(commandsOf(daemon)[0]);

    daemon.write(edited);
    await expect.poll(() => commandsOf(daemon)).toHaveLength(2);
    const second = digestIn(commandsOf(daemon)[1]);
    const stale = await vdcsync(['approve', first], call);
    expect([stale.code, stale.stderr]).toEqual([1, expect.stringContaining(second)]);
    expect(names()).not.toContain('backend');

    const approved = await vdcsync(['approve', second], call);
    expect([approved.code, approved.stdout]).toEqual([0, expect.stringContaining('is approved')]);
    await daemon.until(({ converged }) => converged);
    expect(names()).toEqual(expect.arrayContaining(['backend', 'extra']));
    expect(commandsOf(daemon)).toHaveLength(2);
    const again = await vdcsync(['approve', second], call);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('No plan of this state waits')]);

    const drifts = () => daemon.notified.flatMap(({ event, detail }) => (event === 'drift' ? [detail] : []));
    expect(drifts()).toEqual([]);
    const extra = live(api).networks.find(({ name }) => name === 'extra');
    api.emulator.mutate({ do: 'delete_network', id: extra?.id ?? 0 });
    daemon.child.kill('SIGHUP');
    await expect.poll(drifts).toHaveLength(1);
    expect(drifts()[0]).toMatch(
      /^create networks\.extra: .*\nthe correction waits for your approval: vdcsync approve /,
    );
    expect(names()).not.toContain('extra');
  });

  test('POST /approve accepts its own token, and refuses the token of the page', async () => {
    const api = await emulate();
    const [token, page] = ['approve-canary-of-some-length', 'page-canary-of-some-length'];
    const env = { VDCSYNC_APPROVE_TOKEN: `an-older-token-of-some-length,${token}`, VDCSYNC_HTTP_TOKEN: page };
    const daemon = await startDaemon(api, { spec, env });
    const names = () => live(api).networks.map(({ name }) => name);
    const { plan } = await daemon.until(({ condition }) => condition === 'awaiting_approval');
    const digest = plan?.digest;
    const ask = async (as: string, body: object, method = 'POST') => {
      const headers = { authorization: `Bearer ${as}` };
      const sent = method === 'GET' ? {} : { body: JSON.stringify(body) };
      return (await fetch(`${daemon.url}/approve`, { method, headers, ...sent })).status;
    };

    expect(await ask(page, { digest })).toBe(401);
    expect(await ask('', { digest })).toBe(401);
    expect(await ask(token, {}, 'GET')).toBe(405);
    expect(await ask(token, {})).toBe(400);
    expect(await ask(token, { digest, project: 1 })).toBe(404);
    expect(await ask(token, { digest: 'x'.repeat(5_000) })).toBe(413);
    expect(await ask(token, { digest: '0123456789ab' })).toBe(409);
    expect(
      (await fetch(`${daemon.url}/status`, { headers: { authorization: `Bearer ${token}` } })).status,
    ).toBe(401);
    expect(names()).not.toContain('backend');

    expect(await ask(token, { digest })).toBe(200);
    await daemon.until(({ converged }) => converged);
    expect(names()).toContain('backend');
    expect(JSON.stringify(daemon.log())).not.toContain('canary');
  });

  test('POST /approve does not exist if its token is not configured', async () => {
    const daemon = await startDaemon(await emulate(), { spec });
    expect((await fetch(`${daemon.url}/approve`, { method: 'POST', body: '{}' })).status).toBe(404);
  });
});
