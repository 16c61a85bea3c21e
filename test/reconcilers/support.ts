import type { Plan } from '../../src/core/plan.ts';
import type { Emulator } from '../../src/emulator/emulator.ts';
import { isProbe } from '../support/invariants.ts';

/** The one project of the emulator's world. */
export function projectOf(emulator: Emulator) {
  const [project] = emulator.world.projects;
  if (project === undefined) throw new Error('the emulator has no project');
  return project;
}

/** `create:networks.backend`, in the plan's order. */
export function idsOf(plan: Plan): string[] {
  return plan.operations.map(({ id }) => id);
}

/** Key and code of everything that needs an operator. */
export function codesOf({ blocked }: Pick<Plan, 'blocked'>): Record<string, string> {
  return Object.fromEntries(blocked.map(({ key, code }) => [key, code]));
}

export function warningsOf({ warnings }: Plan): string[] {
  return warnings.map(({ code }) => code);
}

/** Adds a resource, as another user does. Returns its id. */
export function added(emulator: Emulator, mutation: Parameters<Emulator['mutate']>[0]): number {
  return (emulator.mutate(mutation) as { id: number }).id;
}

/** How often the API was asked to do something, refusals included, and probes not. */
export function countOf(emulator: Emulator, operation: string): number {
  return emulator.requests.filter((request) => request.operation === operation && !isProbe(request)).length;
}

export { sliders } from '../support/rig.ts';
