import { type Diagnostic, SpecError } from '../../core/errors.ts';
import { loadSpec } from '../../spec/load.ts';
import type { Offer } from '../project/facts.ts';
import type { Snapshot } from './source.ts';

/** One spec as it was read: what it asks for, or what is wrong with it. */
export type Taken =
  | { readonly name: string; readonly offer: Offer }
  | {
      readonly name: string;
      readonly problem: readonly Diagnostic[];
      /** Whose it says that it is, where that much can be read. */
      readonly projectId?: number | undefined;
    };

/** Reads every spec of a snapshot; what is wrong with one says nothing about another. */
export function takeIn(
  { specs, commit }: Snapshot,
  environment: Readonly<Record<string, string | undefined>>,
): readonly Taken[] {
  return specs.map((spec): Taken => {
    if ('problem' in spec) return spec;
    const { name, sources } = spec;
    try {
      const desired = loadSpec(sources, environment);
      return { name, offer: { desired, commit, files: sources.map(({ file }) => file) } };
    } catch (error) {
      if (error instanceof SpecError) return { name, problem: error.diagnostics, projectId: error.projectId };
      throw error;
    }
  });
}
