import type { ProgressEvent } from '../../core/progress.ts';
import { type Io, paintFor } from '../terminal.ts';
import { warningLines } from './plan-text.ts';
import {
  endLine,
  type Progressed,
  type ProgressView,
  patienceOf,
  reportsOf,
  stepText,
  subject,
  Tally,
} from './progress.ts';

/** Each start, wait and end of an operation as a line on standard error: for logs, pipes and CI. */
export function plainProgress(io: Io): ProgressView {
  const paint = paintFor(io.stderr, io);
  const isNew = reportsOf();
  const patience = patienceOf();
  const tally = new Tally();
  const line = (text: string) => void io.stderr.write(text.endsWith('\n') ? text : `${text}\n`);
  /** The last line of each operation: first that it was sent, then the reason of its wait. */
  const told = new Map<string, string>();
  const sent = new Set<string>();

  function event(event: ProgressEvent): void {
    tally.count(event);
    switch (event.type) {
      case 'planned':
      case 'started':
        return;
      case 'progress': {
        const name = subject(event.verb, event.key);
        if (!isTold(event)) return;
        const what = event.step === 'sent' ? event.step : event.detail;
        if (told.get(name) === what) return;
        told.set(name, what);
        const again = event.step === 'sent' && sent.has(name) ? ' again' : '';
        if (event.step === 'sent') sent.add(name);
        line(`  ${name}: ${stepText(event, event.at)}${again}`);
        const bound = patience(event);
        if (bound !== undefined) line(`  ${bound}`);
        return;
      }
      case 'ended':
        if (isNew(event.result)) line(endLine(event.result, paint, tally));
        return;
      case 'warning':
        for (const each of warningLines(event.warning, paint)) line(each);
        return;
    }
  }

  return { event, line, pause: () => {}, resume: () => {}, end: () => {} };
}

/** A log shows each check that takes longer than this, in ms. */
const longCheckMs = 2 * 60_000;

function isTold({ step, at, untilMs = at }: Progressed): boolean {
  if (step === 'checking') return untilMs - at > longCheckMs;
  return step === 'sent' || step === 'failed' || step === 'waiting';
}
