import { span } from '../render/values.ts';
import { printable } from '../terminal.ts';
import type { Bar } from './calm-run.ts';

const width = 40;

/** Each operation as a bar on the time axis, in the order in which they began; `░` waits, `█` works. */
export function barsText(bars: readonly Bar[]): string[] {
  const end = Math.max(1, ...bars.map(({ endMs }) => endMs));
  const labels = Math.max(0, ...bars.map(({ id }) => id.length));
  return inOrder(bars).map((bar) => {
    const { id, startMs, endMs } = bar;
    const from = Math.min(width - 1, Math.floor((startMs / end) * width));
    const length = Math.min(width - from, Math.max(1, Math.round(((endMs - startMs) / end) * width)));
    const cells = Array.from({ length }, (_, at) => {
      const middle = startMs + ((at + 0.5) / length) * (endMs - startMs);
      return bar.waits.some((span) => span.startMs <= middle && middle < span.endMs) ? '░' : '█';
    });
    const text = `${' '.repeat(from)}${cells.join('')}`.padEnd(width);
    return `${named(id).padEnd(labels)} ▕${text}▏ ${clock(startMs)} to ${clock(endMs)}`;
  });
}

const row = 24;
const left = 396;
const chart = 560;
/** Width of a letter, in pixels. */
const letter = 7;

/** The same as a picture of 1,000 pixels: no script, no font of its own, readable in light and dark. */
export function barsSvg(bars: readonly Bar[], title: string): string {
  const end = Math.max(1, ...bars.map(({ endMs }) => endMs));
  const height = 94 + bars.length * row;
  const x = (ms: number) => left + (ms / end) * chart;
  const ticks = ticksTo(end).map((ms) => {
    const at = x(ms).toFixed(1);
    return `<line x1="${at}" y1="64" x2="${at}" y2="${height - 24}" class="tick"/><text x="${at}" y="${height - 8}" text-anchor="middle" class="dim">${ms === 0 ? '0' : span(ms)}</text>`;
  });
  const rect = (startMs: number, endMs: number, y: number, sort: string) =>
    `<rect x="${x(startMs).toFixed(1)}" y="${y + 3}" width="${Math.max(2, x(endMs) - x(startMs)).toFixed(1)}" height="15" rx="3" class="${sort}"/>`;
  const rows = inOrder(bars).map(({ id, startMs, endMs, outcome, waits }, at) => {
    const y = 66 + at * row;
    const said = `${named(id)}: ${clock(startMs)} to ${clock(endMs)}, ${outcome}`;
    const parts = [
      rect(startMs, endMs, y, outcome === 'done' ? 'works' : 'other'),
      ...waits.map((each) => rect(each.startMs, each.endMs, y, 'waits')),
    ];
    return `<g><title>${escaped(said)}</title><text x="${left - 10}" y="${y + 15}" text-anchor="end">${escaped(cut(named(id)))}</text>${parts.join('')}</g>`;
  });
  const sorts = [
    ['works', 'the API works'],
    ['waits', 'vdcsync waits: next poll, request limit or retry'],
    ...(bars.some(({ outcome }) => outcome !== 'done') ? [['other', 'not done']] : []),
  ] as const;
  let nextX = left;
  const legend = sorts.map(([sort = '', text = '']) => {
    const at = nextX;
    nextX += 44 + text.length * letter;
    return `<rect x="${at}" y="36" width="14" height="14" rx="3" class="${sort}"/><text x="${at + 20}" y="48" class="dim">${text}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + chart + 50} ${height}" role="img" aria-label="${escaped(title)}">
<style>
text { font: 12.5px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 15px; font-weight: 600 } .dim { fill: #59636e }
.tick { stroke: #d1d9e0 } .works { fill: #2f81c9 } .waits { fill: #e8b04b } .other { fill: #cf222e }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .dim { fill: #9198a1 } .tick { stroke: #3d444d } .waits { fill: #a87a1e } }
</style>
<text x="16" y="24" class="title">${escaped(title)}</text>
${[...legend, ...ticks, ...rows].join('\n')}
</svg>
`;
}

const tickSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600].map((seconds) => seconds * 1000);

/** Round times from 0 to the end, at most 7 of them. */
function ticksTo(end: number): readonly number[] {
  const step = tickSteps.find((each) => end / each <= 6) ?? Math.ceil(end / 6 / 3_600_000) * 3_600_000;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, at) => at * step);
}

/** The most letters of a label. The tooltip has the full text. */
const mostLetters = 62;

function cut(text: string): string {
  return text.length > mostLetters ? `${text.slice(0, mostLetters - 1)}…` : text;
}

function inOrder(bars: readonly Bar[]): Bar[] {
  return [...bars].sort(
    (a, b) => a.startMs - b.startMs || a.endMs - b.endMs || a.id.localeCompare(b.id, 'en', { numeric: true }),
  );
}

function named(id: string): string {
  return printable(id.replace(':', ' '));
}

/** `1:05` */
function clock(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}
