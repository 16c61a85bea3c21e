import { describe, expect, test } from 'vitest';
import type { ServerId } from '../../src/core/resources.ts';
import type { HttpResponse } from '../../src/core/transport.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { backup } from '../../src/reconcilers/backup.ts';
import { rig } from '../support/rig.ts';
import { idsOf, projectOf, sliders, warningsOf } from './support.ts';

const file = (more: string) => `servers: {web: {${sliders}, ${more}}}\n`;
const daily = file('backup: {max_age: 24h}');

describe('src/reconcilers/backup.ts', () => {
  test('a plan shows a backup in the notation of the spec', async () => {
    for (const max_age of ['24h', '7d', '90m', '36h']) {
      const { operations } = await rig().plan(file(`backup: {max_age: ${max_age}, keep: 3}`));
      expect(operations.find(({ kind }) => kind === 'backup')?.changes).toEqual([
        { path: 'max_age', from: null, to: max_age },
        { path: 'keep', from: null, to: 3 },
      ]);
    }
  });

  test('a run takes a backup again if it replaces the server', async () => {
    const { apply } = rig();
    const small = (ips: string, more: string) =>
      `settings: {prune: true, max_deletions: 9}\nips: {${ips}: {}}\n${file(`replace: allowed${more}`)}`;
    await apply(small('old', ''));

    // The address is the only free one once `old` is released, so the server is replaced in a later round.
    const report = await apply(small('new', ', public_ipv4: {ip: new}, backup: {max_age: 24h}'));

    expect(report.outcome).toBe('converged');
    const taken = report.results.filter(({ key }) => key === 'servers.web.backup');
    expect(taken.map(({ outcome }) => outcome)).toEqual(['done', 'done']);
  });

  const day = 86_400_000;
  const stamped = (body: string) =>
    body.includes('"size_bytes"')
      ? body.replace(/"created_at":"[^"]*"/g, '"created_at":"2020-01-01T00:00:00Z"')
      : body;
  const dated = ({ date = '' }: Record<string, string>, hours: number) =>
    new Date(Date.parse(date) + hours * 3_600_000).toUTCString();

  test.each([
    ['the correct date', (answer: HttpResponse) => answer],
    [
      'a date two days ahead',
      (answer) => ({ ...answer, headers: { ...answer.headers, date: dated(answer.headers, 48) } }),
    ],
    ['the same time for all backups', (answer) => ({ ...answer, body: stamped(answer.body) })],
  ] satisfies [
    string,
    (answer: HttpResponse) => HttpResponse,
  ][])('with %s, a week of runs takes one backup a day', async (_name, change) => {
    const { apply, clock, emulator, restart } = rig({
      wrap: (inner) => ({
        close: () => inner.close(),
        send: async (request, options) => change(await inner.send(request, options)),
      }),
    });
    for (let hours = 0; hours < 7 * 24; hours += 6) {
      await apply(daily);
      await clock.advance(hours * 3_600_000 + 6 * 3_600_000 - clock.monotonic());
      restart();
    }

    expect(projectOf(emulator).backups.length).toBeGreaterThanOrEqual(6);
    expect(projectOf(emulator).backups.length).toBeLessThanOrEqual(7);
    expect(clock.monotonic()).toBe(7 * day);
  });

  test.each([
    ['2026-01-01T11:59:59Z', 'create'],
    ['2026-01-01T12:00:00Z', 'unchanged'],
    ['2026-01-01T14:00:00+02:00', 'unchanged'],
    ['2027-01-01T00:00:00Z', 'unchanged'],
  ])('a backup of %s, at 2026-01-02T12:00:00Z: %s', (created_at, verdict) => {
    const live = { id: created_at, server_id: 2001 as ServerId, size_bytes: 1, created_at };
    const backups = [{ ...live, status: 'available' }];
    const desired = { value: { max_age: '24h' }, managed: true };
    const subject = { key: 'servers.web.backup', kind: 'backup', desired };
    const world = { apiNow: Date.parse('2026-01-02T12:00:00Z') };

    const diff = backup.diff(subject as never, { id: live.id, backups }, world as never);

    expect(diff.verdict.verdict).toBe(verdict);
  });

  const slow = { durations: { backup: [5_000, 6_000] } } as const;

  test('a stale list does not cause a second backup', async () => {
    // What may be answered later is kept from the start.
    const faults = [faultRule({ method: 'PATCH' }, { do: 'stale', ms: 1 })];
    const { apply, clock, emulator, restart } = rig({ emulator: { ...slow, faults } });
    await apply(daily);
    await clock.advance(25 * 3_600_000);
    await apply(daily);
    restart();
    emulator.setFaults([faultRule({ path: 'list_backups', times: 3 }, { do: 'stale', ms: 55_000 })]);

    expect((await apply(daily)).outcome).toBe('converged');

    expect(projectOf(emulator).backups).toHaveLength(2);
  });

  test('a backup that one list lacks is not taken again, and a deleted backup is', async () => {
    const { apply, clock, emulator, restart } = rig({ emulator: slow });
    await apply(daily);
    await clock.advance(3_600_000);
    restart();
    emulator.setFaults([
      faultRule({ path: 'list_backups', nth: 1, times: 1 }, { do: 'truncate_list', keep: 0 }),
    ]);
    expect((await apply(daily)).outcome).toBe('converged');
    expect(projectOf(emulator).backups).toHaveLength(1);

    projectOf(emulator).backups = [];
    restart();
    expect((await apply(daily)).outcome).toBe('converged');
    expect(projectOf(emulator).backups).toHaveLength(1);
  });

  test('no backup is taken while another one is in creation', async () => {
    const { apply, plan, emulator } = rig();
    await apply(daily);
    const [live] = projectOf(emulator).backups;
    if (live !== undefined) Object.assign(live, { status: 'creating', readyMs: Number.MAX_SAFE_INTEGER });

    const planned = await plan(daily);

    expect([planned.operations, warningsOf(planned)]).toEqual([[], ['backup_creating']]);
  });

  test.each([
    ['an unknown status', { status: 'verifying' }],
    ['an unreadable age', { fields: { created_at: 'yesterday', id: 'b-1' } }],
  ])('no backup is bought next to one with %s', async (_what, odd) => {
    const { apply, plan, emulator } = rig();
    await apply(daily);
    emulator.setFaults([faultRule({ path: 'list_backups' }, { do: 'decorate', ...odd })]);

    const planned = await plan(daily);

    expect([planned.operations, warningsOf(planned)]).toEqual([[], ['backup_unclear']]);
  });
});

describe('src/reconcilers/backup-policy.ts', () => {
  const policy = file('backup_policy: {enabled: true, days: [sun, mon], hour: 3}');

  test('a backup policy is compared and reported, and never written without its operation', async () => {
    const { apply, plan, emulator } = rig();
    await apply(policy);

    const planned = await plan(policy);

    expect(idsOf(planned)).toEqual([]);
    expect(planned.warnings).toMatchObject([
      { code: 'backup_policy_differs', message: expect.stringContaining('hour is 0, not 3') },
    ]);
    expect(emulator.requests.filter(({ method }) => method === 'PUT')).toEqual([]);
    expect((await plan(file('backup_policy: {enabled: false}'))).warnings).toEqual([]);
  });
});
