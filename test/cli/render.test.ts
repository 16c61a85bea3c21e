import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { barsText } from '../../src/cli/commands/rehearse.ts';
import { markdownLimit, planMarkdown } from '../../src/cli/render/plan-markdown.ts';
import { planSvg } from '../../src/cli/render/plan-svg.ts';
import { planText } from '../../src/cli/render/plan-text.ts';
import { plainProgress, reportJson, reportText, stepText, Tally } from '../../src/cli/render/progress.ts';
import { liveProgress } from '../../src/cli/render/progress-live.ts';
import { changeLines, shown, wrapped } from '../../src/cli/render/values.ts';
import { askYesNo, type Io, plainPaint } from '../../src/cli/terminal.ts';
import type { Plan } from '../../src/core/plan.ts';
import type { ApplyReport, ProgressEvent } from '../../src/core/progress.ts';
import { command, setting } from '../../src/core/remedy.ts';
import { span } from '../../src/core/text.ts';
import { barsSvg } from '../../src/view/timeline.ts';
import { rig } from '../support/rig.ts';

function operation(verb: string, key: string, needs: readonly string[] = []) {
  return {
    id: `${verb}:${key}`,
    key,
    kind: 'server',
    verb,
    changes: [],
    needs,
    spend: 'adds',
    risk: 'billed',
  };
}

const plan = {
  format_version: 1,
  project: { id: 4711, name: 'a <b>`c`', status: 'Active' },
  observed_at: '2026-01-01T00:00:00.000Z',
  digest: `sha256:${'0'.repeat(64)}`,
  summary: { create: 0, update: 0, replace: 1, delete: 0, adopt: 0, blocked: 1, unchanged: 2 },
  operations: [
    {
      ...operation('delete', 'servers.web-1'),
      ...{ spend: 'reduces', risk: 'destructive', replacement: 'create:servers.web-1' },
    },
    {
      ...operation('create', 'servers.web-1', ['delete:servers.web-1']),
      ...{ changes: [{ path: 'cores', from: 2, to: 4 }], replacement: 'delete:servers.web-1' },
      reason: 'cores cannot be changed in place',
    },
  ],
  blocked: [
    {
      key: 'networks.x',
      verb: 'delete',
      code: 'prune_disabled',
      reason: 'text with \u001b[31m and @somebody',
      remedies: [
        command('resolve', ['networks.x', '--adopt', '3']),
        command('resolve', ['networks.x', '--absent']),
      ],
    },
  ],
  warnings: [{ code: 'drift', key: null, message: '**bold** <script>' }],
  cost: {
    monthly: { currency: null, known_before: '0.00', known_after: '0.00', unknown: [] },
    known_monthly_delta: '12.50',
    unknown: [],
    left_billed: ['203.0.113.7 stays'],
  },
  effort: { writes: 2, reads: 8, seconds_at_least: 60 },
} as unknown as Plan;

