// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test looks like one
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { PlanStaleError } from '../../src/core/errors.ts';
import { digestOf } from '../../src/core/json.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { TaskId } from '../../src/core/resources.ts';
import { TransportError } from '../../src/core/transport.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import type { ApplyOptions } from '../../src/engine/deps.ts';
import { loadSpec } from '../../src/spec/load.ts';
import { rig as apiRig, ok } from '../api/support.ts';
import { around, type Rig, rig } from '../support/rig.ts';

const canary = 'canary-5f3a9c';
const environment = { SECRET: canary, OFFICE: '198.51.100.7/32', NOTE: 'dev' };
/** Values, and parts of them, that no output and no state may show. */
const secrets = /canary|198\.51\.100\.7|"dev"/;

const spec = `version: 1
project: { id: 4711 }
settings: { max_deletions: 9 }
isos:
  rescue: { url: "https://mirror.example.com/\${env:SECRET}/rescue.iso" }
servers:
  web-1:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: { new: true }
    firewall:
      enabled: true
      policy_in: drop
      rules:
        - { direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22", description: "\${env:NOTE} \${env:OFFICE}" }
`;

const load = (text = spec, env: Readonly<Record<string, string>> = environment) =>
  loadSpec([{ file: 'vdcsync.yaml', text }], env);

const apply = (one: Rig, desired = load(), options: Partial<ApplyOptions> = {}) =>
  one.clock.run(one.engine.apply(desired, { approve: async () => true, ...options }));

async function applied(desired = load()): Promise<Rig> {
  const one = rig();
  expect((await apply(one, desired)).outcome).toBe('converged');
  return one;
}

/** Everything that the state holds. */
async function contents({ store }: Rig): Promise<string> {
  const all = [
    await store.bindings(),
    await store.openIntents(),
    await store.intents({ limit: 1_000 }),
    await store.journal({ limit: 1_000 }),
  ];
  return JSON.stringify(all);
}

const planOf = (one: Rig, desired = load()) => one.clock.run(one.engine.plan(desired));

