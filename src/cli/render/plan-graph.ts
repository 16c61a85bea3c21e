import type { Plan } from '../../core/plan.ts';
import { printable } from '../terminal.ts';
import { consequences } from './consequences.ts';
import { summaryLine } from './plan-groups.ts';

type Sort = 'create' | 'update' | 'delete' | 'adopt' | 'replace' | 'blocked';

interface Node {
  /** Of the operations that it stands for: a replacement is drawn as one. */
  readonly ids: readonly string[];
  readonly needs: readonly string[];
  readonly sort: Sort;
  readonly name: string;
  /** What is lost by it, or what holds it back. */
  readonly note: string;
  /** Steps that come before it at least. */
  readonly depth: number;
}

const signs = { create: '+', update: '~', delete: '−', adopt: '=', replace: '±', blocked: '!' } as const;
const colours = {
  create: '#2da44e',
  update: '#bf8700',
  delete: '#cf222e',
  adopt: '#1f6feb',
  replace: '#8250df',
  blocked: '#cf222e',
} as const;
/** What nothing is done to. */
const dashes = '4 3';

/** The operations as a graph for a Markdown page: what an arrow leaves comes first. */
export function planMermaid(plan: Plan): string {
  const nodes = nodesOf(plan);
  const idOf = new Map(nodes.map((node, at) => [node, `n${at}`]));
  const text = (label: string) =>
    printable(label).replace(/[^\w .,:;/+~−±=!()-]/g, (character) => `#${character.codePointAt(0)};`);
  const label = ({ name, note }: Node) =>
    [name, note]
      .filter((each) => each !== '')
      .map(text)
      .join('<br/>');
  return `${[
    'flowchart LR',
    ...(nodes.length === 0 ? ['  nothing["Nothing to do"]'] : []),
    ...nodes.map((node) => `  ${idOf.get(node)}["${label(node)}"]:::${node.sort}`),
    ...edgesOf(nodes).map(([from, to]) => `  ${idOf.get(from)} --> ${idOf.get(to)}`),
    ...Object.entries(colours).map(
      ([sort, colour]) =>
        `  classDef ${sort} stroke:${colour},stroke-width:2px${sort === 'blocked' ? `,stroke-dasharray:${dashes}` : ''}`,
    ),
  ].join('\n')}\n`;
}

const box = { gapX: 60, gapY: 14, padding: 12, mostLetters: 56, letter: 7.6 };
const titleLetter = 8.2;

