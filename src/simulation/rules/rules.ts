import { partsOf } from '../../core/intent.ts';
import type { Blocked } from '../../core/plan.ts';
import type { ProgressEvent } from '../../core/progress.ts';
import type { Intent, StateChange } from '../../core/state.ts';
import type { HttpRequest } from '../../core/transport.ts';
import type { Execution } from '../../emulator/world.ts';
import { keysAsked, type Running } from '../controller.ts';
import type { StateWatch } from '../durable.ts';
import { isSort } from '../resource-history.ts';
import { checkChange, checkDeleted } from './bindings.ts';
import { Purchases } from './purchases.ts';
import { type Handled, isWrite, keyOf, type Truth } from './truth.ts';

/** The invariants that hold after every step; numbered as in docs/contributing/proof.md. */
export type Rules = ReturnType<typeof createRules>;

/**
 * The rules about the way in which vdcsync works, and those who record it. A rehearsal judges a spec by the resources
 * alone. Each is called before the history records the same event.
 */
export interface FurtherRules {
  /** Before the service sees a request. */
  arrives(running: Running, request: HttpRequest): void;
  /** After it was handled. */
  handled(running: Running, request: HttpRequest, handled: Handled): void;
  began(running: Running, intent: Intent): void;
  updated(running: Running, before: Intent, after: Intent): void;
  closed(running: Running, before: Intent, intent: Intent): void;
  changed(running: Running, change: StateChange): void;
  event(running: Running, event: ProgressEvent): void;
  /** A run has put a question to the operator. */
  asked(blocked: Blocked): void;
}

export function createRules(truth: Truth, further?: FurtherRules) {
  const { history } = truth;
  const purchases = new Purchases(truth);

  return {
    /** No answer showed the creation of this server, the API stored no answer under its key, and no read shows the server. */
    isHidden: (server: string) => purchases.isHiddenServer(server),

    /** No client can know of the resource, or could have known of it while it existed. */
    isUnknown: (made: Execution) => purchases.isUnknown(made),

    /** The run has nothing left to do. */
    converged: (running: Running) => purchases.converged(running),

    event: (running: Running, event: ProgressEvent) => further?.event(running, event),

    asked: (blocked: Blocked) => further?.asked(blocked),

    arrives(running: Running, request: HttpRequest) {
      purchases.livesOn(running);
      if (isWrite(request)) {
        purchases.arrives(running, request);
        const open = [...running.mirror.open.values()].find((each) => each.idempotencyKey === keyOf(request));
        if (open !== undefined) history.recordRequest(open);
      }
      further?.arrives(running, request);
    },

    handled(running: Running, request: HttpRequest, handled: Handled) {
      further?.handled(running, request, handled);
      history.recordExecutions(false);
      if (isWrite(request)) purchases.handled(running, request, handled.response);
      purchases.check(running);
    },

    watch: (running: Running): StateWatch => ({
      began(intent) {
        further?.began(running, intent);
        if (partsOf(intent).unconfirmed !== undefined) running.done.add(keysAsked);
        history.recordWrite(intent, running.controller.file.lines);
      },
      updated(before, after) {
        purchases.livesOn(running);
        further?.updated(running, before, after);
      },
      closed(before, intent) {
        const { outcome } = partsOf(intent);
        running.controller.endings.set(`${intent.key} ${intent.verb}`, intent);
        // No controller can distinguish the replay of its own lost answer from that of an earlier state.
        const { answer } = partsOf(before);
        const isResent = intent.verb === 'create' && before.sends > 1 && before.recovers === undefined;
        if (isResent && isSort(intent.kind) && answer?.id !== undefined) {
          const birth = history.birthOf(intent.kind, answer.id);
          if (birth !== undefined) running.controller.confirmed.add(birth.number);
        }
        further?.closed(running, before, intent);
        if (intent.verb === 'delete' && outcome === 'done') checkDeleted(truth, running, intent);
        if (outcome === 'abandoned' && intent.verb === 'create') history.releasedUnder(intent.idempotencyKey);
      },
      changed(change) {
        further?.changed(running, change);
        checkChange(truth, running, change);
      },
    }),
  };
}