describe('src/core/hidden-texts.ts: values that came from the environment', () => {
  test('are sent, and appear in no plan, event, report, binding, intent or journal', async () => {
    const one = rig();
    const plan = await planOf(one);
    expect(JSON.stringify(plan)).not.toMatch(secrets);
    expect(JSON.stringify(plan.operations)).toContain('https://mirror.example.com/${env:SECRET}/rescue.iso');
    const shown: unknown[] = [];
    const report = await apply(one, load(), { approve: async (each) => shown.push(each) > 0 });
    expect(report.outcome).toBe('converged');
    expect(JSON.stringify([shown, report, one.events])).not.toMatch(secrets);
    expect(await contents(one)).not.toMatch(secrets);
    const bodies = one.writes().map(({ body }) => body);
    expect(bodies).toContainEqual(expect.stringContaining(`https://mirror.example.com/${canary}/rescue.iso`));
    expect(bodies).toContainEqual(expect.stringContaining('"dev 198.51.100.7/32"'));
  });

  test('are recognised by another process, and as values in the spec: nothing is planned again', async () => {
    const one = await applied();
    expect((await planOf(one)).operations).toEqual([]);
    one.restart();
    expect((await planOf(one)).operations).toEqual([]);
    const renamed = load(spec.replaceAll('env:SECRET', 'env:OTHER'), { ...environment, OTHER: canary });
    expect((await planOf(one, renamed)).operations).toEqual([]);
    const values = new Map(Object.entries(environment));
    const plain = spec.replaceAll(/\$\{env:(\w+)\}/g, (_text, name) => values.get(name) ?? '');
    expect((await planOf(one, load(plain, {}))).operations).toEqual([]);
  });

  test('change without showing the old or the new value, and converge', async () => {
    const one = await applied();
    const other = load(spec, { ...environment, SECRET: 'canary-other', OFFICE: '203.0.113.9' });
    const plan = await planOf(one, other);
    expect(plan.operations.map(({ id }) => id)).toEqual(
      expect.arrayContaining(['delete:isos.rescue', 'create:isos.rescue', 'update:servers.web-1.firewall']),
    );
    // The firewall of the project still has the old value.
    expect(JSON.stringify(plan)).not.toMatch(secrets);
    expect((await apply(one, other)).outcome).toBe('converged');
    expect((await planOf(one, other)).operations).toEqual([]);
    expect(await contents(one)).not.toMatch(/canary|203\.0\.113\.9|198\.51/);
  });

  test('a saved plan is carried out with the same values, and is stale with others', async () => {
    const one = rig();
    const saved = JSON.parse(JSON.stringify(await planOf(one)));
    const other = load(spec, { ...environment, SECRET: 'canary-other' });
    await expect(apply(one, other, { saved })).rejects.toThrow(PlanStaleError);
    expect((await apply(one, load(), { saved })).outcome).toBe('converged');
  });

  test('a write whose answer was lost is sent again byte for byte by another process', async () => {
    const halt = new AbortController();
    let lost = false;
    const one = rig({
      wrap: around(async (request, send) => {
        const isIso = request.method === 'POST' && request.url.endsWith('/isos');
        if (!isIso || lost) return send();
        lost = true;
        halt.abort(new Error('the process ends'));
        throw new TransportError('reset', 'unknown', 'ECONNRESET');
      }),
    });
    await apply(one, load(), { halt: halt.signal }).catch(() => undefined);
    expect((await one.store.openIntents()).map(({ key }) => key)).toContain('isos.rescue' as ResourceKey);
    expect(await contents(one)).not.toMatch(secrets);
    one.restart();
    expect((await apply(one)).outcome).toBe('converged');
    const sent = one.writes().flatMap(({ path, body = '' }) => (path === '/isos' ? [body] : []));
    expect(new Set(sent.filter((body) => !body.includes('vdcsync_probe'))).size).toBe(1);
    expect(one.emulator.world.projects[0]?.isos).toHaveLength(1);
    expect((await planOf(one)).operations).toEqual([]);
  });

  test('a state holds no digest that confirms a guess without its salt, and recognises its own', async () => {
    const one = await applied();
    const url = `https://mirror.example.com/${canary}/rescue.iso`;
    for (const guess of [{ name: 'rescue', url }, ['POST', '/isos', JSON.stringify({ url, name: 'rescue' })]])
      expect(await contents(one)).not.toContain(digestOf(guess).slice('sha256:'.length));
  });

  test('are masked in any form in an answer, which keeps the fields that vdcsync needs', async () => {
    const forms = [canary, encodeURIComponent(canary), Buffer.from(`x:${canary}`).toString('base64'), 'dev'];
    const one = rig({
      wrap: around(async (request, send) => {
        const answer = await send();
        if (request.method !== 'POST' || !request.url.endsWith('/isos')) return answer;
        const problem = {
          ...{ type: 'about:blank', status: 422, code: 'invalid_request', title: `no ${forms.join(' ')}` },
          detail: `the URL ${JSON.stringify(request.body)} is refused`,
          invalid_params: [{ name: 'url', reason: forms.join(', ') }],
        };
        const headers = { ...answer.headers, 'content-type': 'application/problem+json' };
        return { status: 422, headers, body: JSON.stringify(problem) };
      }),
    });
    const report = await apply(one);
    expect(report.blocked).toMatchObject([{ key: 'isos.rescue', code: 'invalid_request' }]);
    const all = JSON.stringify([report, one.events, await contents(one)]);
    expect(all).toContain('${env:SECRET}');
    for (const form of forms)
      expect([form, new RegExp(`(?<!\\w)${form}(?!\\w)`).test(all)]).toEqual([form, false]);
  });

  test('are masked in a log line about an undocumented answer', async () => {
    const lines: string[] = [];
    const log = (fields: object, text: string) => void lines.push(`${text} ${inspect(fields)}`);
    const task = { id: 'task-1', status: canary, is_terminal: true };
    const { clock, client } = apiRig(() => ok(task), { logger: { debug: log, warn: log } });
    client.hidden.learn(load(), 'salt');
    const waits = { id: task.id as TaskId, sort: 'add_iso', acceptedAt: 0, deadlineMs: 60_000 } as const;
    await clock.run(client.tasks.wait(waits)).catch((error: unknown) => lines.push(inspect(error)));
    expect(lines.join('\n')).toContain('${env:SECRET}');
    expect(lines.join('\n')).not.toMatch(secrets);
  });

  test('that equal other values do not change those values', async () => {
    const same = { SECRET: 'rescue', NOTE: 'tcp', OFFICE: 'ubuntu-24.04' };
    const one = await applied(load(spec, same));
    expect((await planOf(one, load(spec, same))).operations).toEqual([]);
    const rules = one.emulator.world.projects[0]?.servers[0]?.firewall.rules;
    expect(rules).toMatchObject([{ protocol: 'tcp', description: 'tcp ubuntu-24.04' }]);
  });

  const odd = [
    ...['x', '22', 'tcp', 'in', 'web-1', 'rescue', 'Active', '203.0.113.10', ' padded '],
    ...['a,b , c', 'a\nb', 'null'],
    ...['a"b\\c', 'ü€😀', '${env:OFFICE}', '__proto__', `x [sealed:${'b'.repeat(64)}]`],
  ];
  test.each(odd)('arrive unchanged, and are planned once: %j', async (value) => {
    const text = spec.replace('${env:NOTE} ${env:OFFICE}', () => '$${env:NOTE} ${env:NOTE}');
    const of = () => load(text, { SECRET: value, NOTE: value });
    const one = await applied(of());
    expect((await planOf(one, of())).operations).toEqual([]);
    one.restart();
    expect((await planOf(one, of())).operations).toEqual([]);
    const rules = one.emulator.world.projects[0]?.servers[0]?.firewall.rules;
    expect(rules).toMatchObject([{ description: `\${env:NOTE} ${value}`.trim() }]);
  });

  test('a text of the spec that resembles a text of the state is sent unchanged', async () => {
    const text = `note [sealed:${'c'.repeat(64)}]`;
    const plain = load(spec.replace('${env:NOTE} ${env:OFFICE}', text));
    const one = await applied(plain);
    expect(one.emulator.world.projects[0]?.servers[0]?.firewall.rules).toMatchObject([{ description: text }]);
    expect((await planOf(one, plain)).operations).toEqual([]);
  });

  test('a recorded refusal lasts until the value changes', async () => {
    const one = rig();
    const refusal = { do: 'answer', status: 422, code: 'invalid_request', stored: true } as const;
    one.emulator.setFaults([faultRule({ path: 'add_iso' }, refusal)]);
    const codes = async (desired = load()) =>
      (await planOf(one, desired)).blocked.filter(({ key }) => key === 'isos.rescue').map(({ code }) => code);
    await apply(one);
    one.restart();

    expect(await codes()).toEqual(['invalid_request']);
    expect(await codes(load(spec, { ...environment, SECRET: 'canary-other' }))).toEqual([]);
  });
});
