import type { ProgressEvent } from '../../core/progress.ts';
import { type Io, paintFor, printable } from '../terminal.ts';
import { warningLine } from './plan-text.ts';
import { endLine, type ProgressView, stepWords, subject } from './progress.ts';
import { span } from './values.ts';

/** One line an event on standard error: for logs, pipes and CI. */
export function plainProgress(io: Io): ProgressView {
  const paint = paintFor(io.stderr);
  const line = (text: string) => void io.stderr.write(text.endsWith('\n') ? text : `${text}\n`);
  /** The API's task is polled often; a step is told once. */
  const told = new Map<string, string>();

  function event(event: ProgressEvent): void {
    switch (event.type) {
      case 'planned':
      case 'started':
        return;
      case 'progress': {
        const name = subject(event.verb, event.key);
        const detail = printable(event.detail);
        const text = `${stepWords[event.step]}${detail === '' ? '' : `: ${detail}`}`;
        if (told.get(name) === text || event.step === 'queued') return;
        told.set(name, text);
        const left = event.untilMs === undefined ? '' : ` (${span(Math.max(0, event.untilMs - event.at))})`;
        line(`  ${name}: ${text}${left}`);
        return;
      }
      case 'ended':
        line(endLine(event.result, paint));
        return;
      case 'warning':
        line(warningLine(event.warning, paint));
        return;
    }
  }

  return { event, line, pause: () => {}, resume: () => {}, end: () => {} };
}
