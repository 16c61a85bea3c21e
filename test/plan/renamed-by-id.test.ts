import { describe, expect, test } from 'vitest';
import { sliders } from '../reconcilers/support.ts';
import { applied } from '../support/rig.ts';

const entries: Readonly<Record<string, (name: string, more: string) => string>> = {
  'a network': (name, more) => `networks: {${name}: {${more}name: a, cidr: 10.1.0.0/24}}\n`,
  'an address': (name, more) => `ips: {${name}: {${more}protect: false}}\n`,
  'an ISO': (name, more) => `isos: {${name}: {${more}name: a, url: "https://mirror.example.com/a.iso"}}\n`,
  'a server with all that is inside it': (name, more) =>
    `networks: {backend: {cidr: 10.1.0.0/24}}\nservers: {${name}: {${more}name: a, ${sliders}, public_ipv4: {new: true}, network_interfaces: [backend], firewall: {enabled: true, policy_in: drop, rules: []}}}\n`,
};

describe('src/plan/draft.ts: a rename by the same id', () => {
  describe.each(Object.entries(entries))('of %s', (_what, entry) => {
    test.each(['prune: false', 'prune: true'])('with %s: plan and apply block nothing', async (prune) => {
      const spec = (name: string, more = '') => `settings: {${prune}, exclusive: true}\n${entry(name, more)}`;
      const played = await applied(spec('a'));
      const bound = (await played.store.bindings()).find(({ key }) => /^\w+\.a$/.test(key));
      const renamed = spec('b', `id: ${bound?.id}, `);
      const from = played.writes().length;

      const plan = await played.plan(renamed);
      const report = await played.apply(renamed);

      expect(plan.blocked).toEqual([]);
      expect(plan.operations).toEqual([]);
      const of = plan.warnings.flatMap(({ code, key }) => (code === 'released' ? [key] : []));
      expect(of).toEqual([]);
      expect([report.outcome, report.blocked]).toEqual(['converged', []]);
      expect(played.writes().slice(from)).toEqual([]);
      const left = (await played.store.bindings()).map(({ key }) => key);
      expect(left.filter((key) => /^\w+\.a\b/.test(key))).toEqual([]);
      expect((await played.plan(renamed)).operations).toEqual([]);
    });
  });
});
