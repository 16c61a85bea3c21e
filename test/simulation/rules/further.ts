import { partsOf } from '../../../src/core/intent.ts';
import { isConclusive, isReplayed } from '../../../src/simulation/exchanges.ts';
import type { FurtherRules } from '../../../src/simulation/rules/rules.ts';
import { isWrite, type Truth } from '../../../src/simulation/rules/truth.ts';
import { checkProfiled } from '../profiled-rules.ts';
import { checkApproved, consumeApproved } from './approvals.ts';
import { BudgetRules } from './budgets.ts';
import { Deletions } from './deletions.ts';
import { Keys } from './keys.ts';
import { NegativeReads } from './negative-reads.ts';
import { WriteOrder } from './write-order.ts';

/** The rules about the way in which vdcsync works, in addition to those about the resources. */
export function furtherRules(truth: Truth): FurtherRules {
  const budgets = new BudgetRules(truth);
  const turns = new WriteOrder(truth);
  const keys = new Keys(truth);
  const looks = new NegativeReads(truth);
  const deletions = new Deletions(truth);

  return {
    arrives(running, request) {
      budgets.arrives(running, request);
      keys.livesOn(running);
      if (!isWrite(request)) return;
      turns.arrives(running, request);
      const intent = keys.arrives(running, request);
      if (intent === undefined) return;
      turns.checkHolds(running, intent);
      deletions.check(running, intent);
      keys.checkProved(deletions.isReplaced(running, intent.key), intent);
      checkProfiled(truth, running, intent);
    },

    handled(running, request, handled) {
      budgets.handled(running, request, handled);
      const { response } = handled;
      // Of an answer that concludes the request, and is no replay.
      const isFresh = response !== undefined && !isReplayed(response) && isConclusive(response);
      const status = isFresh ? response.status : undefined;
      if (isWrite(request)) {
        turns.handled(running);
        if (status !== undefined) {
          turns.answered(running, request, status);
          keys.answered(running, request, status);
        }
      }
      if (!isWrite(request) && status === 200) turns.read(running, request);
    },

    began(running, intent) {
      keys.began(running.controller, intent);
      checkApproved(truth, running, intent);
      looks.began(running, intent);
    },

    updated(running, before, after) {
      keys.livesOn(running);
      looks.updated(running, before, after);
    },

    closed(running, before, intent) {
      keys.closed(running, intent);
      if (partsOf(intent).outcome === 'done') consumeApproved(running, intent);
      looks.closed(running, before, intent);
    },

    changed: (change) => keys.changed(change),
  };
}
