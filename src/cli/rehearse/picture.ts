import { span } from '../render/values.ts';
import { printable } from '../terminal.ts';
import type { Bar } from './calm-run.ts';

const width = 40;

/** Each operation as a bar on the time axis, in the order in which they began. */
export function barsText(bars: readonly Bar[]): string[] {
  const end = Math.max(1, ...bars.map(({ endMs }) => endMs));
  const labels = Math.max(0, ...bars.map(({ id }) => id.length));
  return inOrder(bars).map(({ id, startMs, endMs }) => {
    const from = Math.min(width - 1, Math.floor((startMs / end) * width));
    const length = Math.max(1, Math.round(((endMs - startMs) / end) * width));
    const bar = `${' '.repeat(from)}${'█'.repeat(Math.min(length, width - from))}`.padEnd(width);
    return `${named(id).padEnd(labels)} ▕${bar}▏ ${clock(startMs)} to ${clock(endMs)}`;
  });
}

const row = 22;
const left = 330;
const chart = 640;

/** The same as a picture: no script, no font of its own, readable in light and dark. */
export function barsSvg(bars: readonly Bar[], title: string): string {
  const end = Math.max(1, ...bars.map(({ endMs }) => endMs));
  const height = 70 + bars.length * row;
  const x = (ms: number) => left + (ms / end) * chart;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = x(part * end).toFixed(1);
    return `<line x1="${at}" y1="40" x2="${at}" y2="${height - 24}" class="tick"/><text x="${at}" y="${height - 8}" text-anchor="middle" class="dim">${span(part * end)}</text>`;
  });
  const rows = inOrder(bars).map(({ id, startMs, endMs, outcome }, at) => {
    const y = 44 + at * row;
    const length = Math.max(2, x(endMs) - x(startMs)).toFixed(1);
    const told = `${named(id)}: ${clock(startMs)} to ${clock(endMs)}, ${outcome}`;
    return `<text x="${left - 8}" y="${y + 14}" text-anchor="end">${escaped(named(id))}</text><rect x="${x(startMs).toFixed(1)}" y="${y + 3}" width="${length}" height="14" rx="3" class="${outcome === 'done' ? 'done' : 'other'}"><title>${escaped(told)}</title></rect>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + chart + 40} ${height}" role="img" aria-label="${escaped(title)}">
<style>
text { font: 12px system-ui, sans-serif; fill: #333 } .title { font-size: 15px; font-weight: 600 } .dim { fill: #777 }
.tick { stroke: #ccc } .done { fill: #2f81c9 } .other { fill: #d1493f }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .dim { fill: #999 } .tick { stroke: #444 } }
</style>
<text x="16" y="24" class="title">${escaped(title)}</text>
${[...ticks, ...rows].join('\n')}
</svg>
`;
}

function inOrder(bars: readonly Bar[]): Bar[] {
  return [...bars].sort((a, b) => a.startMs - b.startMs || a.endMs - b.endMs || (a.id < b.id ? -1 : 1));
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
