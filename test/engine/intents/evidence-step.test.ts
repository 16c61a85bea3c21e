import { describe, expect, test } from 'vitest';
import type { Evidence } from '../../../src/core/evidence.ts';
import type { InPhase, Intent } from '../../../src/core/state.ts';
import { finish, readForEffect, seenSince } from '../../../src/engine/intents/evidence.ts';
import { kinds } from '../../../src/reconcilers/registry.ts';
import { intentOf, runWith, sentAt, stubRun } from './stub-run.ts';

const minute = 60_000;
const hour = 60 * minute;
const deadlineMs = 40 * minute;
const halt = new AbortController().signal;

/** The writes of each sort. */
const sorts = {
  creation: { key: 'networks.x', kind: 'network', verb: 'create' },
  whole: { key: 'servers.x.firewall', kind: 'firewall', verb: 'update', parentId: '1' },
  deletion: { key: 'networks.x', kind: 'network', verb: 'delete' },
  ip: { key: 'ips.x', kind: 'ip', verb: 'create' },
};
const unconfirmed = (why = 'lost', stage = 'fenced') => ({
  phase: 'unknown',
  unconfirmed: { why, question: { stage, probes: 0 } },
});
const accepted = (end: string, more: object = {}) => ({
  phase: 'accepted',
  answer: { at: sentAt, id: '7', facts: {}, to: 'this_send', end, ...more },
});
/** The stage of a write about whose end the API answered so. */
const stages = {
  unconfirmed: unconfirmed(),
  ended: accepted('reported'),
  unreported: accepted('unreported'),
  failed: accepted('failed', { taskId: 't' }),
  unreadable: unconfirmed('unreadable'),
  server_error: unconfirmed('server_error'),
  refused: unconfirmed('refused'),
  replayed: accepted('unreported', { to: 'unknown_send' }),
};
type Known = keyof typeof stages;
/** A write of a sort, and the stage of it: `creation ended`. */
function writeOf(text: string) {
  const [sort, known] = text.split(' ');
  return { ...sorts[sort as keyof typeof sorts], ...stages[known as Known] };
}
const rowsOf = (table: string) =>
  table
    .trim()
    .split('\n')
    .map((row) => row.trim().split(/ *\| */) as [string, ...string[]]);

const verdicts: Readonly<Record<Evidence['verdict'], Evidence>> = {
  done: { verdict: 'done', id: '7', certain: true },
  pending: { verdict: 'pending', id: '7' },
  failed: { verdict: 'failed', id: '7', detail: 'broken' },
  not_done: { verdict: 'not_done', gone: true },
  unseen: { verdict: 'unseen', reason: 'no list', candidates: [] },
  unclear: { verdict: 'unclear', reason: 'two of them', candidates: ['7', '8'] },
};

