import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Plan } from '../../src/core/plan.ts';
import type { Mutation } from '../../src/emulator/mutations.ts';
import { loadProfile } from '../../src/emulator/profile.ts';
import { type Served, serve, served } from './run.ts';
import { emulated, Workspace } from './workspace.ts';

const profile = readFileSync(new URL('../../examples/profile.yaml', import.meta.url), 'utf8');
const speed = 2_000;
// biome-ignore lint/suspicious/noTemplateCurlyInString: what looks like a variable is the point
const variable = '${env:HOME}';

/** Characters that turn a text round, or that nobody sees. */
const hidden = 'gp\u202ej\u200b\u{e0041}';

let emulator: Served;

/** Twenty servers, with names and contents that a file has a hard time with. */
beforeAll(async () => {
  emulator = await serve({
    speed,
    profile: loadProfile(profile),
    readings: { driveField: 'iso', serverFields: 'sizes' },
  });
  const { world } = emulator.emulator;
  const mutate = (mutation: Mutation) => emulator.emulator.mutate(mutation);
  for (const [at, name] of ['constructor', 'Büro', 'x'.repeat(40), 'twice', 'twice', 'odd cidr'].entries()) {
    mutate({ do: 'add_network', name, cidr: name === 'odd cidr' ? '10.9.0.5/24' : `10.3${at}.0.0/24` });
  }
  const [project] = world.projects;
  const names = ['rescue', 'rescue', '__proto__', 'y'.repeat(80), ' Rettung: "groß" '];
  for (const [at, name] of names.entries()) {
    project?.isos.push({
      id: `uiso-${at + 1}`,
      name,
      url: 'https://x.test/a.iso',
      status: 'available',
      failure: null,
    });
  }
  const servers = [
    '20',
    '3',
    'server-105',
    variable,
    `$${variable}`,
    '__proto__',
    'constructor',
    'a',
    'a',
    'a-108',
  ];
  servers.push(
    '  spaced  ',
    'null',
    'ünïcode ✓',
    `bell\u0007${hidden}`,
    'z'.repeat(90),
    ' ',
    'true',
    '0x10',
    '- a: [b',
    '#c',
  );
  for (const [at, name] of servers.entries()) {
    const made = mutate({ do: 'add_server', name, public: at % 3 !== 2 }) as { id: number };
    const server = project?.servers.find(({ id }) => id === made.id);
    if (server === undefined) throw new Error('no server was made');
    server.isoInDrive = at % 4 === 0 ? `uiso-${(at % 5) + 1}` : null;
    const networkId = 32 + (at % 6);
    server.interfaces.push({
      id: `net${server.nextInterface++}`,
      public: false,
      networkId,
      ips: [],
      hidden: false,
    });
    if (at % 5 === 0)
      server.policy = { ...server.policy, enabled: true, days: ['sun', 'mon'], keep: at === 0 ? 0 : 3 };
    const rule = {
      direction: 'in',
      protocol: 'tcp',
      destination_port: 443,
      source: '192.0.2.0/24',
      tag: null,
      description: variable,
    };
    if (at % 2 === 0)
      mutate({ do: 'set_firewall', server_id: server.id, policy_out: 'drop', rules: [rule, {}] });
  }
});

afterAll(() => emulator.close());

const withOperations = () =>
  new Workspace(
    { 'profile.yaml': profile.replace('limits:', `time_scale: ${speed}\nlimits:`) },
    emulator.env,
  );
const documented = () => new Workspace(emulator.files, emulator.env);

