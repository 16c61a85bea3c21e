import { describe, expect, test } from 'vitest';
import type { Firewall, FirewallRule } from '../../src/core/resources.ts';
import {
  returnedFields,
  sendable,
  shownFirewall,
  undocumentedFields,
} from '../../src/reconcilers/firewall/undocumented.ts';
import { rig } from '../support/rig.ts';
import { codesOf, countOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const ssh = { direction: 'in', action: 'accept', protocol: 'tcp', destination_port: '22' };
const https = { ...ssh, destination_port: '443' };
const live = (rules: readonly FirewallRule[], policy_in = 'drop'): Firewall => ({
  ...{ enabled: true, policy_in, policy_out: 'accept', rules },
});
const entry = { enabled: true, policy_in: 'drop', rules: [ssh] };
const applied = { ...entry, ruleFields: {} };
const source = { ...ssh, source: '10.0.0.1' };

describe('src/reconcilers/firewall/undocumented.ts', () => {
  test('a field blocks if the API returned the last written rules without it', () => {
    const foreign = ['source', '10.0.0.1'];
    expect(undocumentedFields(entry, live([source, https]), applied)).toMatchObject({ foreign });
    // The firewall has another policy or another port as well.
    expect(undocumentedFields(entry, live([source], 'accept'), applied)).toMatchObject({ foreign });
    const wider = { ...source, destination_port: '22,80' };
    expect(undocumentedFields(entry, live([wider]), applied)).toMatchObject({ foreign });
    // Without a record, a field of every rule may be the API's.
    expect(undocumentedFields(entry, live([source, https]), undefined)).toMatchObject({ foreign });
    expect(undocumentedFields(entry, live([source, https]), entry)).toMatchObject({ foreign });
  });

  test.each([
    ['no write', undefined],
    ['a write without a record', entry],
    // A new version of the API may add a field to rules that nobody has changed.
    ['a write that left the same rules', applied],
  ])('after %s, a field of every rule blocks nothing, and is reported', (_what, before) => {
    const fields = undocumentedFields(entry, live([source]), before);
    expect(fields).toEqual({ added: new Set(['source']), unclear: new Map([['source', '10.0.0.1']]) });
    // The plan shows that the write opens the port to every source.
    expect(shownFirewall(live([source]), fields).rules).toEqual([source]);
    expect(sendable(live([source]), fields).rules).toEqual([ssh]);
  });

  test('a field that the API returned before blocks nothing, and its changed value is reported', () => {
    const before = { ...entry, ruleFields: { position: [0], source: ['any'] } };
    const moved = live([
      { ...https, position: 0, source: 'any' },
      { ...ssh, position: 1, source: 'any' },
    ]);
    const fields = undocumentedFields(entry, moved, before);
    expect(fields).toEqual({ added: new Set(['position', 'source']), unclear: new Map() });
    expect(shownFirewall(moved, fields).rules).toEqual([https, ssh]);

    const narrowed = live([{ ...source, position: 0 }, https]);
    expect(undocumentedFields(entry, narrowed, before)).toEqual({
      added: new Set(['position', 'source']),
      unclear: new Map([['source', '10.0.0.1']]),
    });
  });

  test('a field without a value has no effect', () => {
    const before = { ...entry, ruleFields: returnedFields(entry, live([{ ...ssh, source: null, id: 7 }])) };
    expect(before.ruleFields).toEqual({ id: [7] });
    const fields = undocumentedFields(entry, live([{ ...https, source: '', id: 8 }]), before);
    expect(fields).toEqual({ added: new Set(['source', 'id']), unclear: new Map() });
    const narrowed = live([{ ...source, id: 8 }, https]);
    expect(undocumentedFields(entry, narrowed, before)).toMatchObject({ foreign: ['source', '10.0.0.1'] });
  });

  test('a field that the spec declared before is no change by another client', () => {
    const before = { ...entry, rules: [source], ruleFields: {} };
    const fields = undocumentedFields({ ...entry, rules: [ssh, https] }, live([source]), before);
    expect(fields).toEqual({ added: new Set(), unclear: new Map() });
    const theirs = live([source, { ...https, source: '10.0.0.2' }]);
    expect(undocumentedFields(entry, theirs, before)).toMatchObject({ foreign: ['source', '10.0.0.2'] });
  });
});

const rule = '{direction: in, action: accept, protocol: tcp, destination_port: "22"}';
const file = (rules = rule, memory = 1024) =>
  `servers: {web: {${sliders.replace('1024', String(memory))}, replace: allowed, public_ipv4: {new: true}, firewall: {enabled: true, policy_in: drop, rules: [${rules}]}}}\n`;

describe('src/reconcilers/firewall.ts', () => {
  test.each([
    ['and adds a rule', { rules: [source, https] }],
    ['and changes the policy', { rules: [source], policy_in: 'accept' }],
  ])('an operator limits ssh to one source %s: a repair does not open ssh', async (_what, edited) => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { ruleFields: 'any' } } });
    await apply(file());
    emulator.mutate({ do: 'set_firewall', server_id: 2001, ...edited });
    const codes = { 'servers.web.firewall': 'firewall_would_lose' };

    expect(codesOf(await plan(file()))).toEqual(codes);
    expect((await apply(file())).outcome).toBe('blocked');
    expect(countOf(emulator, 'replace_firewall')).toBe(1);
    expect(projectOf(emulator).servers[0]?.firewall.rules[0]).toMatchObject({ source: '10.0.0.1' });

    // The way out: the spec takes the field over, and may drop it later.
    const taken = file(rule.replace('}', ', source: 10.0.0.1}'));
    expect((await apply(taken)).outcome).toBe('converged');
    expect(projectOf(emulator).servers[0]?.firewall.rules).toMatchObject([{ source: '10.0.0.1' }]);
    const dropped = await plan(file(`${rule}, ${rule.replace('22', '443')}`));
    expect(idsOf(dropped)).toEqual(['update:servers.web.firewall']);
    expect(dropped.operations[0]?.traffic?.opened).toEqual(['tcp 22', 'tcp 443']);
  });

  test('an operator only limits ssh to one source: a change of the spec warns that it opens ssh', async () => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { ruleFields: 'any' } } });
    await apply(file());
    emulator.mutate({ do: 'set_firewall', server_id: 2001, rules: [source] });
    const wider = file(`${rule}, ${rule.replace('22', '443')}`);

    const planned = await plan(wider);

    expect(warningsOf(planned)).toContain('firewall_field_dropped');
    expect(planned.operations[0]?.traffic?.opened).toEqual(['tcp 22', 'tcp 443']);
    expect(planned.operations[0]?.changes).toMatchObject([{ path: 'rules', from: [source] }]);
  });

  test('a replacement drops a field that another client set, and the plan warns', async () => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { ruleFields: 'any' } } });
    await apply(file());
    emulator.mutate({ do: 'set_firewall', server_id: 2001, rules: [source, https] });

    const planned = await plan(file(rule, 2048));

    expect(warningsOf(planned)).toContain('firewall_field_dropped');
    expect(planned.operations.find(({ kind }) => kind === 'firewall')?.traffic).toMatchObject({
      opened: ['tcp 22'],
      closed: ['tcp 443'],
    });
  });
});