/** A run in which the reads give this evidence. */
function reading({
  found = verdicts.done,
  /** The token was exchanged during the reads. */
  isExchanged = false,
  ageMs = 2 * hour,
  settings = {} as object,
  marked = [] as readonly string[],
  open = [] as readonly Intent[],
  longestMs = 0,
  past = [] as readonly Intent[],
  task = { end: 'succeeded' } as object,
  sinceMs = {} as Readonly<Record<string, number>>,
  firewall = false,
  /** The ids of the server of the firewall, bound before the write. */
  bound = [] as readonly string[],
  /** Other fields of the intent. */
  and = {} as object,
} = {}) {
  const made = stubRun({ ageMs, past });
  const now = sentAt + ageMs;
  const told: unknown[] = [];
  const waits: object[] = [];
  const ports: unknown[] = [];
  const changes: (readonly { readonly type: string }[])[] = [];
  const subject = {
    ...{ key: 'servers.x.firewall', kind: 'firewall', parent: 'servers.x' },
    desired: { managed: true, value: { enabled: true } },
  };
  const run = runWith(made.run, {
    ...{
      halt,
      gate: { firewallAfterMs: firewall ? 1 : 0, postpone: (...given: unknown[]) => told.push(given) },
    },
    ...{
      grace: new Set(),
      desired: { settings: { exclusive: true, unconfirmed_servers: 'retry', ...settings } },
    },
    report: (_of: unknown, step: string, detail: string, wait?: object) =>
      void told.push([step, detail, ...(wait === undefined ? [] : [wait])]),
    read: async (read: () => unknown) => {
      const result = await read();
      return isExchanged ? undefined : result;
    },
    bindings: new Map(bound.map((id) => ['servers.x', { key: 'servers.x', kind: 'server', id, boundAt: 0 }])),
    intents: new Map(open.map((each) => [each.key, each])),
    world: {
      ...made.run.world,
      ...{
        idOf: () => undefined,
        subjects: new Map([[subject.key, subject]]),
        childrenOf: () => (firewall ? [subject] : []),
      },
    },
    cache: { since: (at: number, port?: unknown) => ({ apiNow: () => now, at, port }), forget: () => {} },
    stopwatch: {
      since: (_id: string, moment: string, at: number) =>
        sinceMs[moment] ??
        (['sent', 'not_seen', 'accepted', 'ended'].includes(moment) ? now - at : Number.NaN),
      until: (_id: string, moment: string, at: number) =>
        moment === 'due' ? Math.max(0, at - now) : Number.NaN,
      isMarked: (_id: string, moment: string) => marked.includes(moment),
      mark: (...given: unknown[]) => void told.push(given),
    },
    kindOf: (name: Intent['kind']) => ({
      ...{ name, setting: kinds.get(name)?.setting, timing: { deadlineMs, showsWithinMs: 10 * minute } },
      bind: () => ({ identity: {}, applied: null, keep: false }),
      writes: {
        evidence: async (_intent: unknown, read: unknown, known: (kind: string) => unknown) => {
          ports.push([read, known('network')]);
          return found;
        },
      },
    }),
    deps: {
      reads: (lane: string) => lane,
      tasks: {
        ...{ usual: async () => 5 * minute, longest: async () => longestMs, earliest: async () => 9 },
        wait: async (of: { onNextPoll: (ms: number) => void; isUrgent: () => boolean }) => {
          of.onNextPoll(3);
          waits.push({ ...of, isUrgent: of.isUrgent(), onNextPoll: undefined });
          return task;
        },
      },
      store: { incarnation: async () => 0, lastAttempt: async () => -1 },
    },
    close: async (_intent: unknown, ended: object, given: readonly { readonly type: string }[]) => {
      made.ends.push({ ...ended });
      changes.push(given);
    },
  });
  /** One step of the write, with its recorded stage or end. */
  const step = async (more: object) => {
    const intent = intentOf({ detail: 'why', dueAt: sentAt, ...more, ...and });
    if (!run.intents.has(intent.key)) (run.intents as unknown as Map<string, Intent>).set(intent.key, intent);
    const progress =
      intent.phase === 'unknown'
        ? await readForEffect(run, intent as InPhase<'unknown'>)
        : await finish(run, intent as InPhase<'accepted'>, halt);
    const [patch] = made.recorded;
    const { phase } = (patch?.stage ?? {}) as { phase?: string };
    const shown =
      progress.now === 'again'
        ? `again ${progress.afterMs / 1_000}`
        : progress.now === 'closed'
          ? `closed ${progress.outcome}`
          : progress.now === 'blocked' && progress.code;
    if (phase === 'blocked') return `asks ${shown}`;
    return phase === undefined ? shown : `${shown}, ${phase}`;
  };
  return { ...made, run, step, told, waits, ports, changes };
}

const seenNot = { notSeenAt: sentAt + hour };

