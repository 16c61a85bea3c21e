import type { Position } from '../../core/desired.ts';
import { inFileOrder, type Plan } from '../../core/plan.ts';
import { cut, svgText } from '../../core/text.ts';
import { summaryLine } from '../../view/plan.ts';
import {
  dashes,
  type Edge,
  edgesOf,
  isIdle,
  type Node,
  type NodeSort,
  nodesOf,
  sortStyles,
} from './plan-graph.ts';

/** In pixels. At a width of 1,000 five columns of usual names are readable. */
const box = {
  gapX: 120,
  gapY: 16,
  padding: 11,
  line: 17,
  letter: 7.6,
  noteLetter: 6.6,
  mostLetters: 30,
} as const;
const margin = { side: 20, top: 78, bottom: 16 } as const;
const titleLetter = 8.2;

interface Placed {
  readonly node: Node;
  readonly lines: readonly string[];
  readonly notes: readonly string[];
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/** The graph of a plan as a picture that needs no other file: columns from left to right, arrows with the reason of the order. */
export function planSvg(plan: Plan): string {
  const nodes = nodesOf(plan);
  const edges = edgesOf(nodes);
  const { placed, width: graphWidth, height, rowHeight } = placeAll(nodes, edges);
  const reasons = [...Map.groupBy(edges, ({ to }) => to)].map(([to, own]) => reason(own, placed.get(to)));
  const title = `Project ${plan.project.id}: ${
    nodes.length === 0
      ? 'nothing to do'
      : summaryLine(plan)
          .replace(/^Plan: /, '')
          .replace(/\.$/, '')
  }`;
  const width = Math.ceil(Math.max(title.length * titleLetter + 2 * margin.side, graphWidth));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="${svgText(title)}">
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 15px; font-weight: 600 } .note { font-size: 11.5px; fill: #59636e }
.label { font-size: 11px; fill: #59636e; text-anchor: end; paint-order: stroke; stroke: #fff; stroke-width: 4px }
rect { fill: #fff; stroke-width: 2 } path { fill: none; stroke: #9aa4ae; stroke-width: 1.5 } marker path { fill: #9aa4ae; stroke: none }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .note, .label { fill: #9198a1 } rect { fill: #0d1117 } .label { stroke: #0d1117 } path { stroke: #656c76 } marker path { fill: #656c76 } }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
<text x="${margin.side}" y="30" class="title">${svgText(title)}</text>
${[...legend(nodes), ...edges.map((edge) => arrow(edge, placed, rowHeight)), ...reasons, ...[...placed.values()].map(drawn)].join('\n')}
</svg>
`;
}

/** Columns by depth; a box is near the boxes that it needs, and rows are the same in all columns, so that lanes between them are free. */
function placeAll(nodes: readonly Node[], edges: readonly Edge[]) {
  const columns = [...Map.groupBy(nodes, ({ depth }) => depth)].sort(([a], [b]) => a - b);
  const needs = Map.groupBy(edges, ({ to }) => to);
  const rows = new Map<Node, number>();
  const wanted = (node: Node): number | undefined => {
    const own = (needs.get(node) ?? []).map(({ from }) => rows.get(from) ?? 0);
    return own.length === 0 ? undefined : own.reduce((sum, row) => sum + row, 0) / own.length;
  };
  const texts = new Map(nodes.map((node) => [node, textsOf(node)]));
  const tallest = Math.max(1, ...[...texts.values()].map(({ lines, notes }) => lines.length + notes.length));
  const rowHeight = tallest * box.line + 12;
  const placed = new Map<Node, Placed>();
  let x: number = margin.side;
  for (const [, column] of columns) {
    const width = Math.max(...column.map((node) => texts.get(node)?.width ?? 0));
    const inFile = inFileOrder(column.map((node) => ({ node, ...positionOf(node) })));
    const order = inFile.map(({ node }) => ({ node, row: wanted(node) }));
    order.sort((a, b) => (a.row ?? 0) - (b.row ?? 0));
    let next = 0;
    for (const { node, row } of order) {
      const at = Math.max(next, Math.floor(row ?? next));
      next = at + 1;
      rows.set(node, at);
      const { lines = [], notes = [] } = texts.get(node) ?? {};
      placed.set(node, { node, lines, notes, x, y: margin.top + at * (rowHeight + box.gapY), width });
    }
    x += width + box.gapX;
  }
  const count = Math.max(1, ...[...rows.values()].map((row) => row + 1));
  const height = margin.top + count * (rowHeight + box.gapY) - box.gapY + margin.bottom;
  return { placed, rowHeight, height, width: Math.max(0, x - box.gapX) + margin.side };
}

function positionOf({ operation }: Node): { readonly position?: Position } {
  return operation?.position === undefined ? {} : { position: operation.position };
}

function textsOf({ name, note }: Node) {
  const lines = wrapped(name, box.mostLetters, '.');
  const notes =
    note === '' ? [] : wrapped(note, Math.floor((box.mostLetters * box.letter) / box.noteLetter), ' ');
  const letters = Math.max(
    ...lines.map((line) => line.length * box.letter),
    ...notes.map((line) => line.length * box.noteLetter),
  );
  return { lines, notes, width: Math.ceil(letters) + 2 * box.padding };
}

/** Two lines at most, broken after the separator; the tooltip has the whole text. */
function wrapped(text: string, most: number, separator: string): readonly string[] {
  if (text.length <= most) return [text];
  const at = text.lastIndexOf(separator, most - 1);
  if (at < 3) return [cut(text, most)];
  return [text.slice(0, at + 1), cut(text.slice(at + 1), most)];
}

function drawn({ node, lines, notes, x, y, width }: Placed): string {
  const { name, note, sort } = node;
  const full = [name, note].filter((each) => each !== '').join(': ');
  const texts = [
    ...lines.map((line) => [line, ''] as const),
    ...notes.map((line) => [line, ' class="note"'] as const),
  ];
  const height = texts.length * box.line + 12;
  const shown = texts.map(
    ([line, style], at) =>
      `<text x="${x + box.padding}" y="${y + 19 + at * box.line}"${style}>${svgText(line)}</text>`,
  );
  return `<g><title>${svgText(full)}</title><rect x="${x}" y="${y}" width="${width}" height="${height}" rx="7" ${strokeOf(sort)}/>${shown.join('')}</g>`;
}

function arrow({ from, to }: Edge, placed: ReadonlyMap<Node, Placed>, rowHeight: number): string {
  const [start, end] = [placed.get(from), placed.get(to)];
  if (start === undefined || end === undefined) return '';
  const [x1, y1, x2, y2] = [start.x + start.width, middle(start), end.x, middle(end)];
  if (to.depth - from.depth === 1)
    return `<path d="M${x1} ${y1}${curve(x1, y1, x2, y2)}" marker-end="url(#tip)"/>`;
  // An arrow that passes other columns goes between two rows.
  const lane = end.y - box.gapY / 2 < margin.top ? end.y + rowHeight + box.gapY / 2 : end.y - box.gapY / 2;
  const [enters, leaves] = [x1 + box.gapX, x2 - box.gapX];
  return `<path d="M${x1} ${y1}${curve(x1, y1, enters, lane)} L${leaves} ${lane}${curve(leaves, lane, x2, y2)}" marker-end="url(#tip)"/>`;
}

/** One label for all arrows to a box, at their common end. There the reader searches for the dependencies of the operation. */
function reason(edges: readonly Edge[], place: Placed | undefined): string {
  const labels = [...new Set(edges.map(({ label }) => label))].filter((label) => label !== '');
  if (place === undefined || labels.length === 0) return '';
  return `<text x="${place.x - 10}" y="${middle(place) - 7}" class="label">${svgText(labels.join(', '))}</text>`;
}

function middle({ y, lines, notes }: Placed): number {
  return y + ((lines.length + notes.length) * box.line + 12) / 2;
}

function curve(x1: number, y1: number, x2: number, y2: number): string {
  const bend = (x1 + x2) / 2;
  return ` C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`;
}

function strokeOf(sort: NodeSort): string {
  return `stroke="${sortStyles[sort].colour}"${isIdle(sort) ? ` stroke-dasharray="${dashes}"` : ''}`;
}

function legend(nodes: readonly Node[]): string[] {
  let x: number = margin.side;
  return [...new Set(nodes.map(({ sort }) => sort))].map((sort) => {
    const text = `${sortStyles[sort].sign} ${sortStyles[sort].meaning}`;
    const entry = `<rect x="${x}" y="44" width="14" height="14" rx="3" ${strokeOf(sort)}/><text x="${x + 20}" y="56" class="note">${text}</text>`;
    x += 36 + text.length * box.noteLetter;
    return entry;
  });
}
