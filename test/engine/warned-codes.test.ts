import { describe, expect, test } from 'vitest';
import { applied, rig, sliders } from '../support/rig.ts';

const head = 'version: 1\nproject: {id: 4711}\n';
const web = (more: string) =>
  `servers:\n  web: {${sliders}, public_ipv4: {new: true}, firewall: {enabled: true, policy_in: drop, rules: [${more}]}}\n`;

describe('src/core/codes.ts', () => {
  test('a new protection is a flags_change until an apply records it', async () => {
    const ips = (protect: boolean) => `ips: {web: {protect: ${protect}}}\n`;
    const { apply, plan } = await applied(ips(false));
    const codes = async () => (await plan(ips(true))).warnings.map(({ code }) => code);

    expect(await codes()).toContain('flags_change');
    await apply(ips(true));
    expect(await codes()).not.toContain('flags_change');
  });

  test('rules that an earlier rule covers are value_doubtful, the first three of them', async () => {
    const rule = (port: string) => `{direction: in, action: accept, enabled: true, protocol: tcp${port}}`;
    const covered = Array.from({ length: 5 }, (_, at) => rule(`, destination_port: "${at + 1}"`));
    const { warnings } = await rig().plan(web([rule(''), ...covered].join(', ')));

    const doubtful = warnings.filter(({ code }) => code === 'value_doubtful');
    expect(doubtful.map(({ message }) => /rule \d|\d more/.exec(message)?.[0])).toEqual([
      ...['rule 2', 'rule 3', 'rule 4'],
      '2 more',
    ]);
  });

  test('an accepted creation without its task is a contract_breach', async () => {
    const played = rig({ emulator: { readings: { omitTaskField: true } } });
    await played.apply(`${head}networks: {backend: {cidr: 10.20.0.0/24}}\nservers: {web: {${sliders}}}\n`);
    const warned = played.events.flatMap((event) => (event.type === 'warning' ? [event.warning.code] : []));

    expect(warned).toContain('contract_breach');
  });
});
