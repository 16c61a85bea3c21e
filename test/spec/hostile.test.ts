import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Deadlines, Intake, type Taken } from '../../src/daemon/sources/intake.ts';
import type { SpecText } from '../../src/daemon/sources/source.ts';
import { systemClock } from '../../src/platform/system.ts';
import type { SpecTrust } from '../../src/spec/environment.ts';

const folder = join(import.meta.dirname, 'hostile');
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));

const trust: SpecTrust = {
  variables: ['ALLOWED', 'TOKEN_4712'],
  tokens: { folder: '/srv/tokens', prefix: 'TOKEN_', base: '/srv' },
};
const environment = {
  ALLOWED: 'allowed-value',
  ...{ VDC_TOKEN: 'canary', VDCSYNC_STATE: 'canary', PGPASSWORD: 'canary', HOME: 'canary' },
  ...{ TOKEN_4711: 'canary', TOKEN_4712: 'canary' },
};

function take(specs: readonly SpecText[], deadlines?: Deadlines): Promise<readonly Taken[]> {
  const intake = new Intake({
    ...{ environment, trust, clock: systemClock, checkToken: () => {} },
    ...(deadlines === undefined ? {} : { deadlines }),
  });
  return intake.take({ specs });
}

const specText = (name: string, text: string): SpecText => ({ name, sources: [{ file: name, text }] });
const good = specText('good.yaml', 'version: 1\nproject: { id: 1 }\nips: { web: {} }\n');

/** As `take`, with the minimum of approvals that the operator has set. */
const takeWithMinimum = (text: string) =>
  new Intake({
    ...{ environment, trust, clock: systemClock, checkToken: () => {}, requireApproval: 'plan' },
  }).take({ specs: [specText('vdcsync.yaml', text)] });

const problemOf = (taken: Taken | undefined) =>
  taken !== undefined && 'problem' in taken
    ? taken.problem.map(({ position: { line, column }, message }) => [`${line}:${column}`, message] as const)
    : [];

const manyRules = (count: number) =>
  `version: 1\nproject: { id: 4711 }\ndefaults:\n  servers:\n    firewall:\n      enabled: true\n      rules:\n${'        - { direction: in, action: accept, protocol: tcp, destination_port: "22" }\n'.repeat(count)}`;
const servers = (count: number) =>
  `servers:\n${Array.from({ length: count }, (_, at) => `  s${at}: {}\n`).join('')}`;

/** Too large for a file of their own. */
const generated: readonly (readonly [name: string, text: string, first: string])[] = [
  [
    '130,000 network interfaces',
    `version: 1\nproject: { id: 4711 }\nservers:\n  a:\n    network_interfaces: [${'a, '.repeat(130_000)}]\n`,
    '5:25: a list has at most 1000 entries: split it, or remove the rest',
  ],
  ['a file of brackets', '['.repeat(1_000_000), '1:33: nested deeper than 32 levels'],
  [
    '1 MiB of unknown fields',
    `version: 1\nproject: { id: 4711 }\n${Array.from({ length: 70_000 }, (_, at) => `field${at}: 1`).join('\n')}\n`,
    '1:1: a map has at most 10000 entries: split it, or remove the rest',
  ],
  [
    '9,000 unknown fields',
    `version: 1\nproject: { id: 4711 }\n${Array.from({ length: 9_000 }, (_, at) => `field${at}: 1`).join('\n')}\n`,
    '3:1: unknown field `field0`',
  ],
  [
    '15 KB of defaults with many rules',
    `${manyRules(120)}${servers(700)}`,
    '3:1: the spec has 423410 values after `defaults` are added to each server, and at most 200000 are possible',
  ],
  [
    'a long text in the defaults',
    `version: 1\nproject: { id: 4711 }\ndefaults: { servers: { image: ${'x'.repeat(100_000)} } }\n${servers(900)}`,
    '3:1: the spec has 902808 values',
  ],
  ['more than 1 MiB', `version: 1\n${'#'.repeat(1024 * 1024)}`, '1:1: the file is larger than 1 MiB'],
];

describe('src/spec: hostile files', () => {
  test('each file has the error in its first line, without a value of the environment', async () => {
    const specs = files.map((name) => specText(name, readFileSync(join(folder, name), 'utf8')));
    const taken = await take(specs);
    const found = taken.map((each) => `# ${problemOf(each)[0]?.join(': ')}`);
    expect(found).toEqual(
      specs.map((each) => ('sources' in each ? each.sources[0]?.text.split('\n')[0] : '')),
    );
    expect(JSON.stringify(taken)).not.toMatch(/canary|allowed-value/);
  });

  test.each(
    generated,
  )('%s: reports the first errors and the number of further errors', async (name, text, first) => {
    const [hostile, other] = await take([specText(name, text), good]);
    const problem = problemOf(hostile);
    expect(problem[0]?.join(': ')).toContain(first);
    expect(problem.length).toBeLessThanOrEqual(51);
    expect(JSON.stringify(problem).length).toBeLessThan(60_000);
    expect(other).toHaveProperty('offer');
  });

  test('only a file that takes too long is invalid, and later files are read', async () => {
    // As long as may be: 1 MiB of entries that are valid but for one field.
    const slow = `version: 1\nproject: { id: 4711 }\nips:\n${Array.from({ length: 9_999 }, (_, at) => `  a${at}: { nope: [${'1, '.repeat(27)}] }`).join('\n')}\n`;
    const later = specText('later.yaml', `${slow.replaceAll('nope', 'nay')}#`);
    const [first, second, third] = await take([specText('slow.yaml', slow), later, good], {
      eachMs: 500,
      allMs: 60_000,
    });
    expect(problemOf(first)[0]?.[1]).toMatch(/longer than 0.5 s/);
    expect(problemOf(second)[0]?.[1]).toMatch(/longer than 0.5 s/);
    expect(third).toHaveProperty('offer');
  });

  test.each([
    'none',
    '{ deletions: true }',
  ])('a spec with approval %s cannot lower the minimum that the operator sets', async (approval) => {
    const head = 'version: 1\nproject: { id: 1 }\n';
    for (const text of [head, `${head}settings: { approval: ${approval} }\n`]) {
      const [taken] = await takeWithMinimum(text);
      expect(taken).toMatchObject({ offer: { desired: { settings: { approval: 'plan' } } } });
    }
  });

  test('repeats a read that took too long', async () => {
    const [only] = await take([good], { eachMs: 1_000, allMs: 0 });
    expect(only).toMatchObject({ isTransient: true });
  });
});