/** After two reads that did not find the resource: done, pending, failed, not_done, unseen, unclear. */
const afterTwoReads = rowsOf(`
  creation unconfirmed | closed done | again 0, accepted | tainted | closed absent | closed absent | asks outcome_unknown
  whole unconfirmed | closed done | stuck | tainted | closed absent | asks outcome_unknown | asks outcome_unknown
  deletion unconfirmed | closed done | stuck | closed done | again 0, waiting | asks outcome_unknown | asks outcome_unknown
  creation ended | closed done | stuck | tainted | closed absent | asks outcome_unknown | asks outcome_unknown
  whole ended | closed done | stuck | tainted | closed absent | asks outcome_unknown | asks outcome_unknown
  deletion ended | closed done | stuck | closed done | closed absent | asks outcome_unknown | asks outcome_unknown
  creation unreported | closed done | stuck | tainted | stuck | asks outcome_unknown | asks outcome_unknown
  whole unreported | closed done | stuck | tainted | closed absent | asks outcome_unknown | asks outcome_unknown
  deletion unreported | closed done | stuck | closed done | closed absent | asks outcome_unknown | asks outcome_unknown
  creation failed | tainted | tainted | tainted | closed failed | asks task_failed | asks task_failed
  whole failed | closed done | stuck | tainted | closed failed | asks task_failed | asks task_failed
  deletion failed | closed done | stuck | closed done | closed failed | asks task_failed | asks task_failed
`);

/** The first read, a minute after the write: done, pending, not_done. Then the same two hours after the write. */
const firstRead = rowsOf(`
  creation unconfirmed | closed done | again 0, accepted | again 60 | closed done | again 0, accepted | again 60, unknown
  whole unconfirmed | closed done | again 25 | again 60, unknown | closed done | stuck | again 60, unknown
  deletion unconfirmed | again 60, unknown | again 25 | again 0, waiting | again 60, unknown | stuck | again 0, waiting
  creation ended | closed done | again 25 | again 60, accepted | closed done | stuck | again 60, accepted
  whole ended | closed done | again 25 | again 60, accepted | closed done | stuck | again 60, accepted
  deletion ended | closed done | again 25 | again 60, accepted | closed done | stuck | again 60, accepted
  creation unreported | closed done | again 25 | again 25 | closed done | stuck | again 60, accepted
  whole unreported | closed done | again 25 | again 25 | closed done | stuck | again 60, accepted
  deletion unreported | again 60, accepted | again 25 | again 25 | again 60, accepted | stuck | again 60, accepted
  creation failed | tainted | tainted | again 60 | tainted | tainted | again 60, accepted
  whole failed | closed done | again 25 | closed failed | closed done | stuck | closed failed
  deletion failed | again 60, accepted | again 25 | closed failed | again 60, accepted | stuck | closed failed
`);

