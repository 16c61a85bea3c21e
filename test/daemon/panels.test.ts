import { beforeEach, describe, expect, test } from 'vitest';
import type { Operation, Plan } from '../../src/core/plan.ts';
import type { Rollout } from '../../src/daemon/fleet/rollout.ts';
import { billPanel } from '../../src/daemon/http/bill.ts';
import { dangersPanel } from '../../src/daemon/http/dangers.ts';
import { rolloutsPanel } from '../../src/daemon/http/overview.ts';
import { type PageInput, renderBody } from '../../src/daemon/http/page.ts';
import { Pager } from '../../src/daemon/http/pager.ts';
import { waitingPanel } from '../../src/daemon/http/panels.ts';
import { viewOf } from '../../src/view/build.ts';
import type { DaemonFacts, ProjectFacts } from '../../src/view/facts.ts';
import { pageStates, thousand } from '../support/page-states.ts';

let input: PageInput;
let facts: ProjectFacts;

beforeEach(async () => {
  const made = await pageStates.converged?.();
  if (made?.facts === undefined) throw new Error('the page has no project');
  [input, facts] = [made, made.facts];
});

/** The visible text. */
async function textOf(part: unknown): Promise<string> {
  return String(await part)
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
}

const page = (changed: Partial<ProjectFacts>, more: Partial<PageInput> = {}) =>
  textOf(renderBody({ ...input, ...more, view: viewOf({ ...facts, ...changed }) }));
const withDaemon = (changed: Partial<DaemonFacts>): ProjectFacts => {
  if (facts.daemon === undefined) throw new Error('the project has no daemon');
  return { ...facts, daemon: { ...facts.daemon, ...changed } };
};
const problem = (file: string) => [{ position: { file, line: 1, column: 1 }, message: 'unknown field `x`' }];
const planned = (operation: object) => {
  if (facts.plan === undefined) throw new Error('the project has no plan');
  return { ...facts.plan, operations: [operation as Operation] };
};
/** A change that lets a new server be exposed until it is done. */
const firewall = {
  ...{ id: 'create:servers.web-1.firewall', key: 'servers.web-1.firewall', kind: 'firewall', verb: 'create' },
  changes: [{ path: 'enabled', from: null, to: true }],
  needs: [],
};

describe('src/daemon/http/panels.ts', () => {
  test('a plan that waits for approval shows its command, also next to a blocked operation', async () => {
    const [blocked] = (await pageStates.blocked?.())?.facts?.plan?.blocked ?? [];
    const plan = { ...planned(firewall), blocked: [blocked] } as Plan;
    expect(await page({ plan, condition: 'blocked', awaiting: plan.digest })).toContain(
      `vdcsync approve ${plan.digest.slice(7, 19)}`,
    );
  });

  test('an invalid spec leaves the last valid spec in force only if there was a valid spec', async () => {
    expect(await page({ problem: problem('vdcsync.yaml') })).toContain('last valid spec stays in force');
    const first = await page({ problem: problem('vdcsync.yaml'), offer: undefined });
    expect(first).toContain('No valid spec was read yet');
    expect(first).not.toContain('stays in force');
  });

  test('an unused spec is on the overview, and not on the page of another project', async () => {
    const source = { ...input.source, orphans: [{ name: 'other', problem: problem('other.yaml') }] };
    const others = thousand();
    expect(await page({}, { source, projects: others })).not.toContain('other.yaml');
    const alone = await page({}, { source });
    expect(alone).toMatch(/A spec cannot be used .*other\.yaml:1:1/);
    expect(alone).not.toContain('spec is broken');
    const overview = await textOf(renderBody({ ...input, source, projects: others, view: undefined }));
    expect(overview).toContain('other.yaml:1:1');
  });

  test.each([
    ['everything', 'All writes are paused'],
    ['spending', 'Writes that add cost are paused'],
    ['create_server', 'Writes such as create server are paused'],
  ])('a pause of %s names its writes', async (scope, text) => {
    const pause = { scope, code: 'payment_required', reason: 'no money', since: 0, probeAt: null };
    expect(await textOf(waitingPanel(viewOf(withDaemon({ pauses: [pause] })), new Pager()))).toContain(text);
  });
});

describe('src/daemon/http/overview.ts', () => {
  test('a rollout shows its phase, the number of projects with the change, and the reason of a stop', async () => {
    const counts = { total: 40, released: 12, left: 28, wave: 2 };
    const rollout = { change: '4f2a91c07be3aa', phase: 'stopped', ...counts, reason: 'project 7 is blocked' };
    const shown = await textOf(rolloutsPanel([rollout as unknown as Rollout]));
    for (const text of [
      '4f2a91c07be3',
      'stopped',
      '12 of 40 projects',
      '2 waves begun',
      'project 7 is blocked',
    ])
      expect(shown).toContain(text);
  });
});

describe('src/daemon/http/page.ts', () => {
  test('the page of a project on another replica names both replicas', async () => {
    const shown = await page({}, { elsewhere: { worker: 'host-a', shownBy: 'host-b' } });
    expect(shown).toMatch(/Replica host-a works on this project\. This page comes from replica host-b/);
  });
});

describe('src/daemon/http/dangers.ts', () => {
  test.each([
    ['observe', 'drifting', 'does not set the firewall'],
    ['correct', 'awaiting_approval', 'waits for your approval'],
    ['correct', 'unreachable', 'when the reconciliations succeed again'],
    ['correct', 'converging', 'sets the firewall next'],
  ] as const)('an exposed server in mode %s while %s: %s', async (mode, condition, next) => {
    const warnings = [{ code: 'exposed', key: 'servers.web-1', message: '' }] as unknown as Plan['warnings'];
    const plan = { ...planned(firewall), warnings };
    const awaiting = condition === 'awaiting_approval' ? plan.digest : undefined;
    const view = viewOf({ ...withDaemon({ mode }), condition, plan, awaiting });
    expect(await textOf(dangersPanel(view, new Pager()))).toContain(next);
  });
});

describe('src/daemon/http/bill.ts', () => {
  test('reports exactly the resources without a price', async () => {
    const billed = (unknown: readonly string[]) => {
      const plan = planned(firewall);
      const monthly = { ...plan.cost.monthly, known_before: '0.00', unknown };
      const cost = { ...plan.cost, monthly, known_monthly_delta: '0.00' };
      return textOf(billPanel(viewOf({ ...facts, plan: { ...plan, cost } }), new Pager()));
    };
    expect(await billed([])).not.toContain('price');
    expect(await billed(['servers.web-1'])).toContain('No price is known for 1 managed resource');
  });
});
