import { describe, expect, test } from 'vitest';
import { planText } from '../../src/cli/render/plan-text.ts';
import { reportText } from '../../src/cli/render/progress.ts';
import { plainPaint } from '../../src/cli/terminal.ts';
import { stepsOf } from '../../src/core/remedy.ts';
import { type PageInput, renderBody } from '../../src/daemon/http/page.ts';
import { viewOf } from '../../src/view/build.ts';
import { conditionOf } from '../../src/view/condition.ts';
import type { ProjectFacts } from '../../src/view/facts.ts';
import { projectViewSchema } from '../../src/view/project-view.ts';
import { pageStates } from '../support/page-states.ts';
import { idleDaemon } from '../support/project.ts';
import { load, rig } from '../support/rig.ts';

const spec = `
networks: { backend: { cidr: 10.20.0.0/24 } }
servers:
  web-1:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 2048
    disk_gb: 20
    public_ipv4: { new: true }
    network_interfaces: [backend]
    firewall: { enabled: true, policy_in: drop, rules: [] }
`;

/** The counts of a text: `1 blocked, 3 waiting`. */
function countsIn(text: string): readonly string[] {
  return [...text.matchAll(/\d+ (?:blocked|waiting)\b/g)].map(([found]) => found);
}

const noSource = { name: 'file', commit: undefined, readAt: 0, error: undefined, orphans: [] };

describe('src/view/build.ts', () => {
  test('after a refusal to spend, plan, apply, status and page count the same', async () => {
    const own = rig();
    own.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    const report = await own.apply(spec);
    const plan = await own.plan(spec);
    const facts: ProjectFacts = {
      ...{ id: 4711, plan, offer: { desired: load(spec), files: ['vdcsync.yaml'], commit: undefined } },
      known: {
        ...{ now: own.clock.now(), bindings: await own.store.bindings() },
        ...{ intents: await own.store.openIntents(), claims: await own.store.claims() },
      },
      daemon: idleDaemon,
    };
    const view = viewOf(facts);
    const { blocked, waiting } = view.counts;
    const page = { view, projects: [], source: noSource, version: '0', now: 0 };
    const chips = /<nav class="chips"[\s\S]*?<\/nav>/.exec(String(await renderBody(page)))?.[0] ?? '';
    const counts = [`${blocked} blocked`, `${waiting} waiting`];

    expect(projectViewSchema.safeParse(JSON.parse(JSON.stringify(view))).error).toBeUndefined();
    expect([blocked, waiting]).toEqual([2, 1]);
    expect(countsIn(chips)).toEqual(counts);
    expect(countsIn(planText(plan, plainPaint))).toEqual(counts);
    expect(countsIn(reportText(report, plainPaint))).toEqual(counts);
  });

  test('a creation that vdcsync repeats by itself waits in every count, and needs no decision', async () => {
    const { facts, view, ...page } = (await pageStates.blocked?.()) ?? {};
    const plan = facts?.plan;
    if (plan === undefined || view === undefined) throw new Error('the project has no plan');
    const mail = plan.blocked.filter(({ code }) => code === 'key_not_answered');
    const html = String(await renderBody({ ...(page as PageInput), view }));
    const counts = ['3 blocked', '1 waiting'];

    expect(stepsOf(mail[0]?.remedies ?? []).map(({ type }) => type)).toContain('run');
    expect([view.counts.blocked, view.counts.waiting]).toEqual([3, 1]);
    expect(countsIn(/<nav class="chips"[\s\S]*?<\/nav>/.exec(html)?.[0] ?? '')).toEqual(counts);
    expect(countsIn(planText(plan, plainPaint))).toEqual(counts);
    expect(html.split('id="waits"')[1]).toContain('<span>ips.</span><span>mail</span>');
    expect(
      conditionOf({ plan: { ...plan, blocked: mail }, error: undefined, observing: false, pauses: [] }),
    ).toBe('converging');
  });
});