describe('src/engine/intents/evidence.ts', () => {
  const { creation, whole, ip } = sorts;
  const absent = { verdict: 'not_done', gone: true } as const;

  test.each(afterTwoReads)('after two reads, a %s', async (write, ...expected) => {
    const steps = Object.values(verdicts).map((found) =>
      reading({ found, bound: ['1'], and: seenNot }).step(writeOf(write)),
    );
    expect(await Promise.all(steps)).toEqual(expected);
  });

  test.each(firstRead)('at the first read, a %s', async (write, ...expected) => {
    const { done, pending } = verdicts;
    const steps = [minute, 2 * hour].flatMap((ageMs) =>
      [done, pending, absent].map((found) => reading({ found, ageMs, bound: ['1'] }).step(writeOf(write))),
    );
    expect(await Promise.all(steps)).toEqual(expected);
  });

  const newIp: Evidence = { verdict: 'done', id: '7', certain: false, called: '203.0.113.1' };
  const creationBeside = (more: object) => [intentOf({ ...ip, id: 'o', key: 'ips.o', ...more })];
  const beside = (more: object) => ({ found: newIp, open: creationBeside(more) });
  const blocked = { ...unconfirmed(), phase: 'blocked' };
  const inCreation = [
    intentOf({ key: 'servers.x', kind: 'server', ...accepted('reported', { at: sentAt + 2 * hour }) }),
  ];
  const candidate: Evidence = { ...verdicts.unseen, verdict: 'unseen', reason: '', candidates: ['9'] };
  const asks = 'asks outcome_unknown';
  const absentAt = (ageMs: number, more: object = {}) => ({ found: absent, ageMs, ...more });
  /** Two reads have not found the resource. */
  const goneSince = { found: absent, and: seenNot };
  const notAlone = { found: newIp, settings: { exclusive: false } };
  const [sentLate, sentLater] = [{ lastSentAt: sentAt + 2 * hour }, { lastSentAt: sentAt + 119 * minute }];
  const strays = { ...goneSince, found: { ...absent, strays: true } };
  const byHand = { found: verdicts.unseen, settings: { unconfirmed_servers: 'ask' } };
  const two = [...creationBeside({ ...blocked, key: 'ips.p' }), ...creationBeside({})];
  const dueIn = (ms: number) => ({ and: { dueAt: sentAt + 2 * hour + ms } });
  test.each<[string, string, NonNullable<Parameters<typeof reading>[0]>, string]>([
    ['waits for the request to time out', 'whole unconfirmed', { ageMs: 40_000 }, 'again 10'],
    ['begins reads at that moment', 'whole unconfirmed', { ageMs: 50_000 }, 'closed done'],
    ['waits until reads are due', 'whole unconfirmed', dueIn(5_000), 'again 5'],
    ['waits for the reads after a failed task', 'creation failed', dueIn(5_000), 'again 5'],
    ['reads when they are due after a failed task', 'creation failed', dueIn(0), 'tainted'],
    ['does not wait after a success', 'creation ended', dueIn(5_000), 'closed done'],
    ['reads again if the token was exchanged', 'creation ended', { isExchanged: true }, 'again 0'],
    ['shows an id that fits no path', 'creation ended', { found: { ...newIp, id: '..' } }, asks],
    ['may show late', 'creation unconfirmed', absentAt(12 * minute, { longestMs: 8.5 * minute }), 'again 45'],
    ['shows by now', 'creation unconfirmed', absentAt(12 * minute), 'again 60, unknown'],
    ['shows in half a second', 'creation unconfirmed', absentAt(10 * minute - 500), 'again 0.5'],
    ['shows at that moment', 'creation unconfirmed', absentAt(10 * minute), 'again 60, unknown'],
    ['may have been read too early', 'creation ended', absentAt(59_000), 'again 1'],
    ['is read after its end', 'creation ended', { found: absent, sinceMs: { ended: 20_000 } }, 'again 40'],
    ['is read again later', 'creation ended', { ...goneSince, sinceMs: { not_seen: 20_000 } }, 'again 40'],
    ['is absent then', 'creation ended', { ...goneSince, sinceMs: { not_seen: minute } }, 'closed absent'],
    ['is at its deadline', 'creation ended', { found: verdicts.pending, ageMs: deadlineMs }, 'again 60'],
    ['was answered late', 'creation ended', { found: absent, and: sentLate }, 'again 60, accepted'],
    ['is past its deadline', 'creation ended', { found: verdicts.pending, ageMs: deadlineMs + 1 }, 'stuck'],
    ['is young', 'creation ended', { found: verdicts.pending, sinceMs: { accepted: 4_000 } }, 'again 11'],
    ['was sent late', 'whole unconfirmed', { found: verdicts.pending, and: sentLater }, 'again 25'],
    ['has no task', 'creation replayed', goneSince, 'asks not_there'],
    ['left some', 'creation failed', strays, 'asks task_failed'],
    ['left none', 'creation failed', { ...goneSince, found: { ...absent, strays: false } }, 'closed failed'],
    ['has its answer under the key', 'creation unreadable', goneSince, 'key_not_answered, unknown'],
    ['has none', 'whole unreadable', { ...goneSince, bound: ['1'] }, 'closed absent'],
    ['had one', 'creation unreadable', { ...goneSince, ageMs: 24 * hour }, 'asks key_too_old'],
    ['is shown by a read', 'creation unreadable', {}, 'closed done'],
    ['is shown by a list', 'ip unreadable', notAlone, 'key_not_answered, unknown'],
    ['shows in no read', 'creation unconfirmed', { found: verdicts.unseen }, 'closed absent'],
    ['is asked about', 'creation unconfirmed', byHand, asks],
    ['may have had an effect', 'creation server_error', { found: verdicts.unseen }, asks],
    ['was refused later', 'creation refused', { found: verdicts.unseen }, asks],
    ['has a candidate', 'creation unconfirmed', { found: candidate }, asks],
    ['is alone in its project', 'ip unconfirmed', { found: newIp }, 'closed done'],
    ['is not alone', 'ip unconfirmed', notAlone, asks],
    ['is old', 'ip unconfirmed', { found: newIp, ageMs: 24 * hour }, asks],
    ['has a candidate', 'ip failed', notAlone, 'asks task_failed'],
    ['is beside a creation that is sent', 'ip unconfirmed', beside({}), 'again 5'],
    ['is beside one its key settles', 'ip unconfirmed', beside(unconfirmed('lost', 'asking')), 'again 5'],
    ['is beside an unconfirmed one', 'ip unconfirmed', beside(unconfirmed()), asks],
    ['is beside one that waits', 'ip unconfirmed', beside({ ...unconfirmed(), phase: 'waiting' }), 'again 5'],
    ['is beside a blocked one', 'ip unconfirmed', beside(blocked), asks],
    ['is beside two', 'ip unconfirmed', { found: newIp, open: two }, 'again 5'],
    ['is beside an accepted one', 'ip unconfirmed', beside(accepted('reported', { id: '8' })), 'closed done'],
    ['is beside a deletion', 'ip unconfirmed', beside({ verb: 'delete' }), 'closed done'],
    ['is beside one of another kind', 'ip unconfirmed', beside({ kind: 'network' }), 'closed done'],
    ['is identified', 'ip unconfirmed', { ...beside({}), found: { ...newIp, certain: true } }, 'closed done'],
    ['was reset', 'whole ended', { found: absent }, 'closed absent'],
    ['waits for the end of its server', 'whole ended', { open: inCreation }, 'again 5'],
  ])('a write %s (%s, %#)', async (_name, write, given, expected) => {
    expect(await reading(given).step(writeOf(write))).toBe(expected);
  });

  test('a wait for the task of a write ends with its next step', async () => {
    const write = { ...creation, ...accepted('reported', { taskId: 't' }) };
    const played = async (task: object, given: object = {}, more: object = {}) => {
      const made = reading({ ageMs: 20 * minute, task, ...given });
      return { ...made, shown: await made.step({ ...write, ...more }) };
    };
    expect(await played({ end: 'stuck' })).toMatchObject({ shown: 'stuck', recorded: [] });
    const failed = await played({ end: 'failed', detail: 'no room' });
    expect(failed.shown).toBe('again 60, accepted');
    const stage = { phase: 'accepted', answer: { id: '7', taskId: 't', end: 'failed' } };
    const dueAt = sentAt + 21 * minute;
    expect(failed.recorded).toMatchObject([{ stage, detail: 'no room', dueAt }]);
    expect((await played({ end: 'failed' })).recorded).toMatchObject([
      { detail: 'the API gives no reason', dueAt },
    ]);
    const lost = await played({ end: 'lost' });
    expect(lost).toMatchObject({
      shown: 'again 0, accepted',
      recorded: [{ stage: { answer: { end: 'unreported' } } }],
    });

    const succeeded = await played({ end: 'succeeded' }, { sinceMs: { accepted: 7_000 } });
    expect(succeeded.shown).toBe('closed done');
    expect(succeeded.told).toContainEqual(['i', 'ended']);
    expect([...(succeeded.run.signals.grace as never as string[])]).toEqual([]);
    const acceptedAt = sentAt + 20 * minute - 7_000;
    expect(succeeded.waits).toMatchObject([
      { id: 't', sort: 'create_network', acceptedAt, deadlineMs, isUrgent: false },
    ]);
    const times = { untilMs: acceptedAt + 5 * minute, deadlineMs: acceptedAt + deadlineMs };
    expect(succeeded.told).toContainEqual(['task', 't', times]);
    expect(succeeded.told).toContainEqual(['networks.x.firewall', 3]);

    for (const more of [seenNot, {}]) {
      const { waits, shown } = await played({}, { marked: more === seenNot ? [] : ['ended'] }, more);
      expect([waits, shown]).toEqual([[], 'closed done']);
    }
  });

  test('a read reports the question that it answers', async () => {
    const write = { ...creation, ...accepted('reported', { taskId: 't' }) };
    const asked = async (more: object, given: Parameters<typeof reading>[0] = {}) => {
      const { step, told } = reading(given);
      await step(more);
      return told.flatMap((each) =>
        ['checking', 'failed'].includes((each as string[])[0] ?? '') ? [each] : [],
      );
    };
    expect(await asked(writeOf('creation unconfirmed'))).toEqual([
      ['checking', 'whether the write had its effect'],
    ]);
    const isReady = ['checking', 'whether the new network is ready'];
    expect(await asked(writeOf('creation ended'))).toEqual([isReady]);
    expect(await asked(write)).toEqual([isReady]);
    expect(await asked(writeOf('creation failed'))).toEqual([
      ['checking', 'whether the failed task left a resource'],
    ]);
    expect(await asked(write, { task: { end: 'failed', detail: 'no room' } })).toEqual([
      ['failed', 'no room'],
    ]);
  });

  test('the firewall of a new server is sent before the reads of the server', async () => {
    const write = {
      key: 'servers.x',
      kind: 'server',
      verb: 'create',
      ...accepted('reported', { taskId: 't' }),
    };
    const made = reading({ ageMs: 20 * minute, firewall: true });
    expect(await made.step(write)).toBe('again 0');
    expect([...(made.run.signals.grace as never as string[])]).toEqual(['servers.x']);
    expect(made.waits).toMatchObject([{ isUrgent: true }]);
    const read = { at: 20 * minute, port: 'operation' };
    const ended = reading({ ageMs: 20 * minute, firewall: true, marked: ['ended'] });
    await ended.step(write);
    expect(ended.ports).toMatchObject([[read, new Set()]]);
    const other = reading({ ageMs: 20 * minute });
    await other.step(write);
    expect(other.ports).toMatchObject([[{ ...read, port: 'evidence' }, new Set()]]);
  });

  test('evidence of an earlier send is its answer', async () => {
    const facts = { address: '203.0.113.1' };
    for (const [given, known] of [
      [{ facts }, facts],
      [{}, {}],
    ] as const) {
      const { step, recorded, told } = reading({ found: { verdict: 'pending', id: '7', ...given } });
      await step({ ...creation, ...unconfirmed() });
      const answer = { at: sentAt + 2 * hour, id: '7', facts: known, to: 'earlier_send', end: 'reported' };
      expect(recorded).toEqual([{ stage: { phase: 'accepted', answer } }]);
      expect(told).toContainEqual(['i', 'accepted']);
    }
  });

  test.each<[string, Known, Evidence, string]>([
    ['failed', 'ended', verdicts.failed, 'broken'],
    ['pending', 'failed', verdicts.pending, 'its task failed (why)'],
    ['done', 'failed', verdicts.done, 'its task failed (why)'],
  ])('a resource that is %s after a creation that has %s is bound as tainted', async (_name, known, found, tainted) => {
    const { step, changes } = reading({ found });
    await step({ ...creation, ...stages[known] });
    expect(changes).toMatchObject([[{ type: 'bind', binding: { id: '7', tainted } }]]);
  });

  test('the reads that find nothing are recorded once, with their time', async () => {
    for (const [more, found] of [
      [{ ...creation, ...unconfirmed() }, { unconfirmed: unconfirmed().unconfirmed }],
      [{ ...creation, ...stages.ended }, { answer: stages.ended.answer }],
    ] as const) {
      const { step, recorded, told } = reading({ found: absent });
      await step(more);
      const phase = more.phase;
      expect(recorded).toEqual([{ stage: { phase, ...found, notSeenAt: sentAt + 2 * hour } }]);
      expect(told).toContainEqual(['i', 'not_seen']);
      const untilMs = sentAt + 2 * hour + minute;
      expect(told).toContainEqual(['checking', 'again, to be sure', { untilMs }]);
    }
    const early = reading({ found: absent, ageMs: 5 * minute });
    await early.step({ ...creation, ...unconfirmed() });
    const untilMs = sentAt + 11 * minute;
    expect(early.told).toContainEqual(['checking', expect.any(String), { untilMs }]);
  });

  test('an operator is asked with the candidates, and with the reason', async () => {
    const asked = async (known: Known | object, found: Evidence, write: object = ip) => {
      const { step, recorded } = reading({ found, settings: { exclusive: false } });
      await step({ ...write, ...(typeof known === 'string' ? stages[known] : known) });
      return (recorded[0]?.stage as { blocked?: object } | undefined)?.blocked;
    };
    const named = 'address 7 (203.0.113.1) is new, and may be the created resource';
    const ofLost = `the answer was lost, and ${named}`;
    expect(await asked('unconfirmed', newIp)).toMatchObject({ reason: ofLost, candidates: ['7'] });
    expect(await asked('ended', { verdict: 'done', id: '7', certain: false })).toMatchObject({
      reason: named.replace(' (203.0.113.1)', ''),
    });
    expect(await asked('unreported', newIp)).toMatchObject({ reason: named });
    expect(await asked('failed', verdicts.unclear)).toMatchObject({
      ...{ reason: 'its task failed (why), and two of them', candidates: ['7', '8'] },
    });
    expect(await asked('ended', { ...newIp, id: '..' })).toMatchObject({ candidates: [] });
    const text = 'the API answered with a server error, which may have had an effect, and two of them';
    expect(await asked(unconfirmed('server_error'), verdicts.unclear)).toMatchObject({ reason: text });
  });

  test.each([
    ['of a resource has the next incarnation', creation, [{ type: 'next_incarnation', key: creation.key }]],
    ['of a setting has the next attempt', whole, []],
  ])('the retry %s after a failed task, and there is one at most', async (_name, of, next) => {
    const { step, ends, changes } = reading({ found: absent });
    const failed = { ...of, ...stages.failed, notSeenAt: 0 };
    expect(await step(failed)).toBe('closed failed');
    expect(ends).toMatchObject([{ outcome: 'failed', text: 'the task failed: why' }]);
    expect(changes).toEqual([next]);
    const past = [intentOf({ id: 'earlier', ...of, phase: 'closed', outcome: 'failed' })];
    const again = reading({ found: absent, past });
    expect(await again.step(failed)).toBe('task_failed');
    expect(again.changes).toEqual([next]);
  });

  const asking = (more: object = {}, candidates: readonly string[] = []) =>
    intentOf({
      ...creation,
      ...{ phase: 'blocked', blocked: { code: 'outcome_unknown', reason: 'no', candidates } },
      ...{ unconfirmed: unconfirmed().unconfirmed },
      ...more,
    }) as InPhase<'blocked'>;
  const notThere = { unconfirmed: undefined, blocked: { code: 'not_there', reason: 'no', candidates: [] } };
  const backup = { kind: 'backup', key: 'servers.x.backup' };
  const madeEight = { kind: 'network', ...accepted('reported', { id: '8' }) };
  const isItsAnswer = { open: creationBeside(madeEight) };
  test.each<[string, InPhase<'blocked'>, Evidence, boolean, Parameters<typeof reading>[0]?]>([
    ['a resource that is certainly the created one', asking(), verdicts.done, true],
    ['a resource that an accepted creation made', asking(notThere), verdicts.done, true],
    ['a resource that a list shows', asking(), newIp, false],
    ['a resource that is not ready', asking(), verdicts.pending, false],
    ['a resource beside other candidates', asking({}, ['8']), verdicts.done, false],
    ['a resource beside one of another entry', asking({}, ['8']), verdicts.done, true, isItsAnswer],
    [
      'a resource after another question',
      asking({ ...notThere, blocked: { ...notThere.blocked, code: 'odd' } }),
      verdicts.done,
      false,
    ],
    ['an update', asking({ ...whole }), verdicts.done, false],
    ['a later backup', asking(backup), verdicts.done, false],
  ])('a question is answered by %s: %#', async (_name, intent, found, isAnswered, given) => {
    const { run } = reading({ found, ...given });
    (run.intents as unknown as Map<string, Intent>).set(intent.key, intent);
    const progress = await seenSince(run, intent);
    if (isAnswered) expect(progress).toMatchObject({ now: 'closed', outcome: 'done' });
    else expect(progress).toBeUndefined();
    expect(await seenSince(reading({ isExchanged: true }).run, asking())).toBeUndefined();
  });
});
