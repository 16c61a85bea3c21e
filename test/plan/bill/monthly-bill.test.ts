import { describe, expect, test } from 'vitest';
import type { PriceSource } from '../../../src/core/catalogue.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { documentedProfile } from '../../../src/core/profile.ts';
import type { Binding, Intent, JournalEntry } from '../../../src/core/state.ts';
import { monthOf } from '../../../src/core/time.ts';
import { billedTime } from '../../../src/plan/bill/billed-time.ts';
import { monthCostOf, monthlyBill } from '../../../src/plan/bill/monthly-bill.ts';
import { kinds } from '../../../src/reconcilers/registry.ts';

const types = [{ id: 1, name: 'sliders-1', pricing_mode: 'sliders', gpu: false }];
const source = {
  catalogue: { types, pricing: new Map(), images: new Map() },
  profile: {
    ...documentedProfile,
    prices: {
      currency: 'EUR',
      address: '3.00',
      servers: { 'sliders-1': { core: '10.00', memory_gb: '0', disk_gb: '0' } },
    },
  },
} as unknown as PriceSource;

/** The moment of `11-16`, in 2026, or of a date with its year. */
const at = (text: string) => {
  const [date, time = '00:00:00'] = text.split('T');
  return Date.parse(`${text.startsWith('20') ? date : `2026-${date}`}T${time}Z`);
};

/** A journal, written line by line. The clock of the API is `skewMs` ahead of the local one. */
class Story {
  readonly lines: JournalEntry[] = [];
  readonly intents: Intent[] = [];
  readonly #skewMs: number;

  constructor(skewMs = 0) {
    this.#skewMs = skewMs;
  }

