import { type Bar, clock, inOrder, named } from '../../view/timeline.ts';

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
