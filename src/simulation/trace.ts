import { objectName } from '../core/claims.ts';
import { partsOf } from '../core/intent.ts';
import type { ProgressEvent } from '../core/progress.ts';
import type { StateChange } from '../core/state.ts';
import type { StateWatch } from './durable.ts';
import type { Observer } from './observer.ts';

/** Kept of one scenario; the digest in `length` and the end of the story matter most. */
const mostLines = 50_000;

/** The events, one line each, in order. The same story gives the same lines. */
export class Trace {
  /** Oldest first; of long runs only the latest are kept. */
  readonly lines: string[] = [];
  /** Lines ever added. */
  length = 0;
  readonly #elapsedMs: () => number;

  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
  }

  add(who: string, line: string): void {
    this.length += 1;
    this.lines.push(`${(this.#elapsedMs() / 1000).toFixed(1).padStart(9)}s ${who.padEnd(4)} ${line}`);
    if (this.lines.length > mostLines) this.lines.shift();
  }
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
export function traced(watch: StateWatch, trace: Trace, name: string, observer: Observer): StateWatch {
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
