import { describe, expect, test } from 'vitest';
import type { Conclusive, WriteResult } from '../../../src/core/ports.ts';
import type { Unconfirmed } from '../../../src/core/state.ts';
import {
  type Disposition,
  disposition,
  probeAnswer,
  reuseRefusal,
  type SentFacts,
  told,
} from '../../../src/engine/intents/outcome.ts';

const pace = { requestTimeoutMs: 20_000, jitter: 0.5, waits: 2, timeScale: 0.5 };
const settleMs = 50_000;
const lost = (stage: 'asking' | 'taken' = 'asking', why: Unconfirmed['why'] = 'lost'): Unconfirmed => ({
  why,
  question: { stage, probes: 0 },
});
const purchase: SentFacts = { verb: 'create', asks: true };
const lostPurchase: SentFacts = { ...purchase, unconfirmed: lost() };
const doubtedPurchase: SentFacts = { ...purchase, doubted: true };
const update: SentFacts = { verb: 'update', asks: false };
const lostUpdate: SentFacts = { ...update, unconfirmed: lost() };
const deletion: SentFacts = { verb: 'delete', asks: false };

type Said = Partial<Omit<Conclusive, 'type' | 'status'>>;
const said = (status: number, more: Said = {}): Conclusive =>
  ({ type: 'answer', status, requestId: 'req_1', replayed: false, ...more }) as Conclusive;
const field = (name: string): Said => ({ invalidParams: [{ name, reason: 'no' }] });
const task = { id: 't-1', terminal: false } as NonNullable<Conclusive['task']>;

/** The disposition without its words for people. */
function stepOf(result: WriteResult, sent: SentFacts): Partial<Disposition> {
  const { reason: _, ...step } = disposition(result, sent, pace) as Disposition & { reason?: string };
  return step as Partial<Disposition>;
}

const resent = (why: string, stage: string) => ({ do: 'look', afterMs: 1_000, why, stage });
const looks = (why: string) => ({ do: 'look', afterMs: settleMs, why });
const refused = (code: string, until: string) => ({ do: 'refuse', code, until });
const waits = (code: string, afterMs: number) => ({ do: 'wait', afterMs, code });
/** 5 s twice doubled, and half of a tenth. */
const busy = 20_000 * 1.05;

