import { appliedServer } from '../../core/applied.ts';
import { parseKey } from '../../core/keys.ts';
import { factsOf, type KindName } from '../../core/kind-facts.ts';
import type { Binding } from '../../core/state.ts';
import { sections } from '../../spec/schemas.ts';

/** Chooses the name of each live resource in the spec: its name in the state, else its name in the project. */
export interface Names {
  of(kind: KindName, id: string | number, wanted: readonly (string | undefined)[]): string;
  /** Whether `of` has made the name from the id, because the resource has no name that fits. */
  isNumbered(kind: KindName, id: string | number): boolean;
  /** The name with which the state created the server. */
  madeAs(server: number): string | undefined;
}

export function createNames(bindings: readonly Binding[]): Names {
  const known = new Map<string, string>(
    bindings.flatMap(({ kind, id, key }) => {
      const parsed = parseKey(key);
      return parsed === undefined || parsed.parent !== undefined
        ? []
        : [[`${kind} ${id}`, parsed.name] as const];
    }),
  );
  const given = new Map<string, string>();
  const numbered = new Set<string>();
  const taken = new Set([...known.entries()].map(([what, name]) => `${what.split(' ')[0]} ${name}`));
  const made = new Map(
    bindings.flatMap((binding) =>
      factsOf(binding.kind).container ? [[binding.id, appliedServer(binding).sentName] as const] : [],
    ),
  );
  return {
    madeAs: (server) => made.get(String(server)),
    isNumbered: (kind, id) => numbered.has(`${kind} ${id}`),
    of(kind, id, wanted) {
      const what = `${kind} ${id}`;
      const before = given.get(what) ?? known.get(what);
      if (before !== undefined) return before;
      const fit = wanted.map((each) => fitting(kind, each)).find((each) => each !== undefined);
      if (fit === undefined) numbered.add(what);
      const base = fit ?? `${kind}-${id}`;
      let name = base;
      for (let at = 1; taken.has(`${kind} ${name}`); at += 1) {
        const tail = at === 1 ? `-${id}` : `-${id}-${at}`;
        name = base.slice(0, shortest - tail.length) + tail;
      }
      taken.add(`${kind} ${name}`);
      given.set(what, name);
      return name;
    },
  };
}

/** Fits under every map of the spec. */
const shortest = 30;
/** Accepted by the patterns, and refused by the spec's reader. */
const unusable = new Set(['constructor', 'prototype', '__proto__']);

/** The name, as far as it can be one in the spec. */
function fitting(kind: KindName, name: string | undefined): string | undefined {
  const pattern = sections.find((each) => each.kind.name === kind)?.names.pattern;
  if (name === undefined || pattern === undefined) return undefined;
  if (pattern.test(name) && !unusable.has(name)) return name;
  const near = name
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[-_]+|[-_]+$/g, '')
    .slice(0, shortest);
  return pattern.test(near) && !unusable.has(near) ? near : undefined;
}
