import { type Diagnostic, SpecError } from '../../core/errors.ts';
import { loadSpec } from '../../spec/load.ts';
import type { Offer } from '../project/facts.ts';
import type { Snapshot } from './source.ts';

/** One spec as it was read: what it asks for, or what is wrong with it. */
export type Taken =
  | { readonly name: string; readonly offer: Offer }
  | { readonly name: string; readonly problem: readonly Diagnostic[] };

/** Reads every spec of a snapshot; what is wrong with one says nothing about another. */
export function takeIn(
  { specs, commit }: Snapshot,
  environment: Readonly<Record<string, string | undefined>>,
): readonly Taken[] {
  const taken = specs.map((spec): Taken => {
    if ('problem' in spec) return spec;
    const { name, sources } = spec;
    try {
      const desired = loadSpec(sources, environment);
      return { name, offer: { desired, commit, files: sources.map(({ file }) => file) } };
    } catch (error) {
      if (error instanceof SpecError) return { name, problem: error.diagnostics };
      throw error;
    }
  });
  return taken.map((each) => refuseSecond(each, taken));
}

/** Two files of one project would undo each other's work for ever. */
function refuseSecond(spec: Taken, all: readonly Taken[]): Taken {
  if (!('offer' in spec)) return spec;
  const { projectId } = spec.offer.desired;
  const first = all.find((each) => 'offer' in each && each.offer.desired.projectId === projectId);
  if (first === undefined || first.name === spec.name) return spec;
  const position = { file: spec.name, line: 1, column: 1 };
  return {
    name: spec.name,
    problem: [{ position, message: `project ${projectId} is described in ${first.name} already` }],
  };
}
