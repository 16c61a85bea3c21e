import { describe, expect, test } from 'vitest';
import { isWaiting } from '../../src/core/plan.ts';
import { conditionOf } from '../../src/view/condition.ts';
import { applied, load, type Rig, rig } from '../support/rig.ts';
import { head, hour } from './shop.ts';

const day = 24 * hour;
const size = (cores: number) =>
  `server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20`;
const windows = (...rows: readonly string[]) =>
  head.replace('}', `, windows: [${rows.map((row) => `{${row}}`).join(', ')}]}`);
/** Opens in an hour, for an hour. */
function soon({ clock }: Rig, allow: string, afterMs = hour): string {
  const at = new Date(clock.now() + afterMs);
  return `cron: "${at.getUTCMinutes()} ${at.getUTCHours()} * * *", duration: 1h, timezone: UTC, allow: [${allow}]`;
}
const pass = (played: Rig, ms: number) => played.clock.advance(ms);
const codes = (plan: { readonly blocked: readonly { readonly key: string; readonly code: string }[] }) =>
  plan.blocked.map(({ key, code }) => `${code} ${key}`);

describe('src/plan/waits.ts', () => {
  test('a change waits for its window, with the time, and is carried out while the window is open', async () => {
    const played = rig();
    const spec = `${windows(soon(played, 'create'))}ips: {a: {}}\n`;
    const plan = await played.plan(spec);
    const report = await played.apply(spec);

    expect(plan.operations).toEqual([]);
    expect(codes(plan)).toEqual(['outside_window ips.a']);
    expect(plan.blocked.every(isWaiting)).toBe(true);
    const starts = Date.parse(plan.blocked[0]?.starts_at ?? '');
    expect(Math.abs(starts - played.clock.now() - hour)).toBeLessThan(2 * 60_000);
    expect(conditionOf({ plan, error: undefined, observing: false, pauses: [] })).toBe('waiting');
    expect([report.outcome, played.writes()]).toEqual(['blocked', []]);

    await pass(played, starts - played.clock.now());
    expect((await played.apply(spec)).outcome).toBe('converged');
  });

  test('a change that no window ever allows needs a decision', async () => {
    const played = rig();
    const { blocked } = await played.plan(`${windows(soon(played, 'update'))}ips: {a: {}}\n`);
    expect(blocked).toMatchObject([
      { code: 'outside_window', reason: 'no window under settings.windows allows create' },
    ]);
    expect(blocked[0]).not.toHaveProperty('starts_at');
    expect(blocked.some(isWaiting)).toBe(false);
  });

  test('an operation that depends on a waiting change has the time of that change', async () => {
    const web = (more: string) => `servers: {web: {${size(1)}, replace: {order: delete_first}${more}}}\n`;
    const played = await applied(`${head}ips: {a: {}}\n${web(', public_ipv4: {ip: a}')}`);
    const plan = await played.plan(
      `${windows(soon(played, 'delete', 0), soon(played, 'replace'))}${web(', public_ipv4: {new: true}')}`,
    );
    const [dependent, changed] = plan.blocked;
    expect(codes(plan)).toEqual(['dependency_blocked ips.a', 'outside_window servers.web']);
    expect(changed?.starts_at).toBeDefined();
    expect(dependent).toMatchObject({ starts_at: changed?.starts_at, remedies: [] });
    expect(dependent?.reason).toMatch(/^waits for servers\.web, which waits for its window, at \d{4}-/);
    expect(conditionOf({ plan, error: undefined, observing: false, pauses: [] })).toBe('waiting');
  });

  test('outside the windows, only the firewall of an exposed server is repaired', async () => {
    const more = 'public_ipv4: {new: true}, firewall: {enabled: true, policy_in: drop}';
    const servers = (cores: number) => `servers: {web: {${size(cores)}, ${more}}}\n`;
    const played = await applied(`${head}${servers(1)}`);
    const [web] = played.project.servers;
    if (web === undefined) expect.fail('no server');
    played.emulator.mutate({ do: 'set_firewall', server_id: web.id, enabled: false });

    const plan = await played.plan(`${windows(soon(played, 'create'))}${servers(1)}`);
    expect(plan.operations.map(({ key }) => key)).toEqual(['servers.web.firewall']);
  });
});

