import { describe, expect, test } from 'vitest';
import type { Conclusive, WriteResult } from '../../../src/core/ports.ts';
import type { Unconfirmed } from '../../../src/core/state.ts';
import {
  answerText,
  type Disposition,
  disposition,
  probeAnswer,
  reuseRefusal,
  type SentFacts,
} from '../../../src/engine/intents/outcome.ts';

const pace = { requestTimeoutMs: 20_000, jitter: 0.5, waits: 2, timeScale: 0.5 };
const settleMs = 50_000;
const lost = (stage: 'asking' | 'taken' = 'asking', why: Unconfirmed['why'] = 'lost'): Unconfirmed => ({
  why,
  question: { stage, probes: 0 },
});
const purchase: SentFacts = { verb: 'create', asks: true };
const lostPurchase: SentFacts = { ...purchase, unconfirmed: lost() };
const maybeUsedPurchase: SentFacts = { ...purchase, maybeUsed: true };
const update: SentFacts = { verb: 'update', asks: false };
const lostUpdate: SentFacts = { ...update, unconfirmed: lost() };
const deletion: SentFacts = { verb: 'delete', asks: false };

type Said = Partial<Omit<Conclusive, 'type' | 'status'>>;
const said = (status: number, more: Said = {}): Conclusive =>
  ({ type: 'answer', status, requestId: 'req_1', replayed: false, ...more }) as Conclusive;
const coded = (status: number, code: string, more: Said = {}) => said(status, { code, ...more });
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
const paused = (pause: string, later: string) => ({ ...refused('no', 'replan'), pause, later });
/** 5 s twice doubled, and half of a tenth. */
const busy = 20_000 * 1.05;
const doubts = (code: string) => ({ ...waits(code, busy), maybeUsed: true });
const accepts = (breach?: string) => ({ do: 'accept', task: null, ...(breach && { breach }) });
const holds = (pause: string, later: string) => ({ do: 'hold', code: 'no', pause, later });
const conflicts = { ...resent('conflict', 'asking'), conflict: true };
const replayed = (status: number) => coded(status, 'no', { replayed: true });
const lostAs = (...of: Parameters<typeof lost>): SentFacts => ({ ...purchase, unconfirmed: lost(...of) });
const ofCores = coded(422, 'no', field('cores'));
const freshBefore = lostAs('taken', 'refused');
const outOfScope = { ...paused('everything', 'everything'), code: 'insufficient_scope' };
const refusedCores = { ...refused('no', 'now'), parameters: ['cores'] };
const [noInterface, reusedKey] = ['firewall_no_public_iface', 'idempotency_key_reused'];

