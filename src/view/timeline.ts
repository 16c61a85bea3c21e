import { firewallKey } from '../core/keys.ts';
import { factsOf } from '../core/kind-facts.ts';
import { cut, linesText, svgText } from '../core/text.ts';
import type { ProjectView } from './project-view.ts';

/** One operation on the time axis, in ms from the start of the axis. */
export interface Bar extends TimeSpan {
  readonly id: string;
  /** `undefined`: it has not ended. */
  readonly outcome: string | undefined;
  /** The parts of the bar in which the operation waits: for its turn, for the request limit, or before another attempt. */
  readonly waits: readonly TimeSpan[];
  /** Of a firewall: the time since which its new server has had a public address without a firewall. */
  readonly exposed?: TimeSpan;
}

/** In ms from the start of the axis. */
export interface TimeSpan {
  readonly startMs: number;
  readonly endMs: number;
}

type Write = ProjectView['writes'][number];

/** Writes with a longer pause between them belong to different runs. */
const mostPauseMs = 10 * 60_000;

/** Some writes without a longer pause between them. */
export interface WriteRun<Any> {
  /** Wall ms of its first write. */
  readonly startMs: number;
  readonly writes: readonly Any[];
}

/** The runs that these writes belong to, newest first. @param timesOf wall ms of its start and its end */
export function runsOf<Any>(
  writes: readonly Any[],
  timesOf: (write: Any) => readonly [number, number],
): readonly WriteRun<Any>[] {
  const runs: { startMs: number; writes: Any[] }[] = [];
  const lastFirst = writes.toSorted((one, other) => timesOf(other)[1] - timesOf(one)[1]);
  for (const write of lastFirst) {
    const [from, to] = timesOf(write);
    const run = runs.at(-1);
    if (run === undefined || to < run.startMs - mostPauseMs) runs.push({ startMs: from, writes: [write] });
    else {
      run.startMs = Math.min(run.startMs, from);
      run.writes.push(write);
    }
  }
  return runs;
}

/**
 * The writes of the last run as bars. A bar begins when the write is ready.
 *
 * @param now wall ms, for the writes that have not ended
 */
export function timelineOf(writes: readonly Write[], now: number): readonly Bar[] {
  const timed = writes.map((write) => ({
    ...write,
    from: Date.parse(write.queued_at ?? write.since),
    to: write.closed_at === null ? Math.max(now, Date.parse(write.since)) : Date.parse(write.closed_at),
  }));
  const { startMs: start, writes: run } = runsOf(timed, ({ from, to }) => [from, to])[0] ?? {
    startMs: 0,
    writes: [],
  };
  const span = (from: number, to: number) => ({ startMs: from - start, endMs: to - start });
  return run.map(({ key, verb, kind, outcome, from, to, since, last_sent_at: sent }) => {
    const again = Date.parse(sent ?? since);
    const isFirst =
      factsOf(kind).endsExposure === true && !run.some((each) => each.key === key && each.to < to);
    const opened = run.find((each) => isFirst && each.public && key === firewallKey(each.key))?.to ?? to;
    return {
      ...span(from, to),
      id: `${verb}:${key}`,
      outcome: outcome ?? undefined,
      waits: again > from ? [span(from, again)] : [],
      ...(opened < to ? { exposed: span(opened, to) } : {}),
    };
  });
}

const row = 24;
const left = 396;
const chart = 560;
/** Width of a letter, in pixels. */
const letter = 7;

/** The meaning of the horizontal axis, and of the colours. */
export interface BarAxis {
  ticks(end: number): readonly (readonly [ms: number, label: string])[];
  readonly legend: readonly (readonly [sort: string, text: string])[];
  /** The tooltip of a bar. */
  said(bar: Bar): string;
}

/** The bars as a picture of 1,000 pixels: no script, no font of its own, readable in light and dark. */
export function barsSvg(bars: readonly Bar[], title: string, axis?: BarAxis): string {
  return barsPicture(
    bars,
    title,
    `<style>
text { font: 12.5px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 15px; font-weight: 600 } .dim { fill: #59636e }
.tick { stroke: #d1d9e0 } .works { fill: #2f81c9 } .waits { fill: #e8b04b } .other { fill: #cf222e } .open { fill: #cf222e }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .dim { fill: #9198a1 } .tick { stroke: #3d444d } .waits { fill: #a87a1e } }
</style>`,
    axis,
  );
}