describe('src/engine/intents/outcome.ts: the step after an answer', () => {
  test.each<[string, WriteResult, SentFacts, object]>([
    ['no connection', { type: 'unsent', reason: '' }, purchase, waits('unreachable', 4_000 * 1.05)],
    ['a lost answer', { type: 'ambiguous', reason: '' }, purchase, looks('lost')],
    ['a task', said(202, { task }), purchase, { do: 'accept', task: 't-1' }],
    ['no task', said(200), purchase, { do: 'accept', task: null }],
    ['201 with null', said(201, { task: null }), purchase, { do: 'accept', task: null }],
    [
      '202 with null',
      said(202, { task: null }),
      purchase,
      { do: 'accept', task: null, breach: '202 without a task' },
    ],
    [
      '200 with a task',
      said(200, { task }),
      purchase,
      { do: 'accept', task: 't-1', breach: '200 with a task' },
    ],
    [
      'no field `task`',
      said(202, { task: 'missing' }),
      purchase,
      { do: 'accept', task: null, breach: 'the answer lacks the field `task`' },
    ],
    ['the highest success', said(299), purchase, { do: 'accept', task: null }],
    ['an unreadable acceptance', said(200, { malformed: 'x' }), purchase, resent('unreadable', 'taken')],
    ['an unreadable success of an update', said(200, { malformed: 'x' }), update, looks('unreadable')],
    ['500', said(500), purchase, looks('server_error')],
    ['503 to a resend', said(503), lostPurchase, looks('server_error')],
    ['502', said(502), purchase, { do: 'look', afterMs: 900_000, why: 'gateway_error' }],
    ['504', said(504), purchase, { do: 'look', afterMs: 900_000, why: 'gateway_error' }],
    ['502 to an update', said(502), update, looks('gateway_error')],
    ['504 to an update', said(504), update, looks('gateway_error')],
    ['429', said(429), purchase, waits('rate_limit_exceeded', 0)],
    ['429 to a lost purchase', said(429), lostPurchase, waits('rate_limit_exceeded', 0)],
    ['429 to a doubted purchase', said(429), doubtedPurchase, waits('rate_limit_exceeded', 0)],
    ['429 to a lost update', said(429), lostUpdate, waits('rate_limit_exceeded', 0)],
    ['429 of one token', said(429, { ofToken: true }), purchase, waits('rate_limit_exceeded', 0)],
    ['a replayed 429', said(429, { replayed: true, code: 'slow' }), purchase, refused('slow', 'now')],
    ['a replayed 429 to a lost update', said(429, { replayed: true }), lostUpdate, looks('refused')],
    ['409 with a time', said(409, { code: 'odd', retryAfterMs: 30_000 }), purchase, waits('odd', 15_750)],
    [
      '409 with a long time',
      said(409, { code: 'odd', retryAfterMs: 3_600_000 }),
      purchase,
      waits('odd', 315_000),
    ],
    ['409 because of a state', said(409, { code: 'server_busy' }), purchase, waits('server_busy', busy)],
    ['409 because of an address', said(409, { code: 'ip_in_use' }), deletion, waits('ip_in_use', busy)],
    [
      '409 without an interface',
      said(409, { code: 'firewall_no_public_iface' }),
      update,
      waits('firewall_no_public_iface', busy),
    ],
    ['409 of another code', said(409, { code: 'odd' }), purchase, { ...waits('odd', busy), doubted: true }],
    ['409 without a code', said(409), purchase, { ...waits('http_409', busy), doubted: true }],
    [
      '409 that names a parameter',
      said(409, { code: 'odd', ...field('idempotency_key') }),
      purchase,
      { ...waits('odd', busy), doubted: true },
    ],
    ['no capacity', said(409, { code: 'no_gpu_capacity' }), purchase, { do: 'next_preference' }],
    [
      'no capacity for a doubted purchase',
      said(409, { code: 'no_gpu_capacity' }),
      doubtedPurchase,
      resent('conflict', 'asking'),
    ],
    [
      '409 to a doubted purchase',
      said(409, { code: 'odd' }),
      doubtedPurchase,
      { ...waits('odd', busy), doubted: true },
    ],
    [
      '401',
      said(401, { code: 'no' }),
      purchase,
      { ...refused('no', 'replan'), pause: 'everything', later: 'everything' },
    ],
    [
      '402',
      said(402, { code: 'no' }),
      purchase,
      { ...refused('no', 'replan'), pause: 'spending', later: 'spending' },
    ],
    [
      'a replayed 402',
      said(402, { code: 'no', replayed: true }),
      purchase,
      { ...refused('no', 'replan'), pause: 'spending', later: 'spending' },
    ],
    [
      '403',
      said(403, { code: 'no' }),
      purchase,
      { ...refused('no', 'replan'), pause: 'operation', later: 'operation' },
    ],
    [
      '403 for the scope',
      said(403, { code: 'insufficient_scope' }),
      purchase,
      { ...refused('insufficient_scope', 'replan'), pause: 'everything', later: 'everything' },
    ],
    [
      '405',
      said(405, { code: 'no' }),
      purchase,
      { ...refused('no', 'replan'), pause: 'everything', later: 'operation' },
    ],
    [
      '415',
      said(415, { code: 'no' }),
      purchase,
      { ...refused('no', 'replan'), pause: 'everything', later: 'operation' },
    ],
    ['403 of one token', said(403, { code: 'no', ofToken: true }), purchase, refused('no', 'token')],
    ['404', said(404, { code: 'no' }), purchase, refused('no', 'replan')],
    ['404 to a deletion', said(404), deletion, looks('not_found')],
    ['404 to an update', said(404, { code: 'no' }), update, refused('no', 'replan')],
    ['422 to a deletion', said(422, { code: 'no' }), deletion, refused('no', 'file')],
    ['422 of an unknown code', said(422, { code: 'no' }), purchase, resent('refused', 'taken')],
    ['400 of an unknown code', said(400, { code: 'no' }), purchase, resent('refused', 'taken')],
    ['410 of an unknown code', said(410, { code: 'no' }), purchase, refused('no', 'file')],
    [
      '422 for a field',
      said(422, { code: 'no', ...field('cores') }),
      purchase,
      { ...refused('no', 'file'), parameters: ['cores'] },
    ],
    [
      '422 for the key',
      said(422, { code: 'no', ...field('Idempotency-Key') }),
      purchase,
      resent('refused', 'taken'),
    ],
    [
      'a code for the key',
      said(410, { code: 'idempotency_key_reused' }),
      purchase,
      resent('refused', 'taken'),
    ],
    [
      'a code for the key of a deletion',
      said(422, { code: 'idempotency_key_reused' }),
      deletion,
      refused('idempotency_key_reused', 'now'),
    ],
    [
      'a replayed refusal',
      said(422, { code: 'no', replayed: true, ...field('cores') }),
      purchase,
      { ...refused('no', 'now'), parameters: ['cores'] },
    ],
    [
      'a replayed refusal of a lost purchase',
      said(422, { code: 'no', replayed: true }),
      lostPurchase,
      refused('no', 'now'),
    ],
    [
      'the replay of a refusal that was fresh',
      said(422, { code: 'no', replayed: true }),
      { ...purchase, unconfirmed: lost('taken', 'refused') },
      refused('no', 'file'),
    ],
    [
      'a replayed refusal under a taken key',
      said(422, { code: 'no', replayed: true }),
      { ...purchase, unconfirmed: lost('taken') },
      refused('no', 'now'),
    ],
    [
      'a replayed refusal, asked',
      said(422, { code: 'no', replayed: true }),
      { ...purchase, unconfirmed: lost('asking', 'refused') },
      refused('no', 'now'),
    ],
    [
      '402 to a lost purchase',
      said(402, { code: 'no' }),
      lostPurchase,
      { do: 'hold', code: 'no', pause: 'spending', later: 'spending' },
    ],
    [
      '415 to a lost purchase',
      said(415, { code: 'no' }),
      lostPurchase,
      { do: 'hold', code: 'no', pause: 'everything', later: 'operation' },
    ],
    [
      '403 of one token to a lost purchase',
      said(403, { ofToken: true }),
      lostPurchase,
      resent('refused', 'asking'),
    ],
    [
      '409 with a time to a lost purchase',
      said(409, { code: 'odd', retryAfterMs: 30_000 }),
      lostPurchase,
      waits('odd', 15_750),
    ],
    [
      'a busy server to a lost purchase',
      said(409, { code: 'server_busy' }),
      lostPurchase,
      waits('server_busy', busy),
    ],
    [
      '409 to a lost purchase',
      said(409, { code: 'odd' }),
      lostPurchase,
      { ...resent('conflict', 'asking'), conflict: true },
    ],
    [
      '422 to a lost purchase',
      said(422, { code: 'odd' }),
      lostPurchase,
      { ...resent('conflict', 'asking'), conflict: true },
    ],
    [
      '422 for a field to a lost purchase',
      said(422, { code: 'no', ...field('cores') }),
      lostPurchase,
      resent('refused', 'open'),
    ],
    [
      '422 with a time to a lost purchase',
      said(422, { code: 'no', retryAfterMs: 1, ...field('cores') }),
      lostPurchase,
      resent('refused', 'open'),
    ],
    ['404 to a lost purchase', said(404, { code: 'server_busy' }), lostPurchase, resent('refused', 'open')],
    [
      '422 to a doubted purchase',
      said(422, { code: 'no', ...field('cores') }),
      doubtedPurchase,
      resent('conflict', 'asking'),
    ],
    [
      '402 to a doubted purchase',
      said(402, { code: 'no' }),
      doubtedPurchase,
      { do: 'hold', code: 'no', pause: 'spending', later: 'spending' },
    ],
    [
      'a replayed refusal to a doubted purchase',
      said(422, { code: 'no', replayed: true }),
      doubtedPurchase,
      refused('no', 'now'),
    ],
    [
      '422 to a doubted update',
      said(422, { code: 'no' }),
      { ...update, doubted: true },
      refused('no', 'file'),
    ],
    ['409 to a lost update', said(409), lostUpdate, looks('conflict')],
    ['422 to a lost update', said(422), lostUpdate, looks('refused')],
    ['404 to a lost deletion', said(404), { ...deletion, unconfirmed: lost() }, looks('refused')],
  ])('%s', (_name, result, sent, step) => {
    expect(stepOf(result, sent)).toEqual(step);
  });

  test('the reason is the answer, and the answer to a resend says nothing about the request before', () => {
    const [first, second] = [purchase, lostPurchase].map((sent) =>
      disposition(said(404, { title: 'No.' }), sent, pace),
    );
    expect(first).toMatchObject({ reason: '404 · No' });
    expect(second).toMatchObject({ reason: expect.stringMatching(/^404 · No; .*does not show the outcome/) });
  });

  const bodyCodes = [
    'image_not_supported',
    'resources_managed_by_package',
    'gpu_package_required',
    'gpu_package_not_found',
    'gpus_not_supported',
    'disk_type_not_supported',
    'server_type_not_supported',
  ];
  test.each(bodyCodes)('%s is about the body, and not about a used key', (code) => {
    expect(stepOf(said(422, { code }), purchase)).toEqual(refused(code, 'file'));
  });

  test('the wait grows to five minutes, or to one without a connection', () => {
    const afterMs = (result: WriteResult, waited: number) =>
      disposition(result, purchase, { ...pace, jitter: 0, waits: waited });
    expect([0, 1, 9].map((each) => afterMs(said(409), each))).toMatchObject(
      [5_000, 10_000, 300_000].map((each) => ({ afterMs: each })),
    );
    expect([0, 1, 9].map((each) => afterMs({ type: 'unsent', reason: '' }, each))).toMatchObject(
      [1_000, 2_000, 60_000].map((each) => ({ afterMs: each })),
    );
  });
});

