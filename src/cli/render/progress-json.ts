import { planJson } from '../../core/plan.ts';
import type { ProgressEvent } from '../../core/progress.ts';
import type { Io } from '../terminal.ts';
import { type ProgressView, Tally } from './progress.ts';
import { reportJson, resultJson } from './report.ts';

/** One JSON object a line on standard output, the summary last. */
export function jsonProgress(io: Io): ProgressView {
  const tally = new Tally();
  const put = (value: object) => void io.stdout.write(`${JSON.stringify(value)}\n`);

  function event(event: ProgressEvent): void {
    const at = new Date(event.at).toISOString();
    tally.count(event);
    switch (event.type) {
      case 'planned':
        put({ type: 'planned', at, round: event.round, plan: planJson(event.plan) });
        return;
      case 'started': {
        const { id, key, kind, verb } = event.operation;
        put({ type: 'started', at, id, key, kind, verb });
        return;
      }
      case 'progress': {
        const { key, verb, step, detail, untilMs, deadlineMs } = event;
        const until = untilMs === undefined ? {} : { until: new Date(untilMs).toISOString() };
        const deadline = deadlineMs === undefined ? {} : { deadline: new Date(deadlineMs).toISOString() };
        put({ type: 'progress', at, id: `${verb}:${key}`, key, verb, step, detail, ...until, ...deadline });
        return;
      }
      case 'ended':
        put({ type: 'ended', at, ...resultJson(event.result), done: tally.done, total: tally.total });
        return;
      case 'warning':
        put({ type: 'warning', at, ...event.warning });
        return;
    }
  }

  return {
    event,
    line: (text) => void io.stderr.write(text.endsWith('\n') ? text : `${text}\n`),
    pause: () => {},
    resume: () => {},
    end: () => {},
    summary: (report, exitCode, destroy) =>
      put({ type: 'summary', ...reportJson(report, destroy), exit_code: exitCode }),
  };
}
