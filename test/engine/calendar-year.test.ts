import { describe, expect, test } from 'vitest';
import { endsIn } from '../../src/core/desired.ts';
import { restMs } from '../../src/daemon/scheduling/wake.ts';
import { load, type Rig, rig } from '../support/rig.ts';
import { head, hour } from './shop.ts';

const day = 24 * hour;
const [begin, end] = ['2028-01-01T00:00:00Z', '2029-01-01T00:00:00Z'].map(Date.parse) as [number, number];
const intervalMs = day;
const even = { next: () => 0.5 };

/** The first instant of each Sunday whose local time is at least the given one: by the clock on the wall alone. */
function sundays(timezone: string, from: string): readonly number[] {
  const wall = new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone: timezone, weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
  });
  const starts: number[] = [];
  for (let at = begin; at < end; at += 30 * 60_000) {
    const [weekday, time = ''] = wall.format(at).split(/,? /);
    if (weekday === 'Sun' && time >= from && at - (starts.at(-1) ?? 0) > 2 * day) starts.push(at);
  }
  return starts;
}
const berlin = sundays('Europe/Berlin', '02:30');
const newYork = sundays('America/New_York', '01:30');
const isWithin = (starts: readonly number[], ms: number, at: number) =>
  starts.some((start) => at >= start && at < start + ms);

const windows = head.replace(
  '}',
  `, windows: [{cron: "30 2 * * 0", duration: 2h, timezone: Europe/Berlin, allow: [create, update, delete]},
  {cron: "30 1 * * 0", duration: 1h, timezone: America/New_York, allow: [replace]}]}`,
);
/** The spec on a day: the server changes its size every 10 days, and an address lives for 9 days. */
function fileOn(settings: string, number: number): string {
  const trials = Array.from({ length: 4 }, (_, at) => Math.floor(number / 9) - at).filter((at) => at >= 0);
  const ends = (at: number) => new Date(begin + (at + 1) * 9 * day + 5 * hour).toISOString();
  const ips = trials.map((at) => `t${at}: {expires: "${ends(at)}"}`).join(', ');
  const size = `cores: ${1 + (Math.floor(number / 10) % 3)}, memory_mb: 1024, disk_gb: 20`;
  const web = `server_type: sliders-1, image: ubuntu-24.04, ${size}, public_ipv4: {new: true}, firewall: {enabled: true, policy_in: drop}, replace: allowed`;
  return `${settings}ips: {${ips}}\nservers: {web: {${web}}}\n`;
}

/** Reconciles as a daemon does from the begin of the year on. Returns each late address: its age past its end, in ms. */
async function reconciled(
  played: Rig,
  settings: string,
  until: number,
  isBreached: boolean,
): Promise<readonly number[]> {
  const { clock, store, emulator } = played;
  const late: number[] = [];
  const pass = (ms: number) => clock.run(clock.sleep(ms));
  await pass(begin - clock.now());
  const repeating = played.repeating();
  let breached = 0;
  while (clock.now() < until) {
    const number = Math.floor((clock.now() - begin) / day);
    const [web] = emulator.world.projects[0]?.servers ?? [];
    if (isBreached && web !== undefined && number >= breached + 25) {
      breached = number;
      emulator.mutate({ do: 'set_firewall', server_id: web.id, enabled: false });
      repeating.cache.forgetServer(String(web.id));
    }
    const file = fileOn(settings, number);
    const before = await store.bindings();
    const { plan } = await played.apply(file, { unattended: true, repeating });
    const bound = new Set((await store.bindings()).map(({ key }) => key));
    for (const { key } of before) {
      const trial = /^ips\.t(\d+)$/.exec(key)?.[1];
      if (trial !== undefined && !bound.has(key))
        late.push(clock.now() - (begin + (Number(trial) + 1) * 9 * day + 5 * hour));
    }
    const found = { plan, failures: 0, condition: 'converged' } as const;
    await pass(restMs({ found, intervalMs, moments: endsIn(load(file)), now: clock.now() }, even));
  }
  return late;
}

const isProbe = (body: string | undefined) => body?.includes('vdcsync_probe') === true;

describe('src/core/calendar.ts: the leap year 2028, with its clock changes', () => {
  test.runIf(process.env.ALL_CASES)(
    'no write but a repair of an exposed server starts outside the windows',
    async () => {
      const played = rig();
      const late = await reconciled(played, windows, end, true);
      const origin = played.clock.now() - played.clock.monotonic();

      const sent = played.writes().filter(({ body }) => !isProbe(body));
      const outside = sent.filter(
        ({ at }) => !isWithin(berlin, 2 * hour, origin + at) && !isWithin(newYork, hour, origin + at),
      );
      expect([berlin.length, newYork.length]).toEqual([53, 53]);
      expect(sent.length).toBeGreaterThan(100);
      expect(new Set(outside.map(({ method, path }) => `${method} ${path.replace(/\d+/, 'ID')}`))).toEqual(
        new Set(['PUT /servers/ID/firewall']),
      );
      expect(outside.length).toBeGreaterThan(10);
      // The next window that allows a deletion is at most a week away.
      expect(late.length).toBeGreaterThan(35);
      expect(Math.max(...late)).toBeLessThan(7 * day + hour);
    },
    300_000,
  );

  test.runIf(process.env.ALL_CASES)(
    'without windows, an address is deleted within minutes of its end',
    async () => {
      // The clock of the emulator stays in its own year.
      const played = rig({ emulator: { readings: { dateHeader: false } } });
      const late = await reconciled(played, head, begin + 100 * day, false);
      expect(late.length).toBeGreaterThan(8);
      expect([Math.min(...late) >= 0, Math.max(...late) < hour]).toEqual([true, true]);
    },
    300_000,
  );
});
