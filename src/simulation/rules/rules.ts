import { partsOf } from '../../core/intent.ts';
import type { HttpRequest } from '../../core/transport.ts';
import { keysAsked, type Running } from '../controller.ts';
import type { StateWatch } from '../durable.ts';
import { isSort } from '../resource-history.ts';
import { checkApproved, consumeApproved } from './approvals.ts';
import { checkChange, checkDeleted } from './bindings.ts';
import { BudgetRules } from './budgets.ts';
import { checkDeletion } from './deletions.ts';
import { Keys } from './keys.ts';
import { NegativeReads } from './negative-reads.ts';
import { Purchases } from './purchases.ts';
import { type Handled, isWrite, keyOf, type Truth } from './truth.ts';
import { WriteOrder } from './write-order.ts';

/** The invariants that hold after every step; numbered as in docs/contributing/proof.md. */
export interface Rules {
  /** Before the service sees a request. */
  arrives(running: Running, request: HttpRequest): void;
  /** After it was handled. */
  handled(running: Running, request: HttpRequest, handled: Handled): void;
  watch(running: Running): StateWatch;
  /** The run has nothing left to do. */
  converged(running: Running): void;
  /** No answer showed the creation of this server, the API stored no answer under its key, and no read shows the server. */
  isHidden(server: string): boolean;
}

export function createRules(truth: Truth): Rules {
  const { history } = truth;
  const budgets = new BudgetRules(truth);
  const turns = new WriteOrder(truth);
  const keys = new Keys(truth);
  const looks = new NegativeReads(truth);
  const purchases = new Purchases(truth);

  return {
    isHidden: (server) => purchases.isHiddenServer(server),

    converged: (running) => purchases.converged(running),

    arrives(running, request) {
      budgets.arrives(running, request);
      purchases.livesOn(running);
      keys.livesOn(running);
      if (!isWrite(request)) return;
      turns.arrives(running, request);
      purchases.arrives(running, request);
      const open = [...running.mirror.open.values()].find((each) => each.idempotencyKey === keyOf(request));
      if (open !== undefined) history.recordRequest(open);
      const intent = keys.arrives(running, request);
      if (intent === undefined) return;
      turns.checkHolds(running, intent);
      checkDeletion(truth, running, intent);
      keys.checkProved(running, intent);
      truth.check(truth, running, intent);
    },

    handled(running, request, handled) {
      const { status, requestId } = handled;
      budgets.handled(running, request, handled);
      if (isWrite(request)) {
        turns.handled(running);
        if (status !== undefined) {
          turns.answered(running, request, status);
          keys.answered(running, request, status);
        }
      }
      if (!isWrite(request) && status === 200) turns.read(running, request);
      history.look(false);
      if (isWrite(request)) purchases.handled(running, request, requestId);
      purchases.check(running);
    },

    watch: (running) => ({
      began(intent) {
        keys.began(running.controller, intent);
        checkApproved(truth, running, intent);
        if (partsOf(intent).unconfirmed !== undefined) running.done.add(keysAsked);
        looks.began(running, intent);
        history.recordWrite(intent, running.controller.file.lines);
      },
      updated(before, after) {
        purchases.livesOn(running);
        keys.livesOn(running);
        looks.updated(running, before, after);
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
        keys.closed(running, intent);
        if (outcome === 'done') consumeApproved(running, intent);
        if (intent.verb === 'delete' && outcome === 'done') checkDeleted(truth, running, intent);
        looks.closed(running, before, intent);
        if (outcome === 'abandoned' && intent.verb === 'create') history.releasedUnder(intent.idempotencyKey);
      },
      changed(change) {
        keys.changed(change);
        checkChange(truth, running, change);
      },
    }),
  };
}