  /** A write that was sent at that local time, and answered at once. `to`: see the type of an answer. */
  write(text: string, verb: string, parts: Record<string, unknown> = {}): string {
    const [sentAt, id] = [at(text), `i${this.intents.length}`];
    const { to = 'this_send', answered = sentAt, ...rest } = parts as { to?: string; answered?: number };
    const answer = { at: answered, apiAt: answered + this.#skewMs, facts: {}, to, end: 'reported', id: '1' };
    const times = { firstSentAt: sentAt, firstSentApiAt: sentAt + this.#skewMs, lastSentAt: sentAt };
    const write = { id, key: 'servers.a', kind: 'server', verb, request: { body: {} }, phase: 'closed' };
    this.intents.push({ ...write, closedAt: answered, ...times, answer, ...rest } as unknown as Intent);
    return id;
  }

  bound(text: string, intentId?: string, parts: Partial<Binding> & { cores?: number } = {}): this {
    const { cores = 1, ...rest } = parts;
    const body = { server_type_id: 1, cores, memory_mb: 1024, disk_gb: 1 };
    const binding = { key: 'servers.a', kind: 'server', id: '1', identity: {}, applied: { body }, ...rest };
    return this.#line(text, binding.key, 'bound', { binding }, intentId);
  }

  released(text: string, gone: boolean, intentId?: string, key = 'servers.a'): this {
    return this.#line(text, key, 'released', { gone, reason: '' }, intentId);
  }

  bill(month = '2026-11', now = '2027-01-01') {
    const time = billedTime(this.lines, this.intents);
    return monthlyBill(time, monthOf(month) ?? expect.fail(), at(now), kinds, source);
  }

  #line(text: string, key: string, event: JournalEntry['event'], data: unknown, intentId?: string): this {
    const line = { at: at(text), key: key as ResourceKey, event, data: data as JournalEntry['data'] };
    this.lines.push(intentId === undefined ? line : { ...line, intentId });
    return this;
  }
}

function created(text: string, cores = 1, story = new Story()): Story {
  return story.bound(text, story.write(text, 'create'), { cores });
}

function item(story: Story, ...of: Parameters<Story['bill']>) {
  const { items } = story.bill(...of);
  expect(items).toHaveLength(1);
  return items[0];
}

describe('src/plan/bill/monthly-bill.ts', () => {
  test.each([
    ['a whole month costs the monthly price', '10-05', '2026-11', '10.00'],
    ['half of a month of 30 days', '11-16', '2026-11', '5.00'],
    ['half of a month of 31 days', '12-16T12:00:00', '2026-12', '5.00'],
    ['a day of February in a leap year', '2028-02-29', '2028-02', '0.34'],
    ['a day of February in another year', '2027-02-28', '2027-02', '0.36'],
    ['an hour before the end of the month', '11-30T23:00:00', '2026-11', '0.01'],
  ])('%s', (_name, from, month, cost) => {
    expect(item(created(from), month, '2029-01-01')).toMatchObject({
      cost,
      cost_at_least: cost,
      monthly: '10.00',
    });
  });

  test('the current month counts until now, and the forecast continues to its end', () => {
    const { cost, run_rate, forecast } = created('11-01').bill('2026-11', '11-04');
    expect({ cost, run_rate, forecast }).toEqual({ cost: '1.00', run_rate: '10.00', forecast: '10.00' });
  });

  test('a resource costs nothing in a month before it and in a month after it', () => {
    const story = created('11-10');
    story.released('11-20', true, story.write('11-20', 'delete'));
    for (const month of ['2026-10', '2026-12']) expect(story.bill(month).items).toEqual([]);
    expect(item(story)).toMatchObject({ cost: '3.33', ended: 'deleted' });
    expect(story.bill('2026-11', '11-25')).toMatchObject({ run_rate: '0.00', forecast: '3.33' });
  });

  test('a deletion with a task may end at any moment from its answer to the end of the task', () => {
    const story = created('11-01');
    const id = story.write('11-16', 'delete', { answer: undefined });
    story.released('11-17', true, id);
    expect(item(story)).toMatchObject({ cost: '5.33', cost_at_least: '5.00' });
  });

  test.each([
    ['whose answer was lost may have taken effect', { outcome: 'absent' }, false, '2.00'],
    ['that the API refused had no effect', { outcome: 'refused' }, false, '5.00'],
    ['of another resource of the key had no effect', { outcome: 'absent', incarnation: '0' }, false, '5.00'],
    ['had no effect, if the API accepts a later one', { outcome: 'absent' }, true, '5.00'],
  ])('an earlier deletion %s', (_name, earlier, isAccepted, cost_at_least) => {
    const story = created('11-01');
    const lost = { answer: undefined, incarnation: '1' };
    story.write('11-07', 'delete', { ...lost, ...earlier });
    const later = isAccepted ? { incarnation: '1' } : lost;
    const id = story.write('11-16', 'delete', later);
    story.released('11-17', true, id);
    expect(item(story)).toMatchObject({ cost_at_least });
  });

  test('a resize changes the price from its answer on', () => {
    const story = created('11-01');
    story.bound('2026-11-16T00:05:00', story.write('11-16', 'update'), { cores: 3 });
    expect(item(story)).toMatchObject({ cost: '20.00', monthly: '30.00' });
  });

  test('a resize that was sent twice may have had its effect at the first send', () => {
    const story = created('11-01');
    const [answered, last] = [at('11-16'), { lastSentAt: at('11-16'), sends: 2 }];
    const id = story.write('11-07', 'update', { answered, ...last });
    story.bound('2026-11-16T00:05:00', id, { cores: 3 });
    expect(item(story)).toMatchObject({ cost_at_least: '20.00', cost: '26.00' });
  });

  test('a size without a price is named, and the part with a price counts', () => {
    const story = created('11-01');
    story.bound('11-16', undefined, { applied: null });
    expect(item(story)).toMatchObject({
      cost: '5.00',
      monthly: null,
      unpriced: 'the price of its type is not shown',
    });
  });

  test.each([
    ['is named', [], 'the price is by the values of its entry, which are not confirmed'],
    ['is not named once its values are confirmed', ['server_type', 'cores', 'memory_mb', 'disk_gb'], null],
  ])('an adopted server without a recorded size %s', (_name, known, assumed) => {
    const entry = { server_type: 1, cores: 1, memory_mb: 1024, disk_gb: 1 };
    const story = new Story().bound('11-16', undefined, { applied: { entry, body: null, known } });
    expect(item(story)).toMatchObject({ cost: '5.00', assumed });
  });

  test('a replacement bills both servers while both of them exist', () => {
    const story = created('11-01');
    story.bound('11-16', story.write('11-16', 'create'), { id: '2' });
    story.released('11-17', true, undefined, 'servers.a');
    const { items, cost } = story.bill();
    expect(items.map(({ id }) => id)).toEqual(['1', '2']);
    expect(Number(cost)).toBeGreaterThan(10);
  });

  test('a renamed resource is one resource, billed once under its last key', () => {
    const story = created('11-01').released('11-16', false);
    story.bound('11-16', undefined, { key: 'servers.b' as ResourceKey });
    expect(item(story)).toMatchObject({ key: 'servers.b', cost: '10.00', ended: null });
  });

  test('a released resource is billed until its release, and named', () => {
    expect(item(created('11-01').released('11-16', false))).toMatchObject({
      cost: '5.00',
      ended: 'released',
    });
  });

  test('a resource that another client deleted is billed until its absence was observed at most', () => {
    expect(item(created('11-01').released('11-16', true))).toMatchObject({
      cost: '5.00',
      cost_at_least: '0.00',
      ended: 'gone',
    });
  });

  test('a renamed resource that is gone may have ended before its rename', () => {
    const story = created('11-01').bound('11-10', undefined, { key: 'servers.b' as ResourceKey });
    story.released('11-16', true, undefined, 'servers.b');
    expect(item(story)).toMatchObject({ key: 'servers.b', cost: '5.00', cost_at_least: '0.00' });
  });

  test('a resource whose key another object takes may have ended since the last write', () => {
    const story = created('11-01').released('11-16', false);
    story.bound('11-16', undefined, { id: '2' });
    const { items } = story.bill('2026-11', '11-16');
    expect(items).toMatchObject([{ id: '1', cost: '5.00', cost_at_least: '0.00', ended: 'released' }]);
  });

  test('an id that shows another address belongs to another object', () => {
    const story = new Story();
    const id = story.write('11-01', 'create');
    story.bound('11-01', id, { identity: { ipv4: '203.0.113.1' } });
    story.bound('11-16', undefined, { identity: { ipv4: '203.0.113.2' } });
    expect(story.bill().items).toMatchObject([
      { id: '1', cost: '5.00', cost_at_least: '0.00', ended: 'gone' },
      { id: '1', cost: '5.00', cost_at_least: '5.00', began: 'known' },
    ]);
  });

  test('an id that another creation gives belongs to another object', () => {
    const story = created('11-01');
    story.released('11-07', false);
    created('11-16', 1, story);
    expect(story.bill().items).toMatchObject([
      { id: '1', cost: '5.00', cost_at_least: '0.00', ended: 'gone' },
      { id: '1', cost: '5.00', cost_at_least: '5.00', began: 'created' },
    ]);
  });

  test.each([
    ['an adopted resource', (story: Story) => story.bound('11-16')],
    [
      'a resource of a lost state, found under its key',
      (story: Story) => story.bound('11-16', story.write('11-16', 'create', { to: 'unknown_send' })),
    ],
    [
      'an address that a server took, and that existed before',
      (story: Story) =>
        story.bound('11-16', story.write('11-16', 'create'), {
          kind: 'ip',
          key: 'servers.a.public_ipv4' as ResourceKey,
        }),
    ],
  ])('%s is billed from its binding on, and named as older', (_name, make) => {
    expect(make(new Story()).bill().items[0]).toMatchObject({ began: 'known', from: at('11-16') });
  });

  test('an object that was adopted in an earlier month is fully known', () => {
    const story = new Story().bound('10-16');
    expect(monthCostOf(story.bill('2026-11', '11-04'))).toMatchObject({ incomplete: [] });
    expect(monthCostOf(story.bill('2026-10', '11-04')).incomplete).toEqual(['servers.a']);
  });

  test('without the catalogue, a GPU package has no price', () => {
    const applied = { body: { server_type_id: 1, gpu_package: 'l4' } };
    const story = new Story().bound('10-16', undefined, { applied });
    expect(story.bill('2026-11', '11-04').items).toMatchObject([
      { cost: '0.00', unpriced: 'only the catalogue of the API has the price of a graphics card package' },
    ]);
  });

  test('a creation whose answer was lost may have begun at its first send', () => {
    const story = new Story();
    const answered = at('11-17');
    const id = story.write('11-16', 'create', { to: 'earlier_send', answered });
    expect(item(story.bound('11-17', id))).toMatchObject({ cost: '5.00', cost_at_least: '4.67' });
  });

  test('a creation in progress is billed from its answer on, and a failed one until its end', () => {
    const story = new Story();
    story.write('11-16', 'create', {
      phase: 'accepted',
      request: { body: { server_type_id: 1, cores: 1, memory_mb: 0, disk_gb: 0 } },
    });
    expect(item(story)).toMatchObject({ cost: '5.00', ended: null });
    const failed = new Story();
    failed.write('11-16', 'create', { closedAt: at('11-17') });
    expect(item(failed)).toMatchObject({ cost_at_least: '0.00', ended: 'gone' });
  });

  test('a creation without an answer is named, because it may cost money', () => {
    const story = new Story();
    story.write('11-16', 'create', { phase: 'sending', answer: undefined });
    expect(story.bill()).toMatchObject({ items: [], unconfirmed: ['servers.a'] });
  });

  test('the clock of the API counts, even if the local clock is a day behind', () => {
    expect(item(created('10-31', 1, new Story(86_400_000)))).toMatchObject({
      from: at('11-01'),
      cost: '10.00',
    });
  });
});