describe('src/cli/render: a plan', () => {
  test('Markdown: no text from the API becomes markup', () => {
    const text = planMarkdown(plan);
    for (const each of ['Cut to', '<b>', '<script>', '**bold**', '@somebody', '\u001b'])
      expect(text).not.toContain(each);
    expect(text).toContain(
      '`vdcsync resolve networks.x --adopt 3`  \n  or `vdcsync resolve networks.x --absent`',
    );
  });

  test('Markdown: shows commands as code, text as text, and the changes of a replacement', () => {
    const [blocked] = plan.blocked;
    const remedies = [
      setting('prune', true, 'to go'),
      command('forget', ['networks.x'], { when: 'to keep it' }),
    ];
    const key = 'servers.web-1.public_ipv4';
    const kept = { code: 'released', key, message: 'keep_ip: 203.0.113.7 stays' };
    const told = { ...plan, blocked: [{ ...blocked, remedies }], warnings: [kept] } as unknown as Plan;

    const text = planMarkdown(told);

    expect(text).toContain(
      '  write `prune: true` under `settings` (to go)  \n  or `vdcsync forget networks.x` (to keep it)\n',
    );
    expect(text).toContain('**Lost: all data on its disks.**');
    expect(text).toContain(
      '#### Warnings\n\n- `servers.web-1.public_ipv4`: keep\\_ip: 203.0.113.7 stays (`released`)',
    );
    expect(text).toContain('Refreshed 2026-01-01 00:00:00 UTC, ');
  });

  test('shows that a value from the environment has changed', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of the spec
    const text = 'https://h.example/${env:RELEASE}.iso';
    expect(changeLines({ path: 'url', from: text, to: text }, false)).toEqual([
      { mark: '~', text: `url: another value of ${text}` },
    ]);
  });

  test('shows removed rules before the new list, and a moved rule as another order', () => {
    const rules = (...ports: number[]) => ports.map((port) => ({ port }));
    const marks = (from: object[], to: object[]) =>
      changeLines({ path: 'rules', from, to }, false).map(
        ({ mark, text }) => mark + text.replace(/[^\w:]/g, ''),
      );
    expect(marks(rules(443, 22), rules(443))).toEqual(['~rules:', '-port:22', ' port:443']);
    expect(marks(rules(1, 2, 3), rules(1, 9, 3, 2))).toEqual([
      ...['~rules:otherorder', ' port:1', '+port:9', ' port:3', ' port:2'],
    ]);
    expect(marks(rules(1, 1), rules(1))).toEqual(['~rules:otherorder', ' port:1']);
  });

  test('shows the fields of a rule in the order of the spec, and aligns unchanged rules with new rules', () => {
    const was = { enabled: true, direction: 'in', ports: '22' };
    const is = { direction: 'in', enabled: true, ports: '80' };
    const change = { path: 'rules', from: [was], to: [{ ...is, ports: '22' }, is] };
    expect(changeLines({ ...change, to: [is] }, false).slice(1)).toEqual([
      { mark: '-', text: '  {direction: in, enabled: true, ports: "22"}' },
      { mark: '+', text: '  {direction: in, enabled: true, ports: "80"}' },
    ]);
    const update = { id: 'x', key: 'servers.a.firewall', kind: 'firewall', verb: 'update', needs: [] };
    const operations = [{ ...update, changes: [change], spend: 'none', risk: 'safe' }];
    const text = planText({ ...plan, blocked: [], operations } as unknown as Plan, plainPaint);
    expect(text).toContain(
      '          {direction: in, enabled: true, ports: "22"}\n      +   {direction: in,',
    );
  });

  test('shortens long values, and shows null as none', () => {
    expect(shown(null)).toBe('none');
    expect(shown('x'.repeat(500))).toHaveLength(161);
    expect(shown({ ports: '22,443', on: true })).toBe('{ports: "22,443", on: true}');
  });

  test.each([
    [340, '340 ms'],
    [12_000, '12 s'],
    [60_000, '1 min'],
    [95_000, '1 min 35 s'],
    [3_900_000, '1 h 5 min'],
    [200_000_000, '2 d'],
  ])('%i ms is %s', (ms, text) => {
    expect(span(ms)).toBe(text);
  });
});

function terminal(rows: number, columns: number) {
  const stderr = Object.assign(new PassThrough(), { isTTY: true, rows, columns });
  const written: string[] = [];
  stderr.on('data', (data: Buffer) => written.push(data.toString()));
  return { io: { stderr, env: {} } as unknown as Io, written };
}

describe('src/cli/render/values.ts', () => {
  test('shows a long rule completely, in lines that fit a terminal', () => {
    const rule = {
      ...{ direction: 'in', destination_port: '22,443' },
      ...{ description: 'ssh and https', source: '10.20.0.0/24' },
    };
    const [, line] = changeLines({ path: 'rules', from: null, to: [rule] }, true);
    expect(wrapped(line?.text ?? '')).toEqual([
      '  - {direction: in, destination_port: "22,443",',
      '     description: ssh and https, source: 10.20.0.0/24}',
    ]);
  });
});

describe('src/cli/render/plan-markdown.ts', () => {
  test('reports the omitted parts of a plan that is too long for a comment', () => {
    const operations = Array.from({ length: 3_000 }, (_, at) => ({
      ...operation('create', `servers.s${at}`),
      changes: [{ path: 'name', from: null, to: `s${at}` }],
    }));
    const warnings = operations.map(({ key }) => ({ code: 'server_differs', key, message: 'it differs' }));
    const text = planMarkdown({ ...plan, operations, warnings } as unknown as Plan);
    expect(text.length).toBeLessThanOrEqual(markdownLimit);
    expect(text.length).toBeGreaterThan(markdownLimit * 0.9);
    expect(text).toMatch(
      /^> \*\*Cut to 60000 characters\*\*: without (?:\d+ of \d+ lines of “Warnings”, )?\d+ of 3000 groups of operations\. `vdcsync plan` shows all of it\.$/m,
    );
    expect(text).toContain('#### Cost and requests');
    expect(text.match(/<details>/g)?.length).toBe(text.match(/<\/details>/g)?.length);
    expect(text).toMatch(/<sub>Refreshed .*<\/sub>\n$/);
  });
});