describe('src/plan/flags.ts', () => {
  const at = (played: Rig, ms: number) => new Date(played.clock.now() + ms).toISOString();

  test('an entry warns a week and a day before its expiry, and its resource is then deleted', async () => {
    const played = rig();
    const spec = `${head}ips: {a: {expires: "${at(played, 8 * day)}"}, b: {}}\n`;
    await played.apply(spec);
    const warned: string[] = [];
    for (let passed = 0; passed < 9; passed++) {
      const { warnings } = await played.plan(spec);
      warned.push(
        warnings.map(({ code, message }) => `${code} ${/a week|a day/.exec(message)?.[0] ?? ''}`).join(),
      );
      if (passed === 8) break;
      await pass(played, day);
    }
    expect(warned).toEqual(['', ...Array(6).fill('expires_soon a week'), 'expires_soon a day', 'expired ']);

    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(played.project.ips).toHaveLength(1);
    expect((await played.plan(spec)).warnings).toMatchObject([
      { code: 'expired', key: 'ips.a', remedies: [] },
    ]);
  });

  test.each([0, 1])('a local clock that is ahead expires no entry after %i reads', async (reads) => {
    const played = rig();
    const spec = `${head}ips: {a: {expires: "${at(played, 12 * hour)}"}}\n`;
    await played.apply(spec);
    played.restart();
    if (reads > 0) await played.plan(spec);
    played.clock.jump(25 * hour);

    expect((await played.apply(spec)).plan.warnings.map(({ code }) => code)).toEqual(['expires_soon']);
    expect(played.project.ips).toHaveLength(1);
  });

  test.each([
    ['prune', head.replace('prune: true', 'prune: false'), '', 'prune_disabled'],
    ['protect', head, 'protect: true, ', 'protected'],
    ['max_deletions', head.replace('max_deletions: 10', 'max_deletions: 0'), '', 'max_deletions'],
  ])('`%s` applies to an entry that has expired', async (_name, settings, protect, code) => {
    const played = rig();
    const spec = `${settings}ips: {a: {${protect}expires: "${at(played, day)}"}}\n`;
    await played.apply(spec);
    await pass(played, day);
    const { blocked } = await played.plan(spec);
    expect(blocked.map((each) => each.code)).toEqual([code]);
    expect(blocked[0]?.remedies).toContainEqual(
      code === 'max_deletions'
        ? expect.objectContaining({ text: expect.stringMatching(/, or change `expires`$/) })
        : { type: 'edit', path: 'ips.a', remove: ['expires'], when: 'to keep it managed' },
    );
    expect((await played.apply(spec)).outcome).toBe('blocked');
    expect(played.project.ips).toHaveLength(1);
  });

  test.each([
    ['a', ''],
    ['b', ', moved: {from: servers.a}'],
  ])('`protect` and `keep_ip` of %s count although they are as new as its end%s', async (name, moved) => {
    const server = (key: string, more: string) =>
      `${head}servers: {${key}: {${size(1)}, public_ipv4: {new: true}${more}}}\n`;
    const played = await applied(server('a', ''));
    const end = `, expires: "${at(played, 0)}"${moved}`;

    const { blocked } = await played.plan(server(name, `${end}, protect: true`));
    expect(blocked.map(({ key, code }) => `${code} ${key}`)).toContain('protected servers.a');

    expect((await played.apply(server(name, `${end}, keep_ip: true`))).outcome).toBe('converged');
    const { servers = [], ips = [] } = played.emulator.world.projects[0] ?? {};
    expect([servers.length, ips.length]).toEqual([0, 1]);
  });

  test('an entry that uses one that expires earlier is an error of the spec', () => {
    const spec = (end: string) =>
      `networks: {n: {cidr: 10.1.0.0/24, expires: 2028-02-29T00:00:00Z}}\nservers: {web: {${size(1)}, network_interfaces: [n]${end}}}\n`;
    const wrong = /networks\.n expires at 2028-02-29T00:00:00Z, and servers\.web uses it for longer/;
    expect(() => load(spec(''))).toThrow(wrong);
    expect(() => load(spec(', expires: 2028-03-01T00:00:00Z'))).toThrow(wrong);
    expect(load(spec(', expires: 2028-02-28T00:00:00Z')).resources).toHaveLength(3);
  });
});
