import { describe, expect, test } from 'vitest';
import { profiled } from '../support/profiled.ts';
import { resolving } from '../support/resolve.ts';
import type { Rig, RigOptions } from '../support/rig.ts';
import { head, web } from './claims/one-server.ts';

const minutes = 60_000;
const listing = 'operations: {list_servers: {}}';

/** A state was lost one minute after its server was accepted, whose creation takes 20 minutes. */
async function lostInCreation(options: RigOptions = {}, profile = ''): Promise<Rig> {
  const durations = { create_server: [20 * minutes, 20 * minutes] } as const;
  const played = profiled({ ...options, emulator: { durations, ...options.emulator } }, profile);
  await played.apply(head + web, { halt: played.signalAfter(minutes) });
  played.loseState();
  expect(statuses(played)).toEqual(['creating']);
  return played;
}

const statuses = (played: Rig) => played.project.servers.map(({ status }) => status);

describe('src/engine/run/adopt.ts', () => {
  test('a server found under its key is adopted once the task of its creation has ended', async () => {
    const played = await lostInCreation();

    const report = await played.apply(head + web);

    expect([report.outcome, statuses(played)]).toEqual(['converged', ['active']]);
  });
});

describe('src/reconcilers/firewall.ts', () => {
  test('the firewall of a server adopted in creation waits for the end of the creation', async () => {
    const played = await lostInCreation({ emulator: { readings: { publicCardAt: 'taskDone' } } });
    await played.adopt(head + web, 'servers.web', '2001');
    const walled = head + web.replace(', replace', ', firewall: {enabled: true, rules: []}, replace');

    const { blocked } = await played.apply(walled);

    expect(blocked).toMatchObject([
      {
        key: 'servers.web.firewall',
        code: 'firewall_no_public_iface',
        remedies: resolving(
          expect.stringContaining('vdcsync apply (once the creation of servers.web has ended)'),
        ),
      },
    ]);
    await played.clock.advance(20 * minutes);
    expect((await played.apply(walled)).outcome).toBe('converged');
  });
});

describe('src/engine/run/apply.ts', () => {
  test('waits for an adopted server that the list of servers shows in creation', async () => {
    const played = await lostInCreation({}, listing);
    await played.adopt(head + web, 'servers.web', '2001');

    const plan = await played.plan(head + web);
    const report = await played.apply(head + web);

    expect(plan.warnings.map(({ code }) => code)).toContain('in_flight');
    expect([report.outcome, statuses(played)]).toEqual(['converged', ['active']]);
  });
});
