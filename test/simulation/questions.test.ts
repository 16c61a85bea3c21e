import { describe, expect, test } from 'vitest';
import { type ResourceKey, takeApart } from '../../src/core/keys.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { Questions } from '../../src/simulation/questions.ts';
import type { Story } from '../../src/simulation/story.ts';
import { askedByCode } from './asked-by-code.ts';
import { createCoverage } from './coverage.ts';
import { QuestionRules } from './rules/questions.ts';

const hour = 3_600_000;
const calm: Story = {
  ...{ seed: 1, state: 'memory', readings: {}, specs: [], faults: [], incidents: [], pausesMs: [] },
};

/** The rules that a question by the code breaks in the story, after the API has refused requests by some codes. */
function broken(
  code: string,
  story: Story,
  refusals: readonly string[] = [],
  elapsedMs = 0,
  exists = true,
): string[] {
  const failed: string[] = [];
  const coverage = createCoverage();
  const elapsed = () => elapsedMs;
  const rules = new QuestionRules({
    story,
    observer: coverage,
    elapsed,
    fail: (rule) => void failed.push(rule),
    exists: () => exists,
  });
  const questions = new Questions((blocked) => rules.asked(blocked));
  for (const each of refusals) rules.refused(each);
  const key = 'ips.web' as ResourceKey;
  questions.note({ blocked: [{ key, verb: 'create', code, reason: '', remedies: [] }] });
  return failed;
}

describe('src/simulation/questions.ts', () => {
  test('a code outside the closed list breaks I16, unless the API has refused a request with that code', () => {
    expect(broken('something_new', calm)).toEqual(['I16']);
    expect(broken('something_new', calm, ['something_new'])).toEqual([]);
    expect(broken('prune_disabled', calm)).toEqual([]);
  });

  test('a question about an outcome breaks I16 if software can find out the outcome for every fault', () => {
    const crash = { at: { boundary: '*', nth: 3 }, what: { do: 'crash' } } as const;
    const lost = faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'reset', effect: 'done' });
    const unstored = faultRule(
      { path: 'allocate_ip', nth: 1 },
      { do: 'reset', effect: 'done', stored: false },
    );
    const error = (path: string) => faultRule({ path, nth: 1 }, { do: 'answer', status: 500 });

    expect(broken('outcome_unknown', { ...calm, faults: [lost], incidents: [crash] })).toEqual(['I16']);
    expect(broken('tainted', { ...calm, faults: [lost] })).toEqual(['I16']);
    expect(broken('outcome_unknown', { ...calm, faults: [error('create_network')] })).toEqual(['I16']);
    expect(broken('outcome_unknown', { ...calm, faults: [unstored] })).toEqual([]);
    expect(broken('outcome_unknown', { ...calm, faults: [error('create_server')] })).toEqual([]);
    expect(broken('outcome_unknown', { ...calm, faults: [lost], readings: { pageSize: 1 } })).toEqual([]);
  });

  test('a question about a recent earlier key breaks I16 if only the operator disturbs the story', () => {
    const asks = (more: object, elapsedMs = 22 * hour, exists = true) =>
      broken('moved_from_unknown', { ...calm, actions: [], ...more }, [], elapsedMs, exists);
    expect(asks({})).toEqual(['I16']);
    expect(asks({}, 23 * hour)).toEqual([]);
    expect(asks({}, 22 * hour, false)).toEqual([]);
    expect(asks({ actions: [{ when: 'at_rest', what: { do: 'give_scope', to: 1 } }] })).toEqual([]);
    expect(asks({ readings: { pageSize: 1 } })).toEqual([]);
    expect(asks({ faults: [faultRule({ path: 'allocate_ip' }, { do: 'reset' })] })).toEqual([]);
  });

  test('a question about an old key breaks I16 before 23 hours have passed', () => {
    const failing = {
      ...calm,
      faults: [faultRule({ path: 'create_server' }, { do: 'answer', status: 500 })],
    };

    expect(broken('key_too_old', failing, [], 22 * hour)).toEqual(['I16']);
    expect(broken('key_too_old', failing, [], 23 * hour)).toEqual([]);
  });

  test('a block that another entry or a later run resolves is no question', () => {
    const coverage = createCoverage();
    const questions = new Questions(({ code, key }) => coverage.asked(code, takeApart(key).kind, true));
    const blocked = ['dependency_blocked', 'unresolved_create', 'key_not_answered', 'protected'].map(
      (code) => ({ key: 'ips.web' as ResourceKey, verb: 'create', code, reason: '', remedies: [] }),
    );
    questions.note({ blocked: blocked as never });

    expect(askedByCode(coverage).map(({ code }) => code)).toEqual(['protected']);
  });
});
