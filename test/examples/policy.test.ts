import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { folderWith, inProcess } from '../cli/run.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const policy = join(root, 'examples/policy/check.mjs');
const prices =
  'currency: EUR\naddress: 3\nnetwork_interface: 0\nservers:\n  sliders-1: { core: 1, memory_gb: 1, disk_gb: 0.1 }\n';

/** A public server that listens for ssh, with the rest of its entry. */
const server = (rest: string) =>
  `version: 1\nproject: { id: 4711 }\nservers:\n  web: { server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: { new: true }${rest} }\n`;
const firewall = (rules: string, more = 'policy_in: drop') =>
  server(`, firewall: { enabled: true, ${more}, rules: [${rules}] }`);
const rule = (fields: string) => `{ direction: in, action: accept, enabled: true, ${fields} }`;
const ssh = 'protocol: tcp, destination_port: "22"';

interface Judged {
  readonly code: number;
  readonly said: string;
}

/** The judgement of the policy about a plan. */
async function judge(plan: string, command = policy): Promise<Judged> {
  const child = spawn(process.execPath, [command]);
  const said = text(child.stderr);
  child.stdin.end(plan);
  const [code] = (await once(child, 'close')) as [number];
  return { code, said: await said };
}

async function planned(spec: string, args = ['--prices', 'prices.yaml']): Promise<string> {
  const cwd = folderWith({ 'vdcsync.yaml': spec, 'prices.yaml': prices });
  const { stdout, stderr, code } = await inProcess(['plan', '--emulator', '--format', 'json', ...args], {
    cwd,
  });
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('error')]);
  return stdout;
}

const refused: readonly (readonly [string, string])[] = [
  ['no firewall', server('')],
  ['an empty firewall', server(', firewall: {}')],
  ['a disabled firewall', server(', firewall: { enabled: false }')],
  ['ssh for every address', firewall(rule(ssh))],
  ['ssh in a list of ports', firewall(rule('protocol: tcp, destination_port: "443,22"'))],
  ['ssh in a range', firewall(rule('protocol: tcp, destination_port: "20-30"'))],
  ['ssh in a range with a colon', firewall(rule('protocol: tcp, destination_port: "1:65535"'))],
  ['every port', firewall(rule('protocol: tcp'))],
  ['every protocol', firewall(rule('destination_port: "22"'))],
  ['an empty protocol', firewall(rule('protocol: "", destination_port: "22"'))],
  ['an empty list of ports', firewall(rule('protocol: tcp'))],
  ['a rule without limits', firewall(rule('description: all'))],
  ['all sources', firewall(rule(`${ssh}, source: 0.0.0.0/0`))],
  [
    'both halves of all sources',
    firewall([rule(`${ssh}, source: 0.0.0.0/1`), rule(`${ssh}, source: 128.0.0.0/1`)].join(', ')),
  ],
  ['an unknown field', firewall(rule(`${ssh}, label: office`))],
  ['a field that imitates a port', firewall(rule(`${ssh}, "x) tcp 443 (y": z`))],
  ['a protocol by its number', firewall(rule('protocol: "6", destination_port: "22"'))],
  ['a protocol in capitals', firewall(rule('protocol: TCP, destination_port: "22"'))],
  ['any as the protocol', firewall(rule('protocol: any, destination_port: "22"'))],
  ['an action in capitals', firewall(`{ direction: in, action: ACCEPT, enabled: true, ${ssh} }`)],
  ['an unknown action', firewall(`{ direction: in, action: allow, enabled: true, ${ssh} }`)],
  ['no action', firewall(`{ direction: in, enabled: true, ${ssh} }`)],
  ['a direction in capitals', firewall(`{ direction: IN, action: accept, enabled: true, ${ssh} }`)],
  ['no direction', firewall(`{ action: accept, enabled: true, ${ssh} }`)],
  ['an unknown direction', firewall(`{ direction: ingress, action: accept, ${ssh} }`)],
  ['an accepting policy', firewall('', 'policy_in: accept')],
  ['an unknown policy', firewall('', 'policy_in: allow')],
  ['a policy in capitals', firewall('', 'policy_in: Accept')],
  [
    'a drop rule without a direction',
    firewall(`{ action: drop, enabled: true, ${ssh} }, ${rule('protocol: tcp, destination_port: "22"')}`),
  ],
];

