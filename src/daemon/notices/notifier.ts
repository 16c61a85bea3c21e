import type { Clock } from '../../core/clock.ts';
import type { Transport } from '../../core/transport.ts';
import type { DaemonLogger } from '../ports.ts';
import type { Notice } from './notice.ts';

/** One send may take so long, in real ms. */
const timeoutMs = 10_000;
/** Tried again after 5, 10, 20 … s; what has not got through by then is told by the next change. */
const retry = { firstMs: 5_000, times: 6 } as const;
/** More than so many waiting: the oldest are dropped, and counted. */
const mostWaiting = 100;
const mostTextCharacters = 3_000;

/** Where notices go. */
export interface Receiver {
  /** `json`: the notice as it is. `slack`: a text that Slack and its likes show. */
  readonly form: 'json' | 'slack';
  /** A secret in itself: it is in no log. */
  readonly url: () => string;
}

export interface NotifierOptions {
  readonly receivers: readonly Receiver[];
  readonly transport: Transport;
  /** Real time. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
  readonly onResult: (result: 'sent' | 'failed') => void;
}

/** Conditions that come and go by themselves in a healthy life: told only after another one was. */
const ordinary: ReadonlySet<string> = new Set(['starting', 'converging']);

/**
 * Tells people of changes, once each, beside everything else: a receiver that is slow or
 * gone holds nothing up.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #told = new Map<string, string>();
  readonly #waiting: { readonly receiver: Receiver; readonly body: string }[][];

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#waiting = options.receivers.map(() => []);
  }

  /** Takes a notice in; what was told last about the same thing is not told again. */
  tell(notice: Notice): void {
    if (notice.event === 'condition' && ordinary.has(notice.condition)) return;
    const subject = `${notice.project} ${subjects[notice.event] ?? notice.event}`;
    const content = contentOf(notice);
    const before = this.#told.get(subject);
    if (before === content && notice.event !== 'drift' && notice.event !== 'capacity_found') return;
    this.#told.set(subject, content);
    // A healthy start is nothing to wake anybody for.
    if (before === undefined && notice.event === 'condition' && notice.condition === 'converged') return;
    const at = new Date(this.#options.clock.now()).toISOString();
    this.#options.receivers.forEach((receiver, index) => {
      this.#send(index, receiver, bodyOf(notice, receiver.form, at));
    });
  }

  /** What was told last of a project, by subject. */
  toldOf(project: number): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#told].filter(([subject]) => subject.startsWith(`${project} `)));
  }

  /** Another process has told this of a project: it is not told again. */
  recall(told: Readonly<Record<string, string>>): void {
    for (const [subject, content] of Object.entries(told)) this.#told.set(subject, content);
  }

  #send(index: number, receiver: Receiver, body: string): void {
    const queue = this.#waiting[index] ?? [];
    queue.push({ receiver, body });
    if (queue.length > mostWaiting) {
      queue.splice(1, 1);
      this.#options.onResult('failed');
    }
    if (queue.length === 1) void this.#drain(queue);
  }

  /** One after the other, so that what was told last arrives last. Never rejects. */
  async #drain(queue: { readonly receiver: Receiver; readonly body: string }[]): Promise<void> {
    for (let first = queue[0]; first !== undefined; first = queue[0]) {
      const sent = await this.#tryToSend(first.receiver, first.body);
      this.#options.onResult(sent ? 'sent' : 'failed');
      queue.shift();
    }
  }

  async #tryToSend({ url, form }: Receiver, body: string): Promise<boolean> {
    const { transport, clock, log } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const reason = await transport
        .send(
          { method: 'POST', url: url(), headers: { 'content-type': 'application/json' }, body },
          { timeoutMs },
        )
        .then(
          ({ status }) => (status < 300 ? undefined : `it answered ${status}`),
          (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : 'it failed'),
        );
      if (reason === undefined) return true;
      log.warn({ reason, attempt, sort: form }, 'a notification did not get through');
      if (attempt > retry.times) return false;
      await clock.sleep(retry.firstMs * 2 ** (attempt - 1));
    }
  }
}

/** What ends the other, so that the same again is news. */
const subjects: Readonly<Partial<Record<Notice['event'], string>>> = {
  spec_broken: 'spec',
  spec_valid: 'spec',
};

/** What makes a notice another one. Reasons hold times and counts, which are no news. */
function contentOf(notice: Notice): string {
  if (notice.event !== 'condition') return notice.detail;
  const { condition, resolve, detail } = notice;
  return [condition, ...[...resolve].sort(), condition === 'drifting' ? detail : ''].join('\n');
}

function bodyOf(notice: Notice, form: Receiver['form'], at: string): string {
  if (form === 'json') return JSON.stringify({ format_version: 1, source: 'vdcsync', at, ...notice });
  return JSON.stringify({ text: slackText(notice) });
}

const titles: Readonly<Record<Exclude<Notice['event'], 'condition' | 'source' | 'rollout'>, string>> = {
  drift: 'changed behind the file',
  capacity_found: 'found the graphics cards it waited for',
  spec_broken: 'has a spec that cannot be used; the last good one stays in force',
  spec_valid: 'has a spec that can be used again',
};

/** Slack reads `&`, `<` and `>` as markup, and so do those that copy it. */
function slackText(notice: Notice): string {
  return slackLines(notice)
    .filter((line) => line !== '')
    .join('\n')
    .slice(0, mostTextCharacters)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}

function slackLines(notice: Notice): readonly string[] {
  const { project, event, detail } = notice;
  if (event === 'source' || event === 'rollout') return [`vdcsync: ${detail}`];
  const who = `vdcsync: ${project === 0 ? 'a project' : `project ${project}`}`;
  if (event === 'condition') {
    return [`${who} is ${notice.condition}`, detail, ...notice.resolve.map((each) => `→ ${each}`)];
  }
  return [`${who} ${titles[event]}`, event === 'spec_valid' ? '' : detail];
}