describe('src/cli/render: live progress', () => {
  const started = (name: string): ProgressEvent =>
    ({
      type: 'started',
      at: 0,
      operation: { verb: 'create', key: `servers.${name}` },
    }) as unknown as ProgressEvent;

  test('is never higher than the screen or wider than a line', () => {
    const { io, written } = terminal(6, 30);
    const view = liveProgress(io, () => ({ now: () => 1000 }));
    for (let index = 0; index < 50; index += 1) view.event(started(`a-name-that-is-far-too-long-${index}`));
    const frame = written.at(-1) ?? '';
    const lines = stripVTControlCharacters(frame).trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines.at(-1)).toContain('47 more');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(30);
    expect(lines[0]).toMatch(/^\S create servers\.a-n\S*… {2}1 s$/);
    view.end();
  });

  test('uses 80 by 24 for a terminal of unknown size', () => {
    const { io, written } = terminal(0, 0);
    const view = liveProgress(io, () => ({ now: () => 1000 }));
    for (let index = 0; index < 9; index += 1) view.event(started(`web-${index}`));
    const lines = stripVTControlCharacters(written.at(-1) ?? '')
      .trimEnd()
      .split('\n');
    expect(lines).toHaveLength(9);
    expect(lines[8]).toContain('create servers.web-8');
    view.end();
  });

  test('keeps only the lines of operations that have ended', () => {
    const { io, written } = terminal(24, 80);
    const view = liveProgress(io, () => ({ now: () => 1000 }));
    view.event({ type: 'planned', at: 0, round: 1, plan: { operations: [] } } as unknown as ProgressEvent);
    view.event(started('web-1'));
    view.event({
      type: 'ended',
      at: 1000,
      result: { key: 'servers.web-1', verb: 'create', outcome: 'done', durationMs: 1000 },
    } as unknown as ProgressEvent);
    expect(written.at(-1)?.startsWith('\u001b[1A\u001b[J')).toBe(true);
    expect(stripVTControlCharacters(written.at(-1) ?? '')).toMatch(/^✓ create servers\.web-1 in 1 s\n$/);
    const before = written.length;
    view.end();
    expect(written.slice(before).join('')).toBe('');
  });
});