describe('examples/policy/check.mjs', () => {
  test.each(refused)('refuses %s', async (_what, spec) => {
    const { code, said } = await judge(await planned(spec));
    expect([code, said]).toEqual([1, expect.stringMatching(/^policy: servers\.web/)]);
  });

  test('refuses every purchase without a known price, also of 60 servers', async () => {
    const servers = Array.from(
      { length: 60 },
      (_, at) =>
        `  s${at}: { server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20 }\n`,
    );
    const spec = `version: 1\nproject: { id: 4711 }\nservers:\n${servers.join('')}`;
    const { code, said } = await judge(await planned(spec, []));
    expect(code).toBe(1);
    expect(said.match(/has no known price/g)).toHaveLength(60);
  });

  test.each([
    [
      'the first example of README.md',
      /```yaml\n(# vdcsync\.yaml[\s\S]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8'))?.[1] ?? '',
    ],
    [
      'other ports, and ssh after a rule that drops ssh',
      firewall(
        `{ direction: in, action: drop, enabled: true, ${ssh} }, ${rule('protocol: tcp, destination_port: "22,443,2222"')}`,
      ),
    ],
  ])('accepts %s', async (_what, spec) => {
    expect(await judge(await planned(spec))).toEqual({ code: 0, said: '' });
  });

  test.each(['shop.yaml', 'gpu.yaml', 'full.yaml'])('accepts the firewalls of examples/%s', async (name) => {
    const spec = readFileSync(join(root, 'examples', name), 'utf8');
    const { said } = await judge(await planned(spec));
    const aboutPrices = /^policy: .* (has no known price|more than 500)/;
    expect(said.split('\n').filter((line) => line !== '' && !aboutPrices.test(line))).toEqual([]);
  });

  test('accepts the spec that init writes', async () => {
    const cwd = folderWith({ 'prices.yaml': prices });
    await inProcess(['init', '--emulator'], { cwd });
    expect(await judge(await planned(readFileSync(join(cwd, 'vdcsync.yaml'), 'utf8')))).toEqual({
      code: 0,
      said: '',
    });
  });

  test('accepts ssh only from a trusted source', async () => {
    const trusting = readFileSync(policy, 'utf8').replace(
      'trustedSources = []',
      "trustedSources = ['source 198.51.100.0/24']",
    );
    const copy = join(folderWith(), 'check.mjs');
    writeFileSync(copy, trusting);
    const from = (source: string) => planned(firewall(rule(`${ssh}, ${source}`)));
    expect(await judge(await from('source: 198.51.100.0/24'), copy)).toEqual({ code: 0, said: '' });
    for (const other of ['source: 198.51.100.0/23', 'source: 198.51.100.0/24, log: true'])
      expect((await judge(await from(other), copy)).code).toBe(1);
  });

  test.each([
    [{ known_monthly_delta: '500.00' }, 0],
    [{ known_monthly_delta: '500.01' }, 1],
    [{ known_monthly_delta: '1.00', known_monthly_most: '900.00' }, 1],
    [{ known_monthly_delta: 'much' }, 1],
  ])('a plan with the cost %o exits %i', async (cost, expected) => {
    const plan = { format_version: 1, operations: [], cost: { unpriced: [], ...cost } };
    expect((await judge(JSON.stringify(plan))).code).toBe(expected);
  });

  test('refuses the deletion of a server, another plan format, and a missing plan', async () => {
    const cost = { known_monthly_delta: '0', unpriced: [] };
    const deletion = { key: 'servers.web', kind: 'server', verb: 'delete', changes: [] };
    const deleting = await judge(JSON.stringify({ format_version: 1, operations: [deletion], cost }));
    expect([deleting.code, deleting.said]).toEqual([1, expect.stringContaining('must not be deleted')]);
    expect((await judge(JSON.stringify({ format_version: 2, operations: [], cost }))).code).toBe(1);
    expect((await judge('')).code).not.toBe(0);
  });
});
