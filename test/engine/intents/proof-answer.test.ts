import { describe, expect, test } from 'vitest';
import type { Conclusive } from '../../../src/core/ports.ts';
import { proofAnswer } from '../../../src/engine/intents/outcome.ts';

const said = (status: number, more: Partial<Conclusive> = {}): Conclusive => ({
  ...{ type: 'answer', status, requestId: 'req_1', replayed: false },
  ...more,
});
const fields = (...names: string[]) => ({ invalidParams: names.map((name) => ({ name, reason: 'no' })) });
const objection = (code: string, ...parameters: string[]) => ({ shows: 'objection', code, parameters });
const nothing = (afterMs: number) => ({ shows: 'nothing', afterMs });

describe('src/engine/intents/outcome.ts: the answer to the proof of a body', () => {
  test.each<[string, Conclusive, object]>([
    ['200', said(200), { shows: 'carried_out' }],
    ['299', said(299), { shows: 'carried_out' }],
    ['500', said(500), nothing(5_000)],
    ['503 with a time', said(503, { retryAfterMs: 9_000 }), nothing(9_000)],
    ['429', said(429), nothing(5_000)],
    ['409 with a time', said(409, { retryAfterMs: 9_000 }), nothing(9_000)],
    ['403 of one token', said(403, { ofToken: true }), nothing(5_000)],
    ['409', said(409, { code: 'odd' }), { shows: 'conflict', code: 'odd' }],
    ['409 for the body', said(409, { code: 'gpus_not_supported' }), objection('gpus_not_supported')],
    ['422 for the unknown field alone', said(422, fields('vdcsync_probe')), { shows: 'no_objection' }],
    [
      '422: a value',
      said(422, { code: 'no', ...fields('vdcsync_probe', 'cores') }),
      objection('no', 'cores'),
    ],
    ['422 for a value alone', said(422, { code: 'no', ...fields('cores') }), objection('no', 'cores')],
    ['422: a time', said(422, { code: 'no', retryAfterMs: 1, ...fields('cores') }), objection('no', 'cores')],
    ['422 without a field', said(422, { code: 'no' }), objection('no')],
    ['402', said(402, { code: 'unpaid' }), objection('unpaid')],
  ])('%s', (_name, result, shows) => {
    expect(proofAnswer(result)).toMatchObject(shows);
  });

  test('the reason names the refused values, and not the unknown field', () => {
    const answer = proofAnswer(said(422, { code: 'no', ...fields('vdcsync_probe', 'cores') }));
    expect(answer).toMatchObject({ reason: '422 no · cores: no' });
    expect(proofAnswer(said(500))).toMatchObject({ reason: '500' });
  });
});
