import type { Operation, Plan } from '../../core/plan.ts';
import { printable } from '../terminal.ts';

interface Node {
  readonly operation: Operation;
  readonly name: string;
  /** Steps that come before it at least. */
  readonly depth: number;
}

const signs = { create: '+', update: '~', delete: '−', adopt: '=' } as const;
const colours = { create: '#2da44e', update: '#bf8700', delete: '#cf222e', adopt: '#1f6feb' } as const;

/** The operations as a graph for a Markdown page: what an arrow leaves comes first. */
export function planMermaid(plan: Plan): string {
  const nodes = nodesOf(plan);
  const ids = new Map(nodes.map(({ operation }, at) => [operation.id, `n${at}`]));
  const text = (label: string) =>
    printable(label).replace(/[^\w .,:;/+~−=()-]/g, (character) => `#${character.codePointAt(0)};`);
  return `${[
    'flowchart LR',
    ...(nodes.length === 0 ? ['  nothing["Nothing to do"]'] : []),
    ...nodes.map(({ operation, name }) => `  ${ids.get(operation.id)}["${text(name)}"]:::${operation.verb}`),
    ...nodes.flatMap(({ operation }) =>
      operation.needs.flatMap((need) =>
        ids.has(need) ? [`  ${ids.get(need)} --> ${ids.get(operation.id)}`] : [],
      ),
    ),
    ...Object.entries(colours).map(
      ([verb, colour]) => `  classDef ${verb} stroke:${colour},stroke-width:2px`,
    ),
  ].join('\n')}\n`;
}

const box = { width: 300, height: 30, gapX: 60, gapY: 12 };

/** The same as a picture that needs nothing else. */
export function planSvg(plan: Plan): string {
  const nodes = nodesOf(plan);
  const columns = Map.groupBy(nodes, ({ depth }) => depth);
  const place = new Map(
    [...columns].flatMap(([depth, column]) =>
      column.map(({ operation }, at) => [
        operation.id,
        { x: 20 + depth * (box.width + box.gapX), y: 56 + at * (box.height + box.gapY) },
      ]),
    ),
  );
  const rows = Math.max(1, ...[...columns.values()].map(({ length }) => length));
  const width = 40 + Math.max(1, columns.size) * (box.width + box.gapX) - box.gapX;
  const height = 66 + rows * (box.height + box.gapY);
  const title = `Project ${plan.project.id}: ${nodes.length === 0 ? 'nothing to do' : `${nodes.length} operations`}`;
  const edges = nodes.flatMap(({ operation }) =>
    operation.needs.flatMap((need) => {
      const [from, to] = [place.get(need), place.get(operation.id)];
      if (from === undefined || to === undefined) return [];
      const [x1, y1, x2, y2] = [from.x + box.width, from.y + box.height / 2, to.x, to.y + box.height / 2];
      const bend = (x1 + x2) / 2;
      return [`<path d="M${x1} ${y1} C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}"/>`];
    }),
  );
  const boxes = nodes.map(({ operation, name }) => {
    const { x, y } = place.get(operation.id) ?? { x: 0, y: 0 };
    const shown = name.length > 42 ? `${name.slice(0, 41)}…` : name;
    return `<g><title>${escaped(name)}</title><rect x="${x}" y="${y}" width="${box.width}" height="${box.height}" rx="6" stroke="${colours[operation.verb]}"/><text x="${x + 12}" y="${y + 20}">${escaped(shown)}</text></g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="${escaped(title)}">
<style>
text { font: 13px system-ui, sans-serif; fill: #222 } .title { font-size: 15px; font-weight: 600 }
rect { fill: none; stroke-width: 2 } path { fill: none; stroke: #888; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } }
</style>
<text x="20" y="30" class="title">${escaped(title)}</text>
${[...edges, ...boxes].join('\n')}
</svg>
`;
}

/** Operations stand after what they need, so one pass finds every depth. */
function nodesOf({ operations }: Plan): Node[] {
  const depths = new Map<string, number>();
  return operations.map((operation) => {
    const depth = Math.max(-1, ...operation.needs.map((need) => depths.get(need) ?? -1)) + 1;
    depths.set(operation.id, depth);
    return { operation, depth, name: `${signs[operation.verb]} ${printable(operation.key)}` };
  });
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}
