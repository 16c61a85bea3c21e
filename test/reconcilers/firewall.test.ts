import { describe, expect, test } from 'vitest';
import { resolveOf, resolving } from '../support/resolve.ts';
import { rig } from '../support/rig.ts';
import { codesOf, countOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const ssh = '{direction: in, action: accept, protocol: tcp, destination_port: "22"}';
const web = '{direction: in, action: accept, protocol: tcp, destination_port: "80,443", description: web}';
const file = (firewall: string, address = 'public_ipv4: {new: true}, ') =>
  `servers: {web: {${sliders}, ${address}firewall: {${firewall}}}}\n`;

describe('src/reconcilers/firewall.ts', () => {
  test('a write replaces the whole firewall, and keeps the order of rules', async () => {
    const { apply, plan, emulator } = rig();
    const planned = await plan(file(`enabled: true, policy_in: drop, rules: [${ssh}, ${web}]`));
    await apply(file(`enabled: true, policy_in: drop, rules: [${ssh}, ${web}]`));

    const swapped = await plan(file(`enabled: true, policy_in: drop, rules: [${web}, ${ssh}]`));
    const longer = await plan(
      file(`enabled: true, policy_in: drop, rules: [{action: drop}, ${ssh}, ${web}]`),
    );
    const report = await apply(file(`enabled: true, policy_in: accept, rules: [${web}]`));

    const both = { direction: 'in', action: 'accept', protocol: 'tcp' };
    const [a, b] = [
      { ...both, destination_port: '22' },
      { ...both, destination_port: '80,443', description: 'web' },
    ];
    expect(planned.operations.at(-1)).toMatchObject({
      id: 'create:servers.web.firewall',
      needs: ['create:servers.web'],
    });
    expect(swapped.operations).toMatchObject([
      { verb: 'update', changes: [{ path: 'rules', from: [a, b], to: [b, a] }], spend: 'none', risk: 'safe' },
    ]);
    // What stays is on both sides, word for word, so that an insertion shows as one.
    expect(longer.operations).toMatchObject([
      { changes: [{ path: 'rules', from: [a, b], to: [{ action: 'drop' }, a, b] }] },
    ]);
    expect(report.outcome).toBe('converged');
    expect(projectOf(emulator).servers[0]?.firewall).toMatchObject({
      enabled: true,
      policyIn: 'accept',
      rules: [{ destination_port: '80,443' }],
    });
    expect((await plan(file(`policy_in: accept, rules: [${web}]`))).operations).toEqual([]);
  });

  test('fields that the spec does not declare stay unchanged', async () => {
    const { apply, emulator } = rig();
    await apply(file(`enabled: true, rules: [${ssh}]`));

    await apply(file('policy_in: accept'));

    expect(projectOf(emulator).servers[0]?.firewall).toMatchObject({
      enabled: true,
      policyIn: 'accept',
      rules: [{ destination_port: '22' }],
    });
  });

  test('drift is repaired, or only reported with `drift: report`, which still applies edits', async () => {
    const { apply, plan, emulator } = rig();
    await apply(file(`enabled: true, rules: [${ssh}]`));
    const report = 'settings: {drift: report}\n';

    expect((await plan(report + file(`enabled: true, rules: [${ssh}, ${web}]`))).summary.update).toBe(1);
    emulator.mutate({ do: 'set_firewall', server_id: 2001, enabled: false });

    const told = await plan(report + file(`enabled: true, rules: [${ssh}]`));
    expect([told.operations, warningsOf(told)]).toEqual([[], ['exposed', 'drift']]);
    expect((await apply(file(`enabled: true, rules: [${ssh}]`))).outcome).toBe('converged');
    expect(projectOf(emulator).servers[0]?.firewall.enabled).toBe(true);
  });

  test('without a public interface, enabling blocks before the purchase, and each remedy works', async () => {
    const { apply, plan, emulator } = rig();

    const planned = await plan(file('enabled: true', ''));
    const report = await apply(file('enabled: true', ''));

    expect(codesOf(planned)).toEqual({ 'servers.web.firewall': 'firewall_no_public_iface' });
    expect(codesOf(report)).toEqual({ 'servers.web.firewall': 'firewall_no_public_iface' });
    expect(countOf(emulator, 'replace_firewall')).toBe(0);
    expect((await plan(file('enabled: false', ''))).blocked).toEqual([]);
    expect((await rig().plan(file('enabled: true'))).blocked).toEqual([]);
  });

  test('a firewall waits for the public interface if no task shows the end of the creation', async () => {
    const { apply } = rig({ emulator: { readings: { publicCardAt: 'taskDone', omitTaskField: true } } });

    const report = await apply(file('enabled: true'));

    expect(report.outcome).toBe('converged');
    expect(report.results.every(({ outcome }) => outcome === 'done')).toBe(true);
  });

  test('a live field that cannot be sent back blocks a write until the field is gone', async () => {
    const { apply, plan, emulator } = rig();
    await apply(file(`enabled: true, rules: [${ssh}]`));
    const plain = { direction: 'in', action: 'accept', enabled: true, protocol: 'udp' };
    const foreign = { direction: 'in', action: 'accept', enabled: true, source: '10.0.0.0/8' };
    emulator.mutate({ do: 'set_firewall', server_id: 2001, rules: [plain, foreign] });

    const planned = await plan(file(`enabled: true, rules: [${ssh}]`));
    expect(codesOf(planned)).toEqual({ 'servers.web.firewall': 'firewall_would_lose' });
    expect(planned.blocked[0]?.reason).toContain('source: "10.0.0.0/8"');

    emulator.mutate({ do: 'set_firewall', server_id: 2001, rules: [] });
    expect((await apply(file(`enabled: true, rules: [${ssh}]`))).outcome).toBe('converged');
  });

  test('a field that cannot be sent back also blocks an entry that was only compared', async () => {
    const { apply, plan, emulator, store } = rig();
    await apply(file(`enabled: true, rules: [${ssh}]`));
    const [rule] = projectOf(emulator).servers[0]?.firewall.rules ?? [];
    emulator.mutate({
      do: 'set_firewall',
      server_id: 2001,
      rules: [
        { ...rule, source: '10.0.0.0/8' },
        { ...rule, protocol: 'udp' },
      ],
    });
    const gone = { type: 'release', key: 'servers.web.firewall' as never, gone: false, reason: '' } as const;
    await store.change([gone], 0);

    const both = `${ssh}, ${ssh.replace('tcp', 'udp')}`;
    expect((await apply(file(`enabled: true, rules: [${both}]`))).results).toEqual([]);
    expect((await store.bindings()).map(({ key }) => key)).toContain('servers.web.firewall');

    const planned = await plan(file(`enabled: true, rules: [${both}, ${web}]`));
    expect(codesOf(planned)).toEqual({ 'servers.web.firewall': 'firewall_would_lose' });
    expect(resolveOf(planned.blocked[0])).toMatch(/set `rules\.source`/);
    const named = both.replace('{', '{source: 10.0.0.0/8, ');
    expect((await plan(file(`enabled: true, rules: [${named}, ${web}]`))).blocked).toEqual([]);
  });

  test('a policy_out that a write would lose blocks the write, also if nothing else changed', async () => {
    const { apply, plan, emulator } = rig();
    await apply(file(`enabled: true, rules: [${ssh}]`));
    emulator.mutate({ do: 'set_firewall', server_id: 2001, policy_out: 'drop' });

    expect((await plan(file(`enabled: true, rules: [${ssh}]`))).blocked).toEqual([]);
    expect(codesOf(await plan(file('enabled: true, rules: []')))).toEqual({
      'servers.web.firewall': 'firewall_would_lose',
    });
    emulator.mutate({ do: 'set_firewall', server_id: 2001, policy_out: 'accept' });
    expect((await apply(file('enabled: true, rules: []'))).outcome).toBe('converged');
  });

  test.each([
    true,
    'position',
    'position and id',
  ] as const)('fields that the server adds to rules (%s) block nothing', async (ruleDecoration) => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { ruleDecoration } } });
    await apply(file(`enabled: true, rules: [${ssh}]`));

    expect(idsOf(await plan(file(`enabled: true, rules: [${ssh}]`)))).toEqual([]);
    expect((await apply(file(`enabled: true, rules: [${web}, ${ssh}]`))).outcome).toBe('converged');
    const swapped = await plan(file(`enabled: true, rules: [${ssh}, ${web}]`));
    expect(JSON.stringify(swapped.operations.map(({ changes }) => changes))).not.toMatch(/position|"id":\d/);
    expect(warningsOf(swapped)).toEqual([]);
    // Rules that the spec leaves out are sent back as the document shows them.
    expect((await apply(file('enabled: true, policy_in: accept'))).outcome).toBe('converged');
    // Others change them, and every rule carries what the server adds.
    emulator.mutate({ do: 'set_firewall', server_id: 2001, rules: [{ direction: 'in', action: 'drop' }] });
    expect(warningsOf(await plan(file(`enabled: true, rules: [${ssh}]`)))).toEqual([]);
    expect((await apply(file(`enabled: true, rules: [${ssh}]`))).outcome).toBe('converged');
    expect(projectOf(emulator).servers[0]?.firewall.rules).toMatchObject([{ destination_port: '22' }]);
  });

  test('fields that the server adds block nothing on a server that was just adopted', async () => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { ruleDecoration: 'position and id' } } });
    emulator.mutate({ do: 'add_server', name: 'web', public: true });
    const theirs = ['22', '25'].map((destination_port) => ({
      direction: 'in',
      action: 'accept',
      destination_port,
    }));
    emulator.mutate({ do: 'set_firewall', server_id: 2001, enabled: true, rules: theirs });
    const taken = `settings: {unmanaged: ignore}\nservers: {web: {id: 2001, firewall: {enabled: true, rules: [${web}]}}}\n`;

    const planned = await plan(taken);

    expect(planned.blocked).toEqual([]);
    expect(warningsOf(planned)).toContain('firewall_field_dropped');
    expect(planned.operations.at(-1)?.traffic).toMatchObject({
      closed: ['tcp 22', 'tcp 25'].map((each) => each.replace('tcp', 'any protocol')),
    });
    expect((await apply(taken)).outcome).toBe('converged');
  });

  test('a field that another client set blocks, but not the fields that the server adds', async () => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { ruleDecoration: 'position' } } });
    await apply(file(`enabled: true, rules: [${ssh}]`));
    const theirs = { direction: 'in', action: 'accept', source: '10.0.0.0/8' };
    emulator.mutate({
      do: 'set_firewall',
      server_id: 2001,
      rules: [theirs, { direction: 'in', action: 'drop' }],
    });

    const [held] = (await plan(file(`enabled: true, rules: [${ssh}]`))).blocked;

    expect(held).toMatchObject({ code: 'firewall_would_lose' });
    expect(held?.reason).toContain('source');
    expect(held?.reason).not.toContain('position');
  });

  test('undocumented fields are sent, and a refusal names the field', async () => {
    const rule = '{direction: in, action: accept, source: 10.0.0.0/8}';
    const open = rig({ emulator: { readings: { ruleFields: 'any' } } });
    const strict = rig();

    expect((await open.apply(file(`enabled: true, rules: [${rule}]`))).outcome).toBe('converged');
    expect(projectOf(open.emulator).servers[0]?.firewall.rules).toMatchObject([{ source: '10.0.0.0/8' }]);
    const refused = await strict.apply(file(`enabled: true, rules: [${rule}]`));
    expect(refused.blocked).toMatchObject([
      {
        code: 'invalid_request',
        reason: expect.stringContaining('source'),
        remedies: resolving(expect.stringContaining('vdcsync.yaml:')),
      },
    ]);
    expect((await strict.apply(file(`enabled: true, rules: [${ssh}]`))).outcome).toBe('converged');
  });

  test.each([
    ['ip: one', 'keeps its address'],
    ['new: true', 'may get another address'],
  ])('a plan with a replaced server shows the firewall from old to new, with {%s}', async (address, told) => {
    const { apply, plan, emulator } = rig();
    const of = (memory: number, rules: string) =>
      `ips: {one: {}}\nservers: {web: {${sliders.replace(/memory_mb: \d+/, `memory_mb: ${memory}`)}, replace: allowed, public_ipv4: {${address}}, firewall: {enabled: true, policy_in: drop, rules: [${rules}]}}}\n`;
    await apply(of(1024, ssh));

    const planned = await plan(of(2048, web));
    const firewall = planned.operations.find(({ kind }) => kind === 'firewall');

    expect(firewall?.verb).toBe('create');
    expect(firewall?.changes).toContainEqual(
      expect.objectContaining({
        path: 'rules',
        from: [expect.objectContaining({ destination_port: '22' })],
        to: [expect.objectContaining({ destination_port: '80,443' })],
      }),
    );
    expect(firewall?.traffic).toMatchObject({ opened: ['tcp 80', 'tcp 443'], closed: ['tcp 22'] });
    const lockout = planned.warnings.find(({ code }) => code === 'firewall_lockout');
    expect(lockout?.message).toContain(told);
    expect((await apply(of(2048, web))).outcome).toBe('converged');
    expect(projectOf(emulator).servers[0]?.firewall.rules).toMatchObject([{ destination_port: '80,443' }]);
  });
});
