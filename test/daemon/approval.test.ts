import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as streamText } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oneNetwork, vdcsync } from '../cli/run.ts';
import { emulate, live, startDaemon, until } from './support.ts';

const spec = oneNetwork.replace('networks:', 'settings: { approval: plan }\nnetworks:');
const edited = spec.replace('networks:', 'networks:\n  extra: { cidr: 10.30.0.0/24 }');

interface Notification {
  readonly condition?: string;
  readonly resolve?: readonly string[];
}

/** Receives notifications until the test ends. */
async function receiver() {
  const bodies: Notification[] = [];
  const server = createServer(async (incoming, outgoing) => {
    bodies.push(JSON.parse(await streamText(incoming)) as Notification);
    outgoing.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const commands = () =>
    bodies
      .filter(({ condition }) => condition === 'awaiting_approval')
      .map(({ resolve = [] }) => resolve.join());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, commands };
}

const digestIn = (command = '') => /vdcsync approve ([0-9a-f]{12})/.exec(command)?.[1] ?? '';

describe('src/daemon: settings.approval', () => {
  test('the daemon plans and waits, reports each plan once, and carries out the approved one', async () => {
    const api = await emulate();
    const notices = await receiver();
    const daemon = await startDaemon(api, { spec, env: { VDCSYNC_NOTIFY_URL: notices.url } });
    const waiting = await daemon.until(({ condition }) => condition === 'awaiting_approval', 'it waits');
    const names = () => live(api).networks.map(({ name }) => name);
    const call = { cwd: daemon.folder };
    // Further reconciliations find the same plan and report nothing.
    await daemon.until(({ passes }) => {
      daemon.child.kill('SIGHUP');
      return passes > waiting.passes + 2;
    }, 'it has looked again');
    expect([names().includes('backend'), notices.commands().length]).toEqual([false, 1]);
    const first = digestIn(notices.commands()[0]);

    daemon.write(edited);
    const all = await until(
      async () => notices.commands(),
      ({ length }) => length === 2,
      'the edited plan is reported',
    );
    const stale = await vdcsync(['approve', first], call);
    expect([stale.code, stale.stderr]).toEqual([1, expect.stringContaining(digestIn(all[1]))]);
    expect(names()).not.toContain('backend');

    const approved = await vdcsync(['approve', digestIn(all[1])], call);
    expect([approved.code, approved.stdout]).toEqual([0, expect.stringContaining('is approved')]);
    await daemon.until(({ converged }) => converged, 'the plan is carried out');
    expect(names()).toEqual(expect.arrayContaining(['backend', 'extra']));
    expect(notices.commands()).toHaveLength(2);
    const again = await vdcsync(['approve', digestIn(all[1])], call);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('No plan of this state waits')]);
  }, 90_000);

  test('a text that is no digest is a wrong call', async () => {
    const { code, stderr } = await vdcsync(['approve', 'yes'], { cwd: process.cwd() });
    expect([code, stderr]).toEqual([64, expect.stringContaining('is not the digest of a plan')]);
  });
});
