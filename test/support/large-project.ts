import { type PlanningCase, planningCase } from '../../bench/planning.ts';
import type { Plan, Warning } from '../../src/core/plan.ts';
import type { Daemon } from '../../src/daemon/daemon.ts';
import { viewOf } from '../../src/view/build.ts';
import type { ProjectFacts } from '../../src/view/facts.ts';
import { type PageState, pageStates } from './page-states.ts';

/** Each plan of a large project, and one in which every resource is blocked and has a warning. */
export const largeProjects = ['new', 'unchanged', 'leaving', 'blocked'] as const;
export type LargeProject = (typeof largeProjects)[number];

/** The page of a project of so many resources, and a daemon that has only this project. */
export async function largeProject(resources: number, name: LargeProject) {
  const made = (await pageStates.converged?.()) as PageState;
  const facts = await factsOf(made.facts as ProjectFacts, resources, name);
  const projects = [{ id: 4711, facts: async () => ({ ...facts }) }];
  const daemon = {
    ...{ projects: () => projects, specs: { state: () => made.source } },
    ...{ notReady: () => [], brokenSpecs: () => 0 },
  };
  return { input: { ...made, view: viewOf(facts) }, facts, daemon: daemon as unknown as Daemon };
}

async function factsOf(made: ProjectFacts, resources: number, name: LargeProject): Promise<ProjectFacts> {
  const basis: PlanningCase = name === 'blocked' ? 'new' : name;
  const { desired, world, bindings, plan } = await planningCase(resources, basis);
  const planned = plan();
  return {
    ...made,
    plan: name === 'blocked' ? blocked(planned) : planned,
    world,
    offer: { desired, files: ['vdcsync.yaml'], commit: undefined },
    known: { ...(made.known as NonNullable<ProjectFacts['known']>), bindings, intents: [] },
  };
}

function blocked(plan: Plan): Plan {
  const warnings = plan.operations.map(
    ({ key }): Warning => ({ code: 'value_doubtful', key, message: 'x'.repeat(1_000) }),
  );
  const all = plan.operations.map(({ key, verb }) => ({
    ...{ key, verb, code: 'invalid_params', reason: 'x'.repeat(1_000), remedies: [] },
  }));
  return { ...plan, warnings, blocked: all, operations: [] };
}
