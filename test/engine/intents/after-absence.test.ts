import { describe, expect, test } from 'vitest';
import type { Intent, KeyQuestion, WhyUnknown } from '../../../src/core/state.ts';
import { sendAgain } from '../../../src/engine/intents/not-there.ts';
import { hour } from '../shop.ts';
import { intentOf, sentAt, stubRun } from './stub-run.ts';

const minute = 60_000;

interface Write {
  readonly kind: 'network' | 'server' | 'firewall';
  readonly verb: Intent['verb'];
  readonly why?: WhyUnknown;
  readonly stage?: KeyQuestion['stage'];
  readonly lasting?: string;
  readonly sends?: number;
  readonly lost?: number;
  /** Ends of earlier attempts. */
  readonly before?: readonly string[];
  /** Ms since the send. */
  readonly ageMs?: number;
}

/** The step after reads have shown no effect: the progress, the recorded stage, and the end. */
async function stepAfter({ kind, verb, why, stage = 'asking', lasting, before = [], ...write }: Write) {
  const { sends = 1, lost = 1, ageMs = 20 * minute } = write;
  const question = { stage, probes: 2, ...(lasting === undefined ? {} : { lasting }) };
  const intent = intentOf({
    ...{ kind, verb, sends, lost, phase: 'unknown' },
    ...(why === undefined ? {} : { unconfirmed: { why, question } }),
  });
  const past = before.map((outcome) => ({ verb, incarnation: '0', phase: 'closed', outcome }));
  const { run, recorded, ends } = stubRun({ ageMs, past });
  const progress = await sendAgain({ run, intent });
  return { progress, done: recorded[0] ?? ends[0] };
}

const sameKey = (why: WhyUnknown) => ({
  progress: { now: 'again', afterMs: 0 },
  done: { stage: { phase: 'waiting', unconfirmed: { why, question: { stage: 'asking', probes: 0 } } } },
});
const nextKey = (outcome = 'absent') => ({ progress: { now: 'closed', retryAfterMs: 0 }, done: { outcome } });
const asks = (code: string) => ({
  progress: { now: 'blocked', code },
  done: { stage: { phase: 'blocked', blocked: { code } } },
});
const laterRun = (code: string, outcome = 'absent') => ({
  progress: { now: 'blocked', code },
  done: { outcome },
});
const waitsFor = (ms: number) => ({ progress: { now: 'again', afterMs: ms } });

const writeOf =
  (kind: Write['kind'], verb: Write['verb']) =>
  (why?: WhyUnknown, more: Partial<Write> = {}): Write => ({ kind, verb, ...(why && { why }), ...more });
const creation = writeOf('network', 'create');
const update = writeOf('server', 'update');
const put = writeOf('firewall', 'update');
const deletion = writeOf('network', 'delete');
const [fenced, open] = [{ stage: 'fenced' }, { stage: 'open' }] as const;
const thrice = { before: ['absent', 'absent', 'absent'] };

describe('src/engine/intents/not-there.ts', () => {
  test.each<[string, Write, object]>([
    ['a refused creation', creation('refused', { ...open, sends: 2 }), sameKey('refused')],
    ['a creation that is refused again', creation('refused', { ...open, sends: 3 }), asks('outcome_unknown')],
    ['a lost creation after many sends', creation('lost', { ...open, sends: 3 }), sameKey('lost')],
    ['a refused creation whose key is fenced', creation('refused', { ...fenced, sends: 3 }), nextKey()],
    ['a lasting refusal', creation('conflict', { ...fenced, lasting: 'odd' }), laterRun('odd')],
    ['a fourth server error', creation('server_error', { ...fenced, ...thrice }), laterRun('server_error')],
    ['an old key', creation('lost', { ...fenced, ageMs: 23 * hour }), asks('key_too_old')],
    ['an old key of an update', update('lost', { ageMs: 23 * hour }), asks('key_too_old')],
    ['an unreadable answer', update('unreadable'), sameKey('unreadable')],
    ['a third lost update', update('lost', { lost: 3 }), asks('outcome_unknown')],
    ['a tenth send', deletion('conflict', { sends: 10 }), asks('outcome_unknown')],
    ['a fourth lost PUT of a firewall', put('lost', thrice), laterRun('outcome_unknown')],
    ['a refused update', update('refused'), nextKey()],
    ['a deletion of an unfound resource that shows', deletion('not_found'), laterRun('not_found', 'refused')],
    ['a server error to an update', update('server_error', { ageMs: minute }), nextKey()],
    ['a gateway error to an update', update('gateway_error', { ageMs: 15 * minute }), nextKey()],
    ['a gateway error a moment ago', update('gateway_error', { ageMs: 5 * minute }), waitsFor(10 * minute)],
  ])('%s', async (_name, write, step) => {
    expect(await stepAfter(write)).toMatchObject(step);
  });

  test('a write behind a gateway is waited for, and stays unconfirmed', async () => {
    const { done } = await stepAfter(update('gateway_error', { ageMs: 5 * minute }));
    expect(done).toMatchObject({
      stage: { phase: 'unknown', unconfirmed: { why: 'gateway_error' } },
      dueAt: sentAt + 15 * minute,
    });
  });
});
