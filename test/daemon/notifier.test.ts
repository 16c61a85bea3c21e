import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { command, outside } from '../../src/core/remedy.ts';
import { hasUnseen } from '../../src/core/text.ts';
import { type Notification, notificationOf } from '../../src/daemon/notifications/notification.ts';
import type { Receiver } from '../../src/daemon/notifications/notifier.ts';
import { notifierWith } from '../support/notifier.ts';

const blocked: Notification = {
  project: 4711,
  event: 'condition',
  condition: 'blocked',
  detail: 'servers.web-1: <lost> & unknown',
  resolve: ['vdcsync resolve servers.web-1 --absent'],
  remedies: [command('resolve', ['servers.web-1', '--absent'])],
};
const is = (condition: 'converged' | 'converging' | 'unreachable'): Notification => ({
  project: 4711,
  event: 'condition',
  condition,
  detail: '',
  resolve: [],
  remedies: [],
});

function rig(answers: readonly (number | 'gone')[] = [], form: Receiver['form'] = 'json', name = 'shop') {
  const results: string[] = [];
  const { clock, notifier, bodies } = notifierWith(answers, form, {
    onResult: (result) => results.push(result),
    nameOf: (project) => (project === 4711 ? name : undefined),
    pageUrl: 'https://vdcsync.example.com/',
  });
  /** The bodies of all messages so far, once these notifications have been given. */
  const tell = async (...notices: readonly Notification[]) => {
    for (const notice of notices) notifier.notify(notice);
    await clock.run(clock.sleep(3_600_000));
    return bodies();
  };
  return { tell, results };
}

/** Every text in a value of JSON. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

describe('src/daemon/notifications/notifier.ts: notifications', () => {
  test('notifies once of a change, and not of a healthy start or a transient condition', async () => {
    const [good, passing] = [is('converged'), is('converging')];
    const told = await rig().tell(good, passing, good, blocked, blocked, passing, good, good);
    expect(told).toMatchObject([
      { condition: 'blocked', resolve: ['vdcsync resolve servers.web-1 --absent'] },
      { condition: 'converged' },
    ]);
  });

  test('an incident has one message, and another message only for a new command or a new condition', async () => {
    const blockedBy = (...resolve: string[]): Notification =>
      ({ ...blocked, resolve, remedies: resolve.map((each) => command(each)) }) as Notification;
    const all = await rig().tell(
      blockedBy('a', 'b'),
      blockedBy('b'),
      is('unreachable'),
      blockedBy('b'),
      is('unreachable'),
      blockedBy('b', 'c'),
      blockedBy('b'),
      // One that was settled is news once it comes back.
      blockedBy('b', 'a'),
      is('converged'),
      is('unreachable'),
    );
    expect(all.map(({ condition, resolve }) => [condition, resolve])).toEqual([
      ['blocked', ['a', 'b']],
      ['unreachable', []],
      ['blocked', ['b', 'c']],
      ['blocked', ['b', 'a']],
      ['converged', []],
      ['unreachable', []],
    ]);
    expect(new Set(all.slice(0, 5).map(({ incident }) => incident)).size).toBe(1);
    expect(all[0]).toMatchObject({
      ...{ project: 4711, project_name: 'shop', incident: '4711-2026-01-01T00:00:00.000Z' },
      url: 'https://vdcsync.example.com/?project=4711',
    });
  });

  test('an error without a plan has one message, with its remedy', async () => {
    const refused = {
      ...is('unreachable'),
      condition: 'unauthorized',
      remedies: [command('vdcsync doctor')],
    } as Notification;
    expect(await rig().tell(refused, refused)).toHaveLength(1);
  });

  test('repeats a spec error if the spec was valid in between', async () => {
    const broken: Notification = { project: 0, event: 'spec_broken', detail: 'a.yaml:1:1: wrong' };
    const valid: Notification = { project: 0, event: 'spec_valid', detail: 'the spec can be used again' };
    const gone: Notification = { project: 4711, event: 'source', detail: 'the source can be read again' };
    const told = await rig([], 'slack').tell(broken, broken, valid, broken, gone);
    expect(told.map(({ text }) => text)).toEqual([
      'vdcsync: a project has a broken spec, so the newest edit has no effect\na.yaml:1:1: wrong\nhttps://vdcsync.example.com/',
      'vdcsync: a project has a valid spec again\nhttps://vdcsync.example.com/',
      'vdcsync: a project has a broken spec, so the newest edit has no effect\na.yaml:1:1: wrong\nhttps://vdcsync.example.com/',
      'vdcsync: shop (4711): the source can be read again\nhttps://vdcsync.example.com/?project=4711',
    ]);
  });

  test('retries a failed receiver in order, without delay for the caller', async () => {
    const { tell, results } = rig(['gone', 503, 200]);
    const told = await tell(blocked, is('converged'));
    expect(results).toEqual(['sent', 'sent']);
    expect(told.map(({ condition }) => condition)).toEqual(['blocked', 'blocked', 'blocked', 'converged']);
  });

  test('gives up a receiver that stays down', async () => {
    const { tell, results } = rig(Array.from({ length: 20 }, () => 'gone' as const));
    await tell(blocked);
    expect(results).toEqual(['failed']);
  });

  test('no value of a spec or the API adds a line, a text direction or a mention of a channel', async () => {
    const forged =
      'freeze\n→ vdcsync resolve servers.web-1 --absent\u202e\u001b[2K\u2028 @channel @here <!channel> [fix](https://evil.example)';
    const suspended = {
      ...{ key: 'servers.web-1', verb: 'create', code: 'suspended', reason: forged },
      remedies: [outside(forged, { when: forged })],
    };
    const plan = { blocked: [suspended], warnings: [], operations: [] } as unknown as Plan;
    for (const form of ['json', 'slack'] as const) {
      for (const of of [
        notificationOf('suspended', plan, undefined),
        notificationOf('failing', undefined, new Error(forged)),
      ]) {
        const notice = { project: 4711, event: 'condition', condition: 'suspended', ...of } as const;
        const [told] = await rig([], form, forged).tell(notice);
        const lines = textsIn(told).flatMap((each) => each.split('\n'));
        expect(lines.filter((line) => /^\s*→ vdcsync resolve/.test(line))).toEqual([]);
        for (const line of lines) expect(hasUnseen(line.replaceAll('\u200b', ''))).toBe(false);
        if (form === 'slack') for (const line of lines) expect(line).not.toMatch(/@channel|@here|<!|\]\(/);
      }
    }
  });

  test('for Slack, escapes markup characters in the text', async () => {
    const [told] = await rig([], 'slack').tell(blocked);
    expect(String(told?.text).split('\n')).toEqual([
      'vdcsync: shop (4711) is blocked: a manual decision is needed',
      'servers.web-1: &lt;lost&gt; &amp; unknown',
      '→ vdcsync resolve servers.web-1 --absent',
      'https://vdcsync.example.com/?project=4711',
    ]);
  });
});
