import { nounOf } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Operation, Plan, Verb } from '../../core/plan.ts';
import { printable } from '../../core/text.ts';
import { consequences, openText } from '../../view/plan.ts';

/** `waits`: for another operation, which is blocked, or for a write of an earlier run. */
export type NodeSort = Verb | 'replace' | 'blocked' | 'waits';

/** One box of the graph of a plan. */
export interface Node {
  /** Ids of its operations: a replacement is drawn as one box. */
  readonly ids: readonly string[];
  /** Left out for an entry that is only blocked. */
  readonly operation?: Operation;
  readonly needs: readonly string[];
  readonly sort: NodeSort;
  readonly name: string;
  /** The impact of the operation, or the code that blocks it. */
  readonly note: string;
  /** Steps that come before it at least. */
  readonly depth: number;
}

interface SortStyle {
  /** In front of a name, so that the sort shows without colours too. */
  readonly sign: string;
  /** Readable as a stroke on white and on black. */
  readonly colour: string;
  readonly meaning: string;
}

export const sortStyles: Readonly<Record<NodeSort, SortStyle>> = {
  create: { sign: '+', colour: '#2da44e', meaning: 'create' },
  update: { sign: '~', colour: '#bf8700', meaning: 'update' },
  delete: { sign: '−', colour: '#cf222e', meaning: 'delete' },
  adopt: { sign: '=', colour: '#1f6feb', meaning: 'adopt' },
  replace: { sign: '±', colour: '#8250df', meaning: 'replace' },
  blocked: { sign: '!', colour: '#cf222e', meaning: 'blocked' },
  waits: { sign: '…', colour: '#848d97', meaning: 'waits for a blocked operation' },
};
/** Around operations that are not carried out. */
export const dashes = '4 3';

export function isIdle(sort: NodeSort): boolean {
  return sort === 'blocked' || sort === 'waits';
}

/** A plan lists operations after their dependencies, so one loop finds every depth. A key that is only blocked has no arrow. */
export function nodesOf(plan: Plan): Node[] {
  const { operations, blocked } = plan;
  const codeOf = new Map(blocked.map(({ key, verb, code }) => [`${verb}:${key}`, code]));
  const depths = new Map<string, number>();
  const drawn = new Set<string>();
  const nodes = operations.flatMap((operation): Node[] => {
    const { id, key, verb, replacement } = operation;
    // A replacement is drawn once, at its creation.
    if (replacement !== undefined && verb === 'delete') return [];
    const other = operations.find((each) => each.id === replacement);
    const ids = [id, ...(other === undefined ? [] : [other.id])];
    const needs = [...operation.needs, ...(other?.needs ?? [])].filter((need) => !ids.includes(need));
    const code = ids.map((each) => codeOf.get(each)).find((each) => each !== undefined);
    for (const each of ids) drawn.add(each);
    const isOpen = code === undefined && operation.open === true;
    const usual = isOpen ? 'waits' : other === undefined ? verb : 'replace';
    const sort = code === undefined ? usual : sortOfCode(code);
    const depth = Math.max(-1, ...needs.map((need) => depths.get(need) ?? -1)) + 1;
    for (const each of ids) depths.set(each, depth);
    const lost = isOpen ? openText(operation) : consequences(operation, plan).join('; ');
    return [{ ids, operation, needs, sort, name: nameOf(sort, key), note: code ?? lost, depth }];
  });
  const further = blocked
    .filter(({ key, verb }) => !drawn.has(`${verb}:${key}`))
    .map(({ key, verb, code }): Node => {
      const sort = sortOfCode(code);
      return { ids: [], needs: [], sort, name: nameOf(sort, `${verb} ${key}`), note: code, depth: 0 };
    });
  return [...nodes, ...further];
}

function sortOfCode(code: string): NodeSort {
  return code === 'dependency_blocked' ? 'waits' : 'blocked';
}

function nameOf(sort: NodeSort, key: string): string {
  return `${sortStyles[sort].sign} ${printable(key)}`;
}

/** An arrow, with the reason for the order in a word or two. */
export type Edge = ReturnType<typeof edgesOf>[number];

/**
 * From the operation that comes first. A replacement that both frees something and waits for it has one direction only.
 * An arrow that other arrows imply is left out: a server needs its network, so its network interface has no arrow to it.
 */
export function edgesOf(nodes: readonly Node[]) {
  const byId = new Map(nodes.flatMap((node) => node.ids.map((id) => [id, node] as const)));
  const sources = new Map(
    nodes.map((to) => {
      const needed = to.needs.flatMap((need) => byId.get(need) ?? []);
      return [to, [...new Set(needed)].filter((from) => from.depth < to.depth)] as const;
    }),
  );
  return nodes.flatMap((to) => {
    const direct = sources.get(to) ?? [];
    return direct
      .filter((from) => !direct.some((other) => other.depth > from.depth && reaches(from, other, sources)))
      .map((from) => ({ from, to, label: reasonFor(from, to) }));
  });
}

/** Whether arrows lead from one node to another. */
function reaches(from: Node, to: Node, sources: ReadonlyMap<Node, readonly Node[]>): boolean {
  const seen = new Set<Node>();
  const open = [to];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node === from) return true;
    for (const next of sources.get(node) ?? []) {
      if (next.depth < from.depth || seen.has(next)) continue;
      seen.add(next);
      open.push(next);
    }
  }
  return false;
}

/** Why the second operation waits for the first. */
function reasonFor({ operation: from }: Node, { operation: to }: Node): string {
  if (from === undefined || to === undefined) return '';
  if (from.verb !== 'delete') return nounOf(from.kind);
  return factsOf(to.kind).awaits ?? 'deleted first';
}
