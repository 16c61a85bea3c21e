import { z } from 'zod';
import { chatText, escapeUnseen, escapeUnseenIn } from '../../core/text.ts';
import type { Transport } from '../../core/transport.ts';
import { endingOf, sentenceOf } from '../../view/condition.ts';
import { answerOf, failureText, waitToRetry } from '../outgoing.ts';
import type { DaemonDeps } from '../ports.ts';
import { type Notification, titles } from './notification.ts';

/** More than so many waiting: the oldest are dropped, and counted. */
const mostWaiting = 100;
const mostTextCharacters = 3_000;

/** The destination of notifications. */
export interface Receiver {
  /** `json`: the notification unchanged. `slack`: a text that Slack and compatible programs show. */
  readonly form: 'json' | 'slack';
  /** A secret in itself: it is in no log. */
  readonly url: () => string;
}

export interface NotifierOptions extends Pick<DaemonDeps, 'clock' | 'log'> {
  readonly receivers: readonly Receiver[];
  readonly transport: Transport;
  readonly onResult: (result: 'sent' | 'failed') => void;
  /** The project's name, once it is known. */
  readonly nameOf: (project: number) => string | undefined;
  /** The address at which operators reach the status page. */
  readonly pageUrl?: string | undefined;
}

/**
 * Notifies operators of changes, once each. Notifications run separately from all other work: a slow or dead receiver
 * delays nothing.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  /** The content of the last notification about each subject, which begins with the id of its project. */
  readonly #notified = new Map<string, string>();
  /** The bodies that wait, the oldest first. */
  readonly #waiting: ReadonlyMap<Receiver, string[]>;

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#waiting = new Map(options.receivers.map((each) => [each, []]));
  }

  /** Sends a notification, unless the last notification about the same subject had the same content. */
  notify(notification: Notification): void {
    // Progress is normal operation.
    if (notification.event === 'condition' && endingOf(notification.condition) === 'progress') return;
    const subject = `${notification.project} ${subjects[notification.event] ?? notification.event}`;
    const before = this.#notified.get(subject);
    const at = new Date(this.#options.clock.now()).toISOString();
    if (notification.event === 'condition') {
      this.#notifyCondition(notification, subject, at);
      return;
    }
    const { event, detail } = notification;
    if (before === detail && event !== 'drift' && event !== 'capacity_found') return;
    if (event === 'not_exposed' && before === undefined) return;
    this.#notified.set(subject, detail);
    this.#sendAll(notification, at);
  }

  /**
   * Sends one message for an incident, one for each further condition or command that no earlier message held, and one
   * for the end of the incident.
   */
  #notifyCondition(notification: ConditionNotification, subject: string, at: string): void {
    const before = readIncident(this.#notified.get(subject));
    if (notification.condition === 'converged') {
      this.#notified.set(subject, 'converged');
      // A healthy start is no reason to wake an operator.
      if (before !== undefined) this.#sendAll(notification, at, before.since);
      return;
    }
    const { incident, isNew } = continued(before, notification, at);
    this.#notified.set(subject, JSON.stringify(incident));
    if (isNew) this.#sendAll(notification, at, incident.since);
  }

  /** @param since when the incident began */
  #sendAll(notification: Notification, at: string, since?: string): void {
    const { nameOf, pageUrl } = this.#options;
    const { project, ...rest } = notification;
    const given = nameOf(project);
    const name = given && escapeUnseen(given);
    const url = pageUrl === undefined ? undefined : project === 0 ? pageUrl : `${pageUrl}?project=${project}`;
    const json = {
      ...{ format_version: 1, source: 'vdcsync', at, project, project_name: name ?? null, ...rest },
      ...('remedies' in rest ? { remedies: escapeUnseenIn(rest.remedies) } : {}),
      ...{ incident: since && `${project}-${since}`, url },
    };
    for (const receiver of this.#waiting.keys()) {
      const body = receiver.form === 'json' ? json : { text: slackText(notification, name, url) };
      this.#send(receiver, JSON.stringify(body));
    }
  }

  /** The last notifications about a project, by subject. */
  notifiedOf(project: number): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#notified].filter(([subject]) => subject.startsWith(`${project} `)));
  }

  /**
   * Takes over the notifications that another process has already sent about a project, so that they are not repeated.
   */
  recall(notified: Readonly<Record<string, string>>): void {
    for (const [subject, content] of Object.entries(notified)) this.#notified.set(subject, content);
  }

  #send(receiver: Receiver, body: string): void {
    const queue = this.#waiting.get(receiver) ?? [];
    queue.push(body);
    if (queue.length > mostWaiting) {
      queue.splice(1, 1);
      this.#options.onResult('failed');
    }
    if (queue.length === 1) void this.#drain(receiver, queue);
  }

  /** Sends one message after the other, so that the newest message arrives last. Never rejects. */
  async #drain(receiver: Receiver, queue: string[]): Promise<void> {
    for (let [first] = queue; first !== undefined; [first] = queue) {
      const sent = await this.#tryToSend(receiver, first);
      this.#options.onResult(sent ? 'sent' : 'failed');
      queue.shift();
    }
  }

  async #tryToSend({ url, form }: Receiver, body: string): Promise<boolean> {
    const { transport, clock, log } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const headers = { 'content-type': 'application/json' };
      const answer = await answerOf(transport, { method: 'POST', url: url(), headers, body });
      if (typeof answer === 'number' && answer < 300) return true;
      log.warn({ reason: failureText(answer), attempt, sort: form }, 'notification failed');
      // A message that has not arrived by the last attempt is dropped. The next change sends the new state.
      if (!(await waitToRetry(clock, attempt))) return false;
    }
  }
}

