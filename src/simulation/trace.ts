import { objectName } from '../core/claims.ts';
import { partsOf } from '../core/intent.ts';
import type { ProgressEvent } from '../core/progress.ts';
import type { StateChange } from '../core/state.ts';
import type { Observer } from './observer.ts';
import type { Rules } from './rules/rules.ts';

/** The events, one line each, in order. The same story gives the same lines. */
export interface Trace {
  add(who: string, line: string): void;
  /** Oldest first; of long runs only the latest are kept. */
  readonly lines: readonly string[];
  /** Lines ever added. */
  readonly length: number;
}

/** Kept of one scenario; the digest in `length` and the end of the story matter most. */
const mostLines = 50_000;

export function createTrace(elapsedMs: () => number): Trace {
  const lines: string[] = [];
  let length = 0;
  return {
    lines,
    get length() {
      return length;
    },
    add(who, line) {
      length += 1;
      lines.push(`${(elapsedMs() / 1000).toFixed(1).padStart(9)}s ${who.padEnd(4)} ${line}`);
      if (lines.length > mostLines) lines.shift();
    },
  };
}

/** A run's event as a line of the trace; most are none. */
export function traceLineOf(event: ProgressEvent): string | undefined {
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

/** Each durable change of an intent or binding is one line. */
export function traced(
  watch: ReturnType<Rules['watch']>,
  trace: Trace,
  name: string,
  observer: Observer,
): ReturnType<Rules['watch']> {
  return {
    began(intent) {
      trace.add(name, `begin ${intent.verb} ${intent.key} #${intent.incarnation}/${intent.attempt}`);
      watch.began(intent);
    },
    updated(before, after) {
      const { unconfirmed, notSeenAt, blocked } = partsOf(after);
      const marks = [
        unconfirmed === undefined ? '' : '?',
        notSeenAt === undefined ? '' : ' not seen',
        blocked === undefined ? '' : ` ${blocked.code}: ${blocked.reason}`,
      ];
      trace.add(name, `${before.key}: ${before.phase} → ${after.phase}${marks.join('')}`);
      if (blocked?.code === 'key_too_old') observer.keyTooOld(after.request.name);
      watch.updated(before, after);
    },
    closed(before, intent) {
      const { outcome, because } = partsOf(intent);
      trace.add(name, `${intent.key}: closed ${outcome} ${intent.detail}`.trimEnd());
      if (because === 'key_too_old') observer.keyTooOld(intent.request.name);
      watch.closed(before, intent);
    },
    changed(change, intent) {
      trace.add(name, `${change.type} ${subjectOf(change)}`);
      watch.changed(change, intent);
    },
  };
}

function subjectOf(change: StateChange): string {
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
