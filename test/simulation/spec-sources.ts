import equal from 'fast-deep-equal';
import { type Entries, plainFile, plainSources, type SpecModel } from '../../src/simulation/story.ts';
import type { Source } from '../../src/spec/load.ts';

/** The spec as its sources: one file, and an overlay where the model has one. */
export function specSources({ under, ...model }: SpecModel, projectId: number): readonly Source[] {
  if (under === undefined) return plainSources(model, projectId);
  const whole = plainFile(model, projectId);
  const base = plainFile({ ...under, servers: withNulls(under.servers, model.servers) }, projectId);
  return [
    { file: 'vdcsync.yaml', text: JSON.stringify(base) },
    { file: 'overlay.yaml', text: JSON.stringify(mergePatch(base, whole) ?? {}), overlay: true },
  ];
}

/** The entries of the base with the fields that are `null` in the whole: a merge patch cannot say `null`. */
function withNulls(base: Entries, whole: Entries): Entries {
  const nulls = (name: string) => Object.entries(whole[name] ?? {}).filter(([, value]) => value === null);
  return Object.fromEntries(
    Object.entries(base).map(([name, entry]) => [name, { ...entry, ...Object.fromEntries(nulls(name)) }]),
  );
}

type Plain = Readonly<Record<string, unknown>>;

/** The merge patch (RFC 7396) that makes one map of another; `undefined` where they are equal. */
function mergePatch(before: Plain, after: Plain): Plain | undefined {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changes = [...names].flatMap((name): [string, unknown][] => {
    const [from, to] = [before[name], after[name]];
    if (equal(from, to)) return [];
    if (to === undefined) return [[name, null]];
    return [[name, isMap(from) && isMap(to) ? mergePatch(from, to) : to]];
  });
  return changes.length === 0 ? undefined : Object.fromEntries(changes);
}

function isMap(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