/** @param style that of the picture alone; a page has its own. @param axis that of a run, unless another one is given */
export function barsPicture(bars: readonly Bar[], title: string, style = '', axis = runAxis(bars)): string {
  const end = Math.max(1, ...bars.map(({ endMs }) => endMs));
  const height = 94 + bars.length * row;
  const x = (ms: number) => left + (ms / end) * chart;
  const ticks = axis.ticks(end).map(([ms, label]) => {
    const at = x(ms).toFixed(1);
    return `<line x1="${at}" y1="64" x2="${at}" y2="${height - 24}" class="tick"/><text x="${at}" y="${height - 8}" text-anchor="middle" class="dim">${label}</text>`;
  });
  const rect = ({ startMs, endMs }: TimeSpan, y: number, sort: string, height = 15) =>
    `<rect x="${x(startMs).toFixed(1)}" y="${y}" width="${Math.max(2, x(endMs) - x(startMs)).toFixed(1)}" height="${height}" rx="3" class="${sort}"/>`;
  const rows = inOrder(bars).map((bar, at) => {
    const { id, outcome, waits, exposed } = bar;
    const y = 66 + at * row;
    const parts = [
      rect(bar, y + 3, sortOf(outcome)),
      ...waits.map((each) => rect(each, y + 3, 'waits')),
      ...(exposed === undefined ? [] : [rect(exposed, y + 19, 'open', 4)]),
    ];
    return `<g><title>${svgText(axis.said(bar))}</title><text x="${left - 10}" y="${y + 15}" text-anchor="end">${svgText(cut(named(id), mostLetters))}</text>${parts.join('')}</g>`;
  });
  let nextX = 16;
  const legend = axis.legend.map(([sort = '', text = '']) => {
    const at = nextX;
    nextX += 44 + text.length * letter;
    return `<rect x="${at}" y="36" width="14" height="14" rx="3" class="${sort}"/><text x="${at + 20}" y="48" class="dim">${text}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + chart + 50} ${height}" role="img" aria-label="${svgText(title)}">
${style}
<text x="16" y="24" class="title">${svgText(title)}</text>
${[...legend, ...ticks, ...rows].join('\n')}
</svg>
`;
}

function runAxis(bars: readonly Bar[]): BarAxis {
  const legend: BarAxis['legend'] = [
    ['works', 'the API works'],
    ...(bars.some(({ waits }) => waits.length > 0)
      ? [['waits', 'vdcsync waits: turn, poll, request limit or retry'] as const]
      : []),
    ...(bars.some(({ outcome }) => sortOf(outcome) === 'other') ? [['other', 'not done'] as const] : []),
    ...(bars.some(({ exposed }) => exposed !== undefined)
      ? [['open', 'the server is exposed'] as const]
      : []),
  ];
  return {
    ticks: (end) => ticksTo(end).map((ms) => [ms, clock(ms)] as const),
    legend,
    said: ({ id, startMs, endMs, outcome }) =>
      `${named(id)}: ${clock(startMs)} to ${clock(endMs)}, ${outcome ?? 'in progress'}`,
  };
}

/** In seconds. */
const tickSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

/** Round times from 0 to the end, at most 7 of them. */
function ticksTo(end: number): readonly number[] {
  const least = end / 6_000;
  const step = 1000 * (tickSteps.find((each) => each >= least) ?? Math.ceil(least / 3600) * 3600);
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, at) => at * step);
}

/** The most letters of a label. The tooltip has the full text. */
const mostLetters = 62;

/** In the order in which they began. */
export function inOrder(bars: readonly Bar[]): Bar[] {
  return [...bars].sort(
    (a, b) => a.startMs - b.startMs || a.endMs - b.endMs || a.id.localeCompare(b.id, 'en', { numeric: true }),
  );
}

/** The operation as a text, without control characters. */
export function named(id: string): string {
  return linesText([id.replace(':', ' ')]);
}

/** `1:05`, or `2:01:05` with hours. */
export function clock(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const two = (count: number) => String(count % 60).padStart(2, '0');
  return `${minutes < 60 ? minutes : `${Math.floor(minutes / 60)}:${two(minutes)}`}:${two(seconds)}`;
}

function sortOf(outcome: string | undefined): string {
  return outcome === undefined || outcome === 'done' || outcome === 'found' ? 'works' : 'other';
}