/** The same as a picture that needs nothing else. */
export function planSvg(plan: Plan): string {
  const nodes = nodesOf(plan);
  const columns = Map.groupBy(nodes, ({ depth }) => depth);
  const longest = Math.max(20, ...nodes.flatMap(({ name, note }) => [name.length, note.length]));
  const boxWidth = Math.ceil(Math.min(longest, box.mostLetters) * box.letter) + 2 * box.padding;
  const boxHeight = nodes.some(({ note }) => note !== '') ? 46 : 30;
  const place = new Map(
    [...columns].flatMap(([depth, column]) =>
      column.map((node, at) => [
        node,
        { x: 20 + depth * (boxWidth + box.gapX), y: 56 + at * (boxHeight + box.gapY) },
      ]),
    ),
  );
  const placeOf = (node: Node) => place.get(node) ?? { x: 0, y: 0 };
  const rows = Math.max(1, ...[...columns.values()].map(({ length }) => length));
  const title = `Project ${plan.project.id}: ${nodes.length === 0 ? 'nothing to do' : summaryLine(plan)}`;
  const width = Math.ceil(
    40 + Math.max(title.length * titleLetter, Math.max(1, columns.size) * (boxWidth + box.gapX) - box.gapX),
  );
  const height = 66 + rows * (boxHeight + box.gapY);
  const edges = edgesOf(nodes).map(([from, to]) => {
    const [start, end] = [placeOf(from), placeOf(to)];
    const [x1, y1, x2, y2] = [start.x + boxWidth, start.y + boxHeight / 2, end.x, end.y + boxHeight / 2];
    if (to.depth - from.depth === 1) return `<path d="M${x1} ${y1}${curve(x1, y1, x2, y2)}"/>`;
    // Past other boxes it goes between two rows of them.
    const [lane, enters, leaves] = [end.y - box.gapY / 2, x1 + box.gapX, x2 - box.gapX];
    return `<path d="M${x1} ${y1}${curve(x1, y1, enters, lane)} L${leaves} ${lane}${curve(leaves, lane, x2, y2)}"/>`;
  });
  const boxes = nodes.map((node) => {
    const { x, y } = placeOf(node);
    const { name, note, sort } = node;
    const line = (text: string, at: number, style: string) =>
      text === '' ? '' : `<text x="${x + box.padding}" y="${y + at}"${style}>${escaped(cut(text))}</text>`;
    const dashed = sort === 'blocked' ? ` stroke-dasharray="${dashes}"` : '';
    const full = [name, note].filter((each) => each !== '').join(': ');
    return `<g><title>${escaped(full)}</title><rect x="${x}" y="${y}" width="${boxWidth}" height="${boxHeight}" rx="6" stroke="${colours[sort]}"${dashed}/>${line(name, 20, '')}${line(note, 37, ' class="note"')}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="${escaped(title)}">
<style>
text { font: 13px system-ui, sans-serif; fill: #222 } .title { font-size: 15px; font-weight: 600 } .note { font-size: 12px; opacity: 0.75 }
rect { fill: none; stroke-width: 2 } path { fill: none; stroke: #888; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } }
</style>
<text x="20" y="30" class="title">${escaped(title)}</text>
${[...edges, ...boxes].join('\n')}
</svg>
`;
}

function curve(x1: number, y1: number, x2: number, y2: number): string {
  const bend = (x1 + x2) / 2;
  return ` C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`;
}

function cut(text: string): string {
  return text.length > box.mostLetters ? `${text.slice(0, box.mostLetters - 1)}…` : text;
}

/** Operations stand after what they need, so one pass finds every depth. What is only blocked stands by itself. */
function nodesOf(plan: Plan): Node[] {
  const { operations, blocked } = plan;
  const codeOf = new Map(blocked.map(({ key, verb, code }) => [`${verb}:${key}`, code]));
  const depths = new Map<string, number>();
  const drawn = new Set<string>();
  const nodes = operations.flatMap((operation): Node[] => {
    const { id, key, verb, replacement } = operation;
    // A replacement is drawn once, where the new one is made.
    if (replacement !== undefined && verb === 'delete') return [];
    const other = operations.find((each) => each.id === replacement);
    const ids = [id, ...(other === undefined ? [] : [other.id])];
    const needs = [...operation.needs, ...(other?.needs ?? [])].filter((need) => !ids.includes(need));
    const code = ids.map((each) => codeOf.get(each)).find((each) => each !== undefined);
    for (const each of ids) drawn.add(each);
    const sort = code === undefined ? (other === undefined ? verb : 'replace') : 'blocked';
    const depth = Math.max(-1, ...needs.map((need) => depths.get(need) ?? -1)) + 1;
    for (const each of ids) depths.set(each, depth);
    const lost = consequences(operation, plan).join('; ');
    return [{ ids, needs, sort, name: nameOf(sort, key), note: code ?? lost, depth }];
  });
  const further = blocked
    .filter(({ key, verb }) => !drawn.has(`${verb}:${key}`))
    .map(({ key, verb, code }): Node => {
      return {
        ids: [],
        needs: [],
        sort: 'blocked',
        name: nameOf('blocked', `${verb} ${key}`),
        note: code,
        depth: 0,
      };
    });
  return [...nodes, ...further];
}

function nameOf(sort: Sort, key: string): string {
  return `${signs[sort]} ${printable(key)}`;
}

/** From what comes first; what a replacement both frees and waits for has one direction only. */
function edgesOf(nodes: readonly Node[]): (readonly [from: Node, to: Node])[] {
  const byId = new Map(nodes.flatMap((node) => node.ids.map((id) => [id, node] as const)));
  return nodes.flatMap((to) =>
    [...new Set(to.needs.map((need) => byId.get(need)))].flatMap((from) =>
      from === undefined || from.depth >= to.depth ? [] : [[from, to] as const],
    ),
  );
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}
