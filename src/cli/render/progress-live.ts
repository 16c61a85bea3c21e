import { stripVTControlCharacters } from 'node:util';
import type { Clock } from '../../core/clock.ts';
import type { ProgressEvent } from '../../core/progress.ts';
import { span } from '../../core/text.ts';
import { type Io, paintFor } from '../terminal.ts';
import { eventLines, type Progressed, type ProgressView, stepText, subject, Tally } from './progress.ts';

/** One operation in flight. Times are those of the run's clock, in ms. */
interface ProgressRow {
  readonly since: number;
  readonly last: Pick<Progressed, 'step' | 'detail' | 'untilMs' | 'code' | 'at'>;
}

const spinner = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const redrawMs = 100;

/**
 * The operations in flight, redrawn in place on a terminal. Ended operations scroll away above them.
 * The display is never higher than the screen: a terminal cannot redraw lines above its top.
 */
export function liveProgress(io: Io, clock: () => Pick<Clock, 'now'>): ProgressView {
  const { stderr } = io;
  const paint = paintFor(stderr);
  const tally = new Tally();
  // The rows show the other steps.
  const linesOf = eventLines(paint, tally, ({ step }) => step === 'failed');
  const rows = new Map<string, ProgressRow>();
  let drawn = 0;
  let frame = 0;
  let paused = false;
  let timer: NodeJS.Timeout | undefined;

  function event(event: ProgressEvent): void {
    if (event.type === 'started') {
      const { verb, key } = event.operation;
      rows.set(subject(verb, key), { since: event.at, last: { step: 'queued', detail: '', at: event.at } });
    }
    if (event.type === 'progress') {
      const name = subject(event.verb, event.key);
      rows.set(name, { since: rows.get(name)?.since ?? event.at, last: event });
    }
    if (event.type === 'ended') rows.delete(subject(event.result.verb, event.result.key));
    draw(
      linesOf(event)
        .map((each) => `${each}\n`)
        .join(''),
    );
  }

  function line(text: string): void {
    draw(text.endsWith('\n') ? text : `${text}\n`);
  }

  /** One text, so that nothing flickers: it erases the old rows, and prints `above`, which stays, and the new rows. */
  function draw(above = ''): void {
    if (paused) {
      stderr.write(above);
      return;
    }
    // A terminal that does not know its size reports 0.
    const head = tally.text === '' || rows.size === 0 ? [] : [paint('dim', `  ${tally.text} done`)];
    const room = Math.max(1, (stderr.rows || 24) - 2 - head.length);
    // Operations that the API works on come before those that wait for their turn.
    const sorted = [...rows].sort(
      ([, a], [, b]) => Number(a.last.step === 'queued') - Number(b.last.step === 'queued'),
    );
    const visible = sorted.slice(0, sorted.length > room ? room - 1 : room).map(rowText);
    if (sorted.length > visible.length)
      visible.push(paint('dim', `  … ${sorted.length - visible.length} more`));
    visible.unshift(...head);
    stderr.write(`${erasure()}${above}${visible.map((row) => `${row}\n`).join('')}`);
    drawn = visible.length;
    timer ??= setInterval(tick, redrawMs).unref();
    if (rows.size === 0) halt();
  }

  function rowText([name, { since, last }]: [string, ProgressRow]): string {
    const now = clock().now();
    const mark =
      last.step === 'queued' ? paint('dim', '·') : paint('cyan', spinner[frame % spinner.length] ?? '');
    const text = stripVTControlCharacters(` ${name}  ${stepText(last, now)}`);
    const duration = `  ${span(Math.max(0, now - since))}`;
    // A wrapped line would be counted and erased as one row, so lines are cut. The duration is never cut.
    const room = Math.max(10, (stderr.columns || 80) - 2 - duration.length);
    const cut = [...text].length > room ? `${[...text].slice(0, room - 1).join('')}…` : text;
    return `${mark}${cut}${duration}`;
  }

  function erasure(): string {
    return drawn === 0 ? '' : `\u001b[${drawn}A\u001b[J`;
  }

  function erase(): void {
    stderr.write(erasure());
    drawn = 0;
  }

  function tick(): void {
    frame += 1;
    draw();
  }

  function halt(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    event,
    line,
    pause: () => {
      erase();
      halt();
      paused = true;
    },
    resume: () => {
      paused = false;
      draw();
    },
    end: () => {
      erase();
      rows.clear();
      halt();
    },
  };
}
