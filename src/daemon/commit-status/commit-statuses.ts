import type { Transport } from '../../core/transport.ts';
import { answerOf, failureText, waitToRetry } from '../outgoing.ts';
import type { DaemonDeps } from '../ports.ts';
import { type CommitStatus, isAlreadySet, type StatusTarget, statusRequest } from './forge.ts';

/** Changes within this time are sent as one status. Real ms. */
const gatherMs = 500;
/** Answers that another try does not change. */
const final: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 410, 422]);
/** So many commits are remembered, newest last. */
const mostCommits = 100;

export interface CommitStatusesOptions extends Pick<DaemonDeps, 'clock' | 'log'> {
  readonly target: StatusTarget;
  /** The statuses of the commits in force. Empty while there is none, or while another replica reports them. */
  readonly current: () => readonly CommitStatus[];
  readonly transport: Transport;
}

/**
 * Sends the statuses of commits to the forge. It runs separately from all other work, so that a forge that does not answer
 * delays no reconciliation.
 */
export class CommitStatuses {
  readonly #options: CommitStatusesOptions;
  /** By commit, the last status that was sent or given up. */
  readonly #last = new Map<string, CommitStatus>();
  #isRunning = false;
  #hasChanged = false;
  #isFailing = false;

  constructor(options: CommitStatusesOptions) {
    this.#options = options;
  }

  /** Call this after any change of the daemon. */
  update(): void {
    this.#hasChanged = true;
    if (!this.#isRunning) void this.#run();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { clock, current } = this.#options;
    this.#isRunning = true;
    while (this.#hasChanged) {
      await clock.sleep(gatherMs);
      this.#hasChanged = false;
      for (const status of current()) if (this.#isDue(status)) await this.#sendUntilDone(status);
    }
    this.#isRunning = false;
  }

  /** A change of the project after a success is no result of the commit. */
  #isDue({ commit, state, text }: CommitStatus): boolean {
    const before = this.#last.get(commit);
    return (
      before === undefined || (before.state !== 'success' && (before.state !== state || before.text !== text))
    );
  }

  /** Ends early if a newer status takes the place of this one. */
  async #sendUntilDone(status: CommitStatus): Promise<void> {
    const { clock, current } = this.#options;
    const isCurrent = ({ commit, state, text }: CommitStatus) =>
      commit === status.commit && state === status.state && text === status.text;
    for (let attempt = 1; await this.#mayHelpAgain(status); attempt += 1) {
      // After the last attempt, only the next status is sent.
      if (!(await waitToRetry(clock, attempt))) break;
      if (current().some(isCurrent)) continue;
      this.#hasChanged = true;
      return;
    }
    this.#last.delete(status.commit);
    this.#last.set(status.commit, status);
    const [oldest = ''] = this.#last.keys();
    if (this.#last.size > mostCommits) this.#last.delete(oldest);
  }

  /** Sends the status. Returns whether it did not arrive, and another try may help. */
  async #mayHelpAgain(status: CommitStatus): Promise<boolean> {
    const { target, transport, log } = this.#options;
    const { forge } = target;
    const { commit } = status;
    const answer = await answerOf(transport, statusRequest(target, status));
    if (typeof answer === 'number' && (answer < 300 || isAlreadySet(target, status, answer))) {
      if (this.#isFailing) log.info({ forge, commit }, 'commit status sent again');
      this.#isFailing = false;
      return false;
    }
    // The daemon has closed its connections: the next start sends the status.
    if (answer === 'CLOSED') return false;
    const reason = failureText(answer);
    // The first failure is reported. Until a status arrives, further failures are details.
    log[this.#isFailing ? 'debug' : 'warn']({ forge, commit, reason }, 'commit status not sent');
    this.#isFailing = true;
    return typeof answer !== 'number' || !final.has(answer);
  }
}