describe('src/engine/intents/outcome.ts: the step after an answer', () => {
  test.each<[string, WriteResult, SentFacts, object]>([
    ['no connection', { type: 'unsent', reason: '' }, purchase, waits('unreachable', 4_000 * 1.05)],
    ['a lost answer', { type: 'ambiguous', reason: '' }, purchase, looks('lost')],
    ['a task', said(202, { task }), purchase, { do: 'accept', task: 't-1' }],
    ['no task', said(200), purchase, accepts()],
    ['201 with null', said(201, { task: null }), purchase, accepts()],
    ['202 with null', said(202, { task: null }), purchase, accepts('202 without a task')],
    ['200 with a task', said(200, { task }), purchase, { ...accepts('200 with a task'), task: 't-1' }],
    ['no `task`', said(202, { task: 'missing' }), purchase, accepts('the answer lacks the field `task`')],
    ['the highest success', said(299), purchase, accepts()],
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
    ['429 under an unconfirmed key', said(429), maybeUsedPurchase, waits('rate_limit_exceeded', 0)],
    ['429 to a lost update', said(429), lostUpdate, waits('rate_limit_exceeded', 0)],
    ['429 of one token', said(429, { ofToken: true }), purchase, waits('rate_limit_exceeded', 0)],
    ['a replayed 429', said(429, { replayed: true, code: 'slow' }), purchase, refused('slow', 'now')],
    ['a replayed 429 to a lost update', said(429, { replayed: true }), lostUpdate, looks('refused')],
    ['409 with a time', coded(409, 'odd', { retryAfterMs: 30_000 }), purchase, waits('odd', 15_750)],
    ['409 with a long time', coded(409, 'odd', { retryAfterMs: 3_600_000 }), purchase, waits('odd', 315_000)],
    ['409 because of a state', coded(409, 'server_busy'), purchase, waits('server_busy', busy)],
    ['409 because of an address', coded(409, 'ip_in_use'), deletion, waits('ip_in_use', busy)],
    ['409 without an interface', coded(409, noInterface), update, waits(noInterface, busy)],
    ['409 of another code', coded(409, 'odd'), purchase, doubts('odd')],
    ['409 without a code', said(409), purchase, doubts('http_409')],
    ['409 that names a parameter', coded(409, 'odd', field('idempotency_key')), purchase, doubts('odd')],
    ['no capacity', coded(409, 'no_gpu_capacity'), purchase, { do: 'next_preference' }],
    [
      'no capacity, key unsure',
      coded(409, 'no_gpu_capacity'),
      maybeUsedPurchase,
      resent('conflict', 'asking'),
    ],
    ['409 under an unconfirmed key', coded(409, 'odd'), maybeUsedPurchase, doubts('odd')],
    ['401', coded(401, 'no'), purchase, paused('everything', 'everything')],
    ['402', coded(402, 'no'), purchase, paused('spending', 'spending')],
    ['a replayed 402', replayed(402), purchase, refused('no', 'now')],
    [
      'a replayed 402 that was fresh a moment ago',
      replayed(402),
      freshBefore,
      paused('spending', 'spending'),
    ],
    ['403', coded(403, 'no'), purchase, paused('operation', 'operation')],
    ['403 for the scope', coded(403, 'insufficient_scope'), purchase, outOfScope],
    ['405', coded(405, 'no'), purchase, paused('everything', 'operation')],
    ['415', coded(415, 'no'), purchase, paused('everything', 'operation')],
    ['403 of one token', coded(403, 'no', { ofToken: true }), purchase, refused('no', 'token')],
    ['404', coded(404, 'no'), purchase, refused('no', 'replan')],
    ['404 to a deletion', said(404), deletion, looks('not_found')],
    ['404 to an update', coded(404, 'no'), update, refused('no', 'replan')],
    ['422 to a deletion', coded(422, 'no'), deletion, refused('no', 'file')],
    ['422 of an unknown code', coded(422, 'no'), purchase, resent('refused', 'taken')],
    ['400 of an unknown code', coded(400, 'no'), purchase, resent('refused', 'taken')],
    ['410 of an unknown code', coded(410, 'no'), purchase, refused('no', 'file')],
    ['422 for a field', ofCores, purchase, { ...refused('no', 'file'), parameters: ['cores'] }],
    ['422 for the key', coded(422, 'no', field('Idempotency-Key')), purchase, resent('refused', 'taken')],
    ['a code for the key', coded(410, reusedKey), purchase, resent('refused', 'taken')],
    ['a code for the key of a deletion', coded(422, reusedKey), deletion, refused(reusedKey, 'now')],
    ['a replay', { ...ofCores, replayed: true }, purchase, refusedCores],
    ['a replayed refusal of a lost purchase', replayed(422), lostPurchase, refused('no', 'now')],
    ['the replay of a fresh refusal', replayed(422), lostAs('taken', 'refused'), refused('no', 'file')],
    ['a replayed refusal under a taken key', replayed(422), lostAs('taken'), refused('no', 'now')],
    ['a replayed refusal, asked', replayed(422), lostAs('asking', 'refused'), refused('no', 'now')],
    ['402 to a lost purchase', coded(402, 'no'), lostPurchase, holds('spending', 'spending')],
    ['415 to a lost purchase', coded(415, 'no'), lostPurchase, holds('everything', 'operation')],
    ['403 of one token, lost', said(403, { ofToken: true }), lostPurchase, resent('refused', 'asking')],
    ['409 with a time', coded(409, 'odd', { retryAfterMs: 30_000 }), lostPurchase, waits('odd', 15_750)],
    ['a busy server to a lost purchase', coded(409, 'server_busy'), lostPurchase, waits('server_busy', busy)],
    ['409 to a lost purchase', coded(409, 'odd'), lostPurchase, conflicts],
    ['422 to a lost purchase', coded(422, 'odd'), lostPurchase, { ...conflicts, why: 'reused' }],
    ['422 for a field to a lost purchase', ofCores, lostPurchase, resent('refused', 'open')],
    ['422 with a time, if lost', { ...ofCores, retryAfterMs: 1 }, lostPurchase, resent('refused', 'open')],
    ['404 to a lost purchase', coded(404, 'server_busy'), lostPurchase, resent('refused', 'open')],
    ['422 under an unconfirmed key', ofCores, maybeUsedPurchase, resent('conflict', 'asking')],
    ['402 under an unconfirmed key', coded(402, 'no'), maybeUsedPurchase, holds('spending', 'spending')],
    ['a replayed refusal under an unconfirmed key', replayed(422), maybeUsedPurchase, refused('no', 'now')],
    ['422 to an update, key unsure', coded(422, 'no'), { ...update, maybeUsed: true }, refused('no', 'file')],
    ['409 to a lost update', said(409), lostUpdate, looks('conflict')],
    ['422 to a lost update', said(422), lostUpdate, looks('refused')],
    ['404 to a lost deletion', said(404), { ...deletion, unconfirmed: lost() }, looks('refused')],
  ])('%s', (_name, result, sent, step) => {
    expect(stepOf(result, sent)).toEqual(step);
  });

  test('the reason is the answer, and the answer to a resend does not describe the request before', () => {
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
  const two = { invalidParams: ['a', 'vdcsync_probe'].map((name) => ({ name, reason: '' })) };
  test.each<[string, Conclusive, string]>([
    ['its own refusal', said(422, { replayed: true }), 'fenced'],
    ['its own 401', said(401, { replayed: true }), 'fenced'],
    ['its own 503', said(503, { replayed: true }), 'fenced'],
    ['a fresh refusal of its field', said(422, field('data.vdcsync_probe')), 'fresh'],
    ['a refusal of two fields', said(422, two), 'fresh'],
    ['400', said(400), 'taken'],
    ['422', said(422, field('name')), 'taken'],
    ['404', said(404), 'nothing'],
    ['409', coded(409, 'odd'), 'nothing'],
    ['409 of a used key', coded(409, 'used'), 'taken'],
    ['409 without a code', said(409), 'nothing'],
    ['410 of the same code', coded(410, 'used'), 'nothing'],
    ...[401, 402, 403, 405, 415, 429, 500, 503].map((status): [string, Conclusive, string] => [
      `${status}`,
      said(status, field('vdcsync_probe')),
      'nothing',
    ]),
  ])('%s', (_name, result, shows) => {
    expect(probeAnswer(result, { status: 409, code: 'used' })).toBe(shows);
  });

  test('409 means a used key only if the API has refused a used key with 409', () => {
    expect(probeAnswer(coded(409, 'used'), undefined)).toBe('nothing');
    expect(reuseRefusal(said(409))).toEqual({ status: 409, code: 'http_409' });
    expect(probeAnswer(said(409), reuseRefusal(said(409)))).toBe('taken');
  });

  test('a report of an answer has its status, code, text and fields', () => {
    const invalidParams = [{ name: 'cores', reason: 'too many.' }];
    const told1 = answerText(coded(422, 'no', { title: 'No.', detail: 'Not so...', invalidParams }));
    expect(told1).toBe('422 no · Not so... · cores: too many');
    expect(answerText(said(500, { title: 'No.' }))).toBe('500 · No');
    expect(answerText(said(500))).toBe('500');
  });
});