describe('src/engine/intents/outcome.ts: the answer to a probe', () => {
  test.each<[string, Conclusive, string]>([
    ['its own refusal', said(422, { replayed: true }), 'fenced'],
    ['its own 401', said(401, { replayed: true }), 'fenced'],
    ['its own 503', said(503, { replayed: true }), 'fenced'],
    ['a fresh refusal of its field', said(422, field('data.vdcsync_probe')), 'fresh'],
    [
      'a refusal of two fields',
      said(422, {
        invalidParams: [
          { name: 'a', reason: '' },
          { name: 'vdcsync_probe', reason: '' },
        ],
      }),
      'fresh',
    ],
    ['400', said(400), 'taken'],
    ['422', said(422, field('name')), 'taken'],
    ['404', said(404), 'nothing'],
    ['409', said(409, { code: 'odd' }), 'nothing'],
    ['409 of a used key', said(409, { code: 'used' }), 'taken'],
    ['409 without a code', said(409), 'nothing'],
    ['410 of the same code', said(410, { code: 'used' }), 'nothing'],
    ...[401, 402, 403, 405, 415, 429, 500, 503].map((status): [string, Conclusive, string] => [
      `${status}`,
      said(status, field('vdcsync_probe')),
      'nothing',
    ]),
  ])('%s', (_name, result, shows) => {
    expect(probeAnswer(result, { status: 409, code: 'used' })).toBe(shows);
  });

  test('409 is taken for a used key only if this API has refused one so', () => {
    expect(probeAnswer(said(409, { code: 'used' }), undefined)).toBe('nothing');
    expect(reuseRefusal(said(409))).toEqual({ status: 409, code: 'http_409' });
    expect(probeAnswer(said(409), reuseRefusal(said(409)))).toBe('taken');
  });

  test('an answer is told with its status, its code, its text and its fields', () => {
    const invalidParams = [{ name: 'cores', reason: 'too many.' }];
    const told1 = told(said(422, { code: 'no', title: 'No.', detail: 'Not so...', invalidParams }));
    expect(told1).toBe('422 no · Not so... · cores: too many');
    expect(told(said(500, { title: 'No.' }))).toBe('500 · No');
    expect(told(said(500))).toBe('500');
  });
});
