import { objectName } from '../../src/core/claims.ts';
import { partsOf } from '../../src/core/intent.ts';
import type { ProgressEvent } from '../../src/core/progress.ts';
import type { Intent, StateChange } from '../../src/core/state.ts';
import type { HttpResponse } from '../../src/core/transport.ts';
import { isReplayed } from './rules/answers.ts';

/** Kept of one scenario; the digest in `length` and the end of the story matter most. */
const mostLines = 50_000;

/** The events, one line each, in order. The same story gives the same lines. */
export class StoryTrace {
  /** Oldest first; of long runs only the latest are kept. */
  readonly lines: string[] = [];
  /** Lines ever added. */
  length = 0;

  add(elapsedMs: number, who: string, line: string): void {
    this.length += 1;
    this.lines.push(`${(elapsedMs / 1000).toFixed(1).padStart(9)}s ${who.padEnd(4)} ${line}`);
    if (this.lines.length > mostLines) this.lines.shift();
  }
}

/** A run's event as a line of the trace; most are none. */
export function eventLine(event: ProgressEvent): string | undefined {
  switch (event.type) {
    case 'planned': {
      const { operations, blocked } = event.plan;
      const plan = operations.map(({ id }) => id).join(' ');
      const held = blocked.map(({ key, verb, code }) => `${verb}:${key}(${code})`).join(' ');
      return `plan ${plan === '' ? 'nothing' : plan}${held === '' ? '' : ` · blocked ${held}`}`;
    }
    case 'ended': {
      const { verb, key, outcome, code, detail } = event.result;
      return `ended ${verb} ${key}: ${outcome} ${code ?? ''} ${detail ?? ''}`.trimEnd();
    }
    case 'warning':
      return `warning ${event.warning.code} ${event.warning.message}`;
    case 'started':
    case 'progress':
      return undefined;
  }
}

/** The marks of a write behind its new phase. */
export function marksOf(after: Intent): string {
  const { unconfirmed, notSeenAt, blocked } = partsOf(after);
  return [
    unconfirmed === undefined ? '' : '?',
    notSeenAt === undefined ? '' : ' not seen',
    blocked === undefined ? '' : ` ${blocked.code}: ${blocked.reason}`,
  ].join('');
}

export function subjectOf(change: StateChange): string {
  switch (change.type) {
    case 'bind':
      return `${change.binding.key} = ${change.binding.id}`;
    case 'claim':
      return `${objectName(change.claim)}: ${change.claim.holder.is}`;
    case 'unclaim':
      return `${objectName(change.object)}: ${change.reason}`;
    case 'release':
    case 'next_incarnation':
    case 'proof':
      return change.key;
  }
}

export function answerLine(response: HttpResponse | undefined): string {
  return response === undefined
    ? 'no answer'
    : `${response.status}${isReplayed(response) ? ' replayed' : ''}`;
}