describe('src/cli/commands/export.ts', () => {
  test('does not overwrite an existing file', async () => {
    const place = emulated(undefined, { 'mine.yaml': 'mine' });
    expect(await place.refused(1, 'export --out mine.yaml')).toContain('does not overwrite it');
    expect(place.read('mine.yaml')).toBe('mine');
  });

  test.each([
    ['through the documented API', documented, 14, 'yaml'],
    ['where servers can be listed', withOperations, 20, 'yaml'],
    ['as JSON', withOperations, 20, 'json'],
  ] as const)('the export of a project with unusual names, %s, plans only adoptions', async (_name, open, count, format) => {
    const place = open();
    await place.out(`export --out vdcsync.yaml --format ${format}`);
    const text = place.read('vdcsync.yaml');
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    if (open === withOperations) expect(text).toContain('gp\\u202ej\\u200b\\udb40\\udc41');
    expect(Object.keys(parse(text).servers)).toHaveLength(count);
    const planned = await place.run('plan --format json');
    expect(planned).toMatchObject({ code: 0, stderr: '' });
    const plan = JSON.parse(planned.stdout) as Plan;
    expect(plan.blocked).toEqual([]);
    // A network counts the servers that have no address.
    const counted = open === documented ? ['unlisted_servers'] : [];
    expect(plan.warnings.map(({ code }) => code)).toEqual(counted);
    expect(new Set(plan.operations.map(({ verb }) => verb))).toEqual(new Set(['adopt']));
    const before = emulator.emulator.requests.length;
    await place.out('apply --yes');
    const sent = emulator.emulator.requests.slice(before).filter(({ method }) => method !== 'GET');
    expect(sent).toEqual([]);
    expect(await place.out('plan')).toContain('Nothing to do');
  });

  test('exports the ISO in a drive by its name, or by its id without a name in the spec', async () => {
    const stdout = await withOperations().out('export');
    const { isos, servers } = parse(stdout);
    const inDrive = Object.values(servers).flatMap((each) => (each as { iso?: string }).iso ?? []);
    expect(inDrive.sort()).toEqual(['Rettung-gro', 'proto', 'rescue', 'uiso-2', 'uiso-4']);
    expect(Object.keys(isos)).toHaveLength(3);
    expect(stdout).not.toContain('what is in a drive');
  });

  test('lists the fields that the API does not show', async () => {
    const stdout = await documented().out('export');
    expect(stdout).toContain('# - the ISO in a drive (iso)\n');
    expect(stdout).toContain('# - the type, name, size and image of a server\n');
    expect(stdout).toMatch(/rename each `server-ID`.*[\s\S]*^ips:\n.*\n {2}ip-203-0-113-\d+: /m);
    expect(stdout).not.toMatch(/^ +iso:/m);
  });

  test('places each note above its entry, also for a server with a numeric name', async () => {
    const stdout = await withOperations().out('export');
    const policy = /policy is not possible in a spec.*\n(?: +#.*\n)* +"?(\w+)"?:/.exec(stdout);
    expect(policy?.[1]).toBe('20');
    expect(stdout).toContain('rule 1 also has destination_port: 443, source: "192.0.2.0/24"');
  });

  test('reports each wait for the rate limit in one line, also in the next command', async () => {
    const ten = await served({ speed: 10 });
    for (let at = 1; at <= 20; at++) ten.emulator.mutate({ do: 'add_server', name: `web-${at}` });
    const place = new Workspace(ten.files, ten.readEnv);
    const exported = await place.run('export --out vdcsync.yaml');
    expect(exported.stderr).toMatch(/^vdcsync: reading 20 servers\n/);
    const planned = await place.run('plan');
    // A slow machine needs so long for the reads that it waits less, or not at all.
    const limited = /^vdcsync: rate limited for \d s, until [\d:]+ UTC: the API allows 60 reads in 1 min\n/gm;
    expect(exported.stderr.match(limited)?.length ?? 0).toBeLessThanOrEqual(2);
    expect(planned.stderr.replaceAll(limited, '')).toBe('');
    expect(planned.stderr.match(limited)?.length ?? 0).toBeLessThanOrEqual(2);
    const { requests } = ten.emulator;
    // Project, networks, addresses and ISOs, then cards, firewall and policy of each server; a file without ISOs needs none.
    const answered = requests.filter(({ status }) => status === 200);
    expect(answered).toHaveLength(4 + 60 + 3 + 60);
    expect(requests.length - answered.length).toBeLessThanOrEqual(2 * 8);
  });

  test('a moved server keeps its name, and a plan changes nothing', async () => {
    const server = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
    const file = (entry: string) => `version: 1\nproject: { id: 4711 }\nservers:\n  ${entry}\n`;
    const place = emulated(undefined, {
      'a.yaml': file(`w: {${server}, public_ipv4: {new: true}}`),
      'b.yaml': file(`w2: {moved: {from: w}, ${server}, public_ipv4: {new: true}}`),
    });
    for (const name of ['a.yaml', 'b.yaml']) await place.out(`apply --yes -f ${name}`);
    await place.out('export --out ex.yaml');
    const { id, name } = parse(place.read('ex.yaml')).servers.w2;
    expect(name).toBe('w');
    const plan: Plan = await place.json('plan -f ex.yaml');
    expect(plan.blocked).toEqual([]);
    expect([...new Set(plan.operations.map(({ verb }) => verb))]).toEqual(['adopt']);
    place.write('c.yaml', file(`w2: {id: ${id}, name: other, public_ipv4: {new: true}}`));
    const other: Plan = await place.json('plan -f c.yaml');
    expect(other.blocked.filter(({ key }) => key === 'servers.w2')).toMatchObject([
      {
        code: 'entry_incomplete',
        reason: expect.stringMatching(/^name is "w", not "other"\. .* lacks server_type and image$/),
        resolve: 'write `name: w` in servers.w2 | set `server_type` and `image` in servers.w2',
      },
    ]);
  });

  test('exports an empty project of the embedded emulator', async () => {
    expect(parse(await emulated().out('export'))).toEqual({
      version: 1,
      project: { id: 4711 },
      networks: { default: { id: 31, managed: false } },
    });
  });
});
