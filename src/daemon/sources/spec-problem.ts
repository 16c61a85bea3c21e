import { type Diagnostic, formatDiagnostic } from '../../core/errors.ts';
import { linesText } from '../../core/text.ts';
import type { Notification } from '../notifications/notification.ts';
import type { DaemonLogger } from '../ports.ts';

const messages = {
  spec_broken: 'spec invalid',
  returned: 'returned to the last spec that converged',
} as const;

export interface SpecProblemOptions {
  /** 0 if the project of the spec is not known yet. */
  readonly project: number;
  readonly log: DaemonLogger;
  readonly onNotification: (notification: Notification) => void;
  /** Wall ms. */
  readonly now: () => number;
}

/** The problems of the newest spec, while the last valid spec stays in force. Their start and end are reported once. */
export class SpecProblem {
  readonly #options: SpecProblemOptions;
  #diagnostics: readonly Diagnostic[] = [];
  #since: number | undefined;

  constructor(options: SpecProblemOptions) {
    this.#options = options;
  }

  /** Empty if the newest spec can be used. */
  list(): readonly Diagnostic[] {
    return this.#diagnostics;
  }

  /** When the spec broke. Further broken specs do not change the time. `undefined` if the newest spec can be used. */
  get since(): number | undefined {
    return this.#since;
  }

  /** @param event `returned`: the spec is valid, and was refused */
  begin(diagnostics: readonly Diagnostic[], event: 'spec_broken' | 'returned' = 'spec_broken'): void {
    if (JSON.stringify(diagnostics) === JSON.stringify(this.#diagnostics)) return;
    const { project, log, onNotification, now } = this.#options;
    this.#diagnostics = diagnostics;
    this.#since ??= now();
    for (const { position, message } of diagnostics) {
      log.error({ ...position, reason: message }, messages[event]);
    }
    const detail = linesText(diagnostics.map(formatDiagnostic));
    onNotification({ project, event, detail });
  }

  /** The newest spec is good. Its content may equal an earlier one. */
  end(commit: string | undefined): void {
    if (this.#diagnostics.length === 0) return;
    const { project, log, onNotification } = this.#options;
    this.#diagnostics = [];
    this.#since = undefined;
    log.info({ commit }, 'spec valid again');
    onNotification({ project, event: 'spec_valid', detail: 'the spec can be used again' });
  }
}
