import { appliedServer } from '../../core/applied.ts';
import { parseKey } from '../../core/keys.ts';
import { factsOf, type KindName } from '../../core/kind-facts.ts';
import type { Binding } from '../../core/state.ts';
import { sections } from '../../spec/schemas.ts';

/** Chooses the name of each live resource in the spec: its name in the state, else its name in the project. */
export class Names {
  readonly #names = new Map<string, string>();
  readonly #taken = new Set<string>();
  readonly #numbered = new Set<string>();
  readonly #made = new Map<string, string | undefined>();

  constructor(bindings: readonly Binding[]) {
    for (const binding of bindings) {
      const { kind, id, key } = binding;
      const parsed = parseKey(key);
      if (parsed?.parent === undefined && parsed !== undefined) this.#give(kind, id, parsed.name);
      if (factsOf(kind).container) this.#made.set(id, appliedServer(binding).sentName);
    }
  }

  of(kind: KindName, id: string | number, wanted: readonly (string | undefined)[]): string {
    const what = `${kind} ${id}`;
    const before = this.#names.get(what);
    if (before !== undefined) return before;
    const fit = wanted.map((each) => fitting(kind, each)).find((each) => each !== undefined);
    if (fit === undefined) this.#numbered.add(what);
    const base = fit ?? `${kind}-${id}`;
    let name = base;
    for (let at = 1; this.#taken.has(`${kind} ${name}`); at += 1) {
      const tail = at === 1 ? `-${id}` : `-${id}-${at}`;
      name = base.slice(0, shortest - tail.length) + tail;
    }
    return this.#give(kind, id, name);
  }

  /** Whether `of` has made the name from the id, because the resource has no name that fits. */
  isNumbered(kind: KindName, id: string | number): boolean {
    return this.#numbered.has(`${kind} ${id}`);
  }

  /** The name with which the state created the server. */
  madeAs(server: number): string | undefined {
    return this.#made.get(String(server));
  }

  #give(kind: KindName, id: string | number, name: string): string {
    this.#names.set(`${kind} ${id}`, name);
    this.#taken.add(`${kind} ${name}`);
    return name;
  }
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