/** Events with a common subject: one event ends the other, so that the same event can be reported again later. */
const subjects: Readonly<Partial<Record<Notification['event'], string>>> = {
  spec_broken: 'spec',
  returned: 'spec',
  spec_valid: 'spec',
  exposed: 'exposed',
  not_exposed: 'exposed',
};

type ConditionNotification = Extract<Notification, { readonly event: 'condition' }>;

/** The time from the first message about a project until it is converged again. */
const incidentSchema = z.object({
  since: z.string(),
  /** Those that messages have named. */
  conditions: z.array(z.string()).readonly(),
  /** The commands and differences of the last plan: one that ends and comes back is reported again. */
  open: z.array(z.string()).readonly(),
});

type ReportedIncident = z.infer<typeof incidentSchema>;

function readIncident(text: string | undefined): ReportedIncident | undefined {
  if (text === undefined || !text.startsWith('{')) return undefined;
  return incidentSchema.safeParse(JSON.parse(text)).data;
}

/**
 * Conditions that are read from a plan. The other conditions come from an error, and keep the commands of the last
 * plan.
 */
const planned: ReadonlySet<string> = new Set([
  'blocked',
  'awaiting_approval',
  'paused',
  'waiting',
  'suspended',
  'drifting',
]);

/** Reasons contain times and counts, so a changed reason alone does not cause a message. */
function continued(
  before: ReportedIncident | undefined,
  { condition, remedies, detail }: ConditionNotification,
  at: string,
) {
  const { since, conditions, open } = before ?? { since: at, conditions: [], open: [] };
  const ways = remedies.map(({ when: _text, ...remedy }) => JSON.stringify(remedy));
  const isPlanned = planned.has(condition);
  const lines = [...ways, ...(condition === 'drifting' ? detail.split('\n') : [])];
  return {
    incident: { since, conditions: [...new Set([...conditions, condition])], open: isPlanned ? lines : open },
    isNew: !conditions.includes(condition) || (isPlanned && lines.some((line) => !open.includes(line))),
  };
}

function slackText(notification: Notification, name: string | undefined, url: string | undefined): string {
  const end = url === undefined ? '' : `\n${url}`;
  const text = slackLines(notification, name)
    .filter((line) => line !== '')
    .join('\n')
    .slice(0, mostTextCharacters - end.length);
  return `${chatText(text)}${end}`;
}

function slackLines(notification: Notification, name: string | undefined): readonly string[] {
  const { project, event, detail } = notification;
  const own = name === undefined ? `project ${project}` : `${name} (${project})`;
  if (event === 'source' || event === 'rollout')
    return [project === 0 ? `vdcsync: ${detail}` : `vdcsync: ${own}: ${detail}`];
  const who = `vdcsync: ${project === 0 ? 'a project' : own}`;
  if (event === 'condition') {
    const { condition } = notification;
    return [`${who} ${sentenceOf(condition)}`, detail, ...notification.resolve.map((each) => `→ ${each}`)];
  }
  return [`${who} ${titles[event]}`, event === 'spec_valid' ? '' : detail];
}
