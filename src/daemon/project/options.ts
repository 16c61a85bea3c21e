import type { ProgressEvent } from '../../core/progress.ts';
import type { Notification } from '../notifications/notification.ts';
import type { DaemonDeps, Mode } from '../ports.ts';
import type { ReconciliationRecord } from './facts.ts';
import type { Worker } from './turn-record.ts';

export interface ProjectOptions {
  readonly deps: DaemonDeps;
  readonly id: number;
  readonly mode: Mode;
  readonly intervalMs: number;
  /** Intents and journal lines that ended longer ago are deleted. */
  readonly keepMs: number;
  readonly worker: Worker;
  readonly onNotification: (notification: Notification) => void;
  readonly onEvent: (event: ProgressEvent) => void;
  readonly onReconciliation: (reconciliation: ReconciliationRecord) => void;
}
