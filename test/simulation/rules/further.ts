import { partsOf } from '../../../src/core/intent.ts';
import { member } from '../../../src/core/json.ts';
import type { HttpResponse } from '../../../src/core/transport.ts';
import { describe } from '../../../src/simulation/exchanges.ts';
import type { FurtherRules } from '../../../src/simulation/rules/rules.ts';
import { isWrite, type Truth } from '../../../src/simulation/rules/truth.ts';
import { entryOf } from '../../../src/simulation/spec-file.ts';
import type { StoryStage } from '../../../src/simulation/stage.ts';
import { checkProfiled } from '../profiled-rules.ts';
import type { StoryObserver } from '../story-observer.ts';
import { answerLine, eventLine, marksOf, subjectOf } from '../trace.ts';
import { isConclusive, isReplayed } from './answers.ts';
import { checkApproved, consumeApproved } from './approvals.ts';
import { BudgetRules } from './budgets.ts';
import { Deletions } from './deletions.ts';
import { Keys } from './keys.ts';
import { NegativeReads } from './negative-reads.ts';
import { QuestionRules } from './questions.ts';
import { WriteOrder } from './write-order.ts';

/** The rules about the way in which vdcsync works, in addition to those about the resources, and the lines of the trace. */
export function furtherRules(truth: Truth, stage: StoryStage, observer: StoryObserver): FurtherRules {
  const { trace, story } = stage;
  const budgets = new BudgetRules(truth);
  const turns = new WriteOrder(truth);
  const keys = new Keys(truth);
  const looks = new NegativeReads(truth);
  const deletions = new Deletions(truth);
  const isCalm = story.faults.length + story.incidents.length === 0;
  const questions = new QuestionRules({
    ...{ story, observer, elapsed: truth.elapsed, fail: truth.fail },
    exists: (key) => {
      // No spec names the key before the last rename, and a state asks a later incarnation only after the one before it.
      const asked = [key, member(entryOf(stage.file.model, key)?.moved, 'from')];
      return stage.executionsOf(key).some((each) => {
        const made = truth.history.writeOf(each);
        return made?.incarnation === '0' && truth.history.isLive(each) && asked.includes(made.key);
      });
    },
  });

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
      const { response } = handled;
      const refusal = response && refusalOf(response);
      if (refusal !== undefined) questions.refused(refusal);
      budgets.handled(running, request, handled);
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
      if (isWrite(request)) trace.add(running.name, `${describe(request)} → ${answerLine(response)}`);
    },

    began(running, intent) {
      const { verb, key, incarnation, attempt } = intent;
      trace.add(running.name, `begin ${verb} ${key} #${incarnation}/${attempt}`);
      keys.began(running.controller, intent);
      checkApproved(truth, running, intent);
      looks.began(running, intent);
    },

    updated(running, before, after) {
      trace.add(running.name, `${before.key}: ${before.phase} → ${after.phase}${marksOf(after)}`);
      if (partsOf(after).blocked?.code === 'key_too_old') observer.keyTooOld(after.request.name);
      keys.livesOn(running);
      looks.updated(running, before, after);
    },

    closed(running, before, intent) {
      const { outcome, because } = partsOf(intent);
      trace.add(running.name, `${intent.key}: closed ${outcome} ${intent.detail}`.trimEnd());
      if (because === 'key_too_old') observer.keyTooOld(intent.request.name);
      keys.closed(running, intent);
      deletions.closed(intent);
      if (outcome === 'done') consumeApproved(running, intent);
      looks.closed(running, before, intent);
    },

    changed(running, change) {
      trace.add(running.name, `${change.type} ${subjectOf(change)}`);
      keys.changed(change);
    },

    event(running, event) {
      if (event.type === 'ended' && isCalm) deletions.ended(running, event.result);
      const line = eventLine(event);
      if (line !== undefined) trace.add(running.name, line);
    },

    asked: (blocked) => questions.asked(blocked),
  };
}

/** The code of a refusal, or its status where it has none. After a 429 no operator has to decide anything. */
function refusalOf(response: HttpResponse): string | undefined {
  const { status } = response;
  if (status < 400 || status >= 500 || status === 429 || !isConclusive(response)) return undefined;
  return (JSON.parse(response.body) as { code?: string }).code ?? `http_${status}`;
}