describe('src/cli/render: pictures and progress of a plan and a run', () => {
  const size = 'server_type: sliders-1, image: ubuntu-24.04, memory_mb: 1024, disk_gb: 20';
  const spec = (cores: number, more = '') =>
    `settings: {prune: true}\nips:\n  a: {}\n${more}servers:\n  web: {${size}, cores: ${cores}, replace: allowed, public_ipv4: {ip: a}}\n`;

  test('a picture shows a replacement as one box with its impact, and blocked and adopted resources', async () => {
    const world = rig();
    await world.apply(spec(1));
    world.emulator.mutate({ do: 'add_network', name: 'mine', cidr: '10.9.0.0/24' });
    const cards =
      'networks:\n  mine: {cidr: 10.9.0.0/24}\n  default: {id: 31, managed: false}\n  new: {cidr: 10.8.0.0/24}\n';
    const more = `${cards}${spec(2).trimEnd().slice(0, -1)}, network_interfaces: [new], firewall: {enabled: true, policy_in: drop, rules: []}}\n`;
    const plan = await world.plan(more);
    const svg = planSvg(plan);
    expect(svg).toContain('<title>± servers.web: impact: all data on its disks is lost');
    expect(svg).toContain('<title>! create networks.mine: name_exists</title>');
    expect(svg).toContain(`>${'± servers.web'}</text>`);
    expect(svg).toContain('stroke-dasharray="4 3"');
    expect(svg).toContain('Project 4711: 3 to create, 1 to replace, 1 blocked, 2 unchanged<');
  });

  test('a long line passes between boxes, and a long label ends within its box', () => {
    const long = `servers.${'w'.repeat(90)}`;
    const operations = [
      operation('create', 'networks.a'),
      operation('create', 'ips.x'),
      operation('create', long, ['create:ips.x']),
      operation('create', 'servers.b', [`create:${long}`, 'create:networks.a']),
    ];
    const svg = planSvg({ ...plan, operations, blocked: [] } as unknown as Plan);
    const passed = /servers\.w+<\/title><rect x="\d+" y="(\d+)" width="(\d+)" height="(\d+)"/.exec(svg);
    const [, y, width, height] = (passed ?? []).map(Number);
    const lane = Number(/ L\d+ (\d+)/.exec(svg)?.[1]);
    expect(lane < Number(y) || lane > Number(y) + Number(height)).toBe(true);
    const letters = /x="\d+" y="\d+">(w+…)</.exec(svg)?.[1]?.length ?? Number.NaN;
    expect(letters * 7).toBeLessThan(Number(width));
  });

  test('a typical picture is at most 1,000 pixels wide, and its arrows show direct dependencies only', async () => {
    const world = rig();
    const file = `networks:\n  backend: {cidr: 10.8.0.0/24}\nips: {web: {}}\nservers:\n  database-primary: {server_type: sliders-1, image: ubuntu-24.04, cores: 2, memory_mb: 4096, disk_gb: 40, public_ipv4: {ip: web}, network_interfaces: [backend], firewall: {enabled: true, policy_in: drop, rules: []}, backup: {max_age: 24h}}\n`;
    const svg = planSvg(await world.plan(file));
    expect(Number(/ width="(\d+)" role/.exec(svg)?.[1])).toBeLessThanOrEqual(1000);
    const labels = [...svg.matchAll(/class="label">([^<]+)</g)].map(([, label]) => label);
    expect(labels.sort()).toEqual(['address', 'server', 'server', 'server, network']);
    expect(svg.match(/marker-end/g)).toHaveLength(5);
    expect(
      svg.match(/<text [^>]*>servers\.database-primary\.<|network_interfaces\.backend</g),
    ).not.toBeNull();
  });

  test('an operation that waits for a blocked operation has its own sign and colour', () => {
    const entry = (key: string, code: string) => ({ key, verb: 'create', code, reason: '', remedies: [] });
    const blocked = [entry('networks.a', 'name_exists'), entry('servers.b', 'dependency_blocked')];
    const svg = planSvg({ ...plan, operations: [], blocked } as unknown as Plan);
    const [first, second] = [...svg.matchAll(/<g><title>[^<]*<\/title><rect [^>]* stroke="(#\w+)"/g)];
    expect(svg).toContain('… create servers.b');
    expect(first?.[1]).not.toBe(second?.[1]);
  });

  test('a bar shows work while a task runs, and waiting until a poll shows the end', () => {
    const waits = [{ startMs: 5_000, endMs: 10_000 }];
    const bars = [{ id: 'create:networks.a', startMs: 0, endMs: 10_000, outcome: 'done', waits }];
    expect(barsText(bars)[0]).toMatch(/▕█{20}░{20}▏/);
    expect(barsSvg(bars, 'x')).toMatch(/class="works"\/><rect [^>]*class="waits"\/><\/g>/);
  });

  test('the picture of a run has round times, and a legend without overlapping texts', () => {
    const waits = [{ startMs: 0, endMs: 1_000 }];
    const bars = [
      { id: 'create:networks.a', startMs: 0, endMs: 110_000, outcome: 'done' as const, waits },
      { id: 'create:networks.b', startMs: 0, endMs: 9_000, outcome: 'failed' as const, waits: [] },
    ];
    const svg = barsSvg(bars, 'x');
    const ticks = [...svg.matchAll(/text-anchor="middle" class="dim">([^<]*)</g)].map(([, text]) => text);
    expect(ticks).toEqual(['0:00', '0:30', '1:00', '1:30']);
    const legend = [...svg.matchAll(/<text x="([\d.]+)" y="48" class="dim">([^<]*)</g)];
    const ends = legend.map(([, x, text = '']) => Number(x) + text.length * 7);
    expect(legend.slice(1).every(([, x], at) => Number(x) > (ends[at] ?? 0))).toBe(true);
    expect(Math.max(...ends)).toBeLessThan(1_010);
  });

  test.each([
    ['on a terminal', (io: Io) => liveProgress(io, () => ({ now: () => 0 }))],
    ['in a log', plainProgress],
  ])('reports the deadline of a wait for free capacity once, %s', (_name, viewOf) => {
    const { io, written } = terminal(24, 80);
    const view = viewOf(io);
    const waits = { type: 'progress', step: 'waiting', detail: 'no cards' };
    const wait = { ...waits, key: 'servers.gpu-1', verb: 'create' };
    for (const at of [0, 60_000])
      view.event({ ...wait, at, untilMs: at + 60_000, deadlineMs: 86_400_000 } as unknown as ProgressEvent);
    view.end();
    const told = stripVTControlCharacters(written.join(''));
    expect(told.match(/ waits for free capacity until 1970-01-02 00:00:00 UTC\./g)).toHaveLength(1);
    expect(told).toMatch(/retrying( in 1 min)?: no cards/);
  });

  test.each([
    [{ step: 'task', detail: 'task-1' }, 'waiting for task task-1'],
    [{ step: 'failed', detail: 'no host' }, 'task failed (no host)'],
    [{ step: 'waiting', detail: '500', untilMs: 8_000 }, 'retrying in 8 s: 500'],
    [
      { step: 'waiting', detail: '429', untilMs: 8_000, code: 'rate_limit_exceeded' },
      'rate limited until 00:00:08 UTC',
    ],
  ] as const)('shows a step in standard terms: %j', (step, text) => {
    expect(stepText(step, 0)).toBe(text);
  });

  test('counts each operation once, also operations that a later plan adds', () => {
    const tally = new Tally();
    const planned = (...ids: string[]) =>
      tally.count({ type: 'planned', plan: { operations: ids.map((id) => ({ id })) } } as never);
    const done = (key: string) =>
      tally.count({ type: 'ended', result: { verb: 'create', key, outcome: 'done' } } as never);
    planned('create:ips.a', 'create:ips.b');
    done('ips.a');
    planned('create:ips.b', 'create:ips.c');
    done('ips.a');
    expect(tally.text).toBe('1 of 3');
  });

  test('a failure that a later attempt of the same run repairs is not a failure of the run', () => {
    const result = { key: 'ips.a', verb: 'delete', durationMs: 0 };
    const results = [
      { ...result, outcome: 'failed', code: 'overtaken' },
      { ...result, outcome: 'done' },
    ];
    const report = {
      ...{ outcome: 'converged', results, blocked: [], durationMs: 0 },
      plan: { ...plan, operations: [], warnings: [], cost: { left_billed: [] } },
      requests: { reads: 1, writes: 1, polls: 0, probes: 0, throttled: 0 },
    } as unknown as ApplyReport;
    expect(reportText(report, plainPaint)).toMatch(/^Converged: 1 operation done/);
    expect(reportJson(report, false)).toMatchObject({ failures: [], operations: { done: 1, failed: 0 } });
  });

  test.each([
    ['on a terminal', (io: Io) => liveProgress(io, () => ({ now: () => 0 }))],
    ['in a log', plainProgress],
  ])('prints a line for a failed task at once, %s', (_name, viewOf) => {
    const { io, written } = terminal(24, 200);
    const view = viewOf(io);
    const step = (name: string, detail = '', untilMs = 0) => {
      const event = { type: 'progress', at: 0, key: 'ips.a', verb: 'create', step: name, detail, untilMs };
      view.event(event as unknown as ProgressEvent);
    };
    for (const name of ['sent', 'task']) step(name);
    step('failed', 'no host');
    step('checking', 'whether the failed task left a resource');
    const line = '  create ips.a: task failed (no host)\n';
    expect(written.filter((text) => text.includes(line))).toHaveLength(1);
    step('checking', 'whether the failed task left a resource', 30 * 60_000);
    if (viewOf === plainProgress)
      expect(written.at(-1)).toBe(
        '  create ips.a: checking whether the failed task left a resource, for up to 30 min\n',
      );
    step('sent');
    if (viewOf === plainProgress) expect(written.at(-1)).toBe('  create ips.a: sent again\n');
    view.end();
  });

  test('reports an unchanged refusal once', () => {
    const { io, written } = terminal(24, 200);
    const view = plainProgress(io);
    const blocked = { outcome: 'blocked', code: 'insufficient_privileges', durationMs: 1 };
    const result = { key: 'ips.two', verb: 'delete', ...blocked };
    const ended = (more = {}) =>
      view.event({ type: 'ended', at: 0, result: { ...result, ...more } } as unknown as ProgressEvent);
    ended();
    ended({ durationMs: 2 });
    ended({ code: 'ip_in_use' });
    expect(written).toHaveLength(2);
  });
});

describe('src/cli/render: askYesNo', () => {
  test.each([
    ['yes\n', true],
    ['y\n', true],
    ['YES\n', true],
    ['no\n', false],
    ['\n', false],
    ['yesterday\n', false],
    ['', false],
  ])('%j is %s', async (typed, expected) => {
    const [stdin, stderr] = [new PassThrough(), new PassThrough()];
    stderr.resume();
    stdin.end(typed);
    expect(await askYesNo({ stdin, stderr } as unknown as Io, 'Sure?')).toBe(expected);
  });
});
