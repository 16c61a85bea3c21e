import type { PriceSource } from '../../src/core/catalogue.ts';
import { documentedProfile, type PriceList } from '../../src/core/profile.ts';
import type { ServerTypeId } from '../../src/core/resources.ts';
import { type Month, monthAt } from '../../src/core/time.ts';
import type { MeterReading, World } from '../../src/emulator/world.ts';
import { billedTime } from '../../src/plan/bill/billed-time.ts';
import { type BillItem, monthlyBill } from '../../src/plan/bill/monthly-bill.ts';
import { kinds } from '../../src/reconcilers/registry.ts';
import type { Controller } from '../../src/simulation/controller.ts';
import type { StoryStage } from '../../src/simulation/stage.ts';

/** So high that a difference of a second is a difference of cents. */
const monthlyPrices = {
  address: 3_000_000,
  core: 4_000_000,
  gb: 1_000_000,
  plan: 5_000_000,
  card: 9_000_000,
};

const list: PriceList = {
  address: `${monthlyPrices.address}`,
  servers: {
    'sliders-1': { core: `${monthlyPrices.core}`, memory_gb: `${monthlyPrices.gb}`, disk_gb: '0' },
    'plans-1': { plans: { 51: `${monthlyPrices.plan}` } },
  },
};

/**
 * The bill of the machine against the metering of the service: each item has the metered cost to the cent, or bounds that
 * contain it, or a reason why it has no price.
 */
export async function checkBill(stage: StoryStage, { box, clockWasSet, epoch }: Controller): Promise<void> {
  const { emulator, observer, story, clock } = stage;
  // Without the clock of the API, a local clock that was set shows no time of the API. In a story with edits, an operator
  // may say false things about resources.
  if (clockWasSet || story.readings.dateHeader === false || story.actions !== undefined) return;
  // The binding of a resource that is gone then stays.
  if (story.specs.some(({ settings }) => settings?.drift === 'report')) return;
  const store = await box.open(clock.now());
  const journal = await store.journal({ limit: Number.POSITIVE_INFINITY });
  const time = billedTime(journal, await store.intents({ limit: 1_000_000 }));
  await box.release();
  const { world } = emulator;
  const now = emulator.now();
  const readings = world.projects[0]?.meter ?? [];
  const billed = new Set<string>();
  // A state that was lost or put back, and another machine, leave writes that this journal lacks.
  const isPutBack = epoch > 0 || stage.controllers.length > 1;
  for (let month = monthAt(clock.now() - clock.monotonic()); month.from <= now; month = monthAt(month.to)) {
    const { items } = monthlyBill(time, month, now, kinds, source(world));
    for (const item of items) {
      if (item.kind !== 'server' && item.kind !== 'ip') continue;
      billed.add(`${item.kind} ${item.id}`);
      observer.count('bill items');
      if (item.unpriced !== null) observer.count('bill items without a price');
      else if (
        item.kind === 'server' &&
        !world.executions.some((each) => each.kind === 'server' && each.id === item.id)
      )
        observer.count('bill items of servers that another user made');
      else if (item.assumed !== null) observer.count('bill items priced by the entry');
      else if (isPutBack && (story.readings.reuseIds === true || isChanged(item, readings)))
        observer.count('bill items that may have changed while the state was put back');
      else checkItem(stage, item, month, readings);
    }
  }
  if (isPutBack || time.unconfirmed.length > 0) return;
  for (const made of world.executions)
    if (made.kind === 'server' && !billed.has(`server ${made.id}`) && !stage.rules.isUnknown(made))
      stage.fail('bill', `server ${made.id} is metered, and is not in the bill`);
}

/** Whether the id got another size, or the API gave it to another object, in the time of the item. */
function isChanged({ kind, id, from, until }: BillItem, readings: readonly MeterReading[]): boolean {
  const own = readings.filter((reading) => reading.kind === kind && String(reading.id) === id);
  return own.some(({ toMs }, at) => {
    const next = own[at + 1];
    return next !== undefined && toMs !== null && toMs > from && next.fromMs < until;
  });
}

function checkItem(stage: StoryStage, item: BillItem, month: Month, readings: readonly MeterReading[]): void {
  const { kind, id, began, ended, cost, cost_at_least } = item;
  // The bill says where it begins to know an older object, and where it ends to follow a released one. Ids may be reused.
  const isWhole = stage.story.readings.reuseIds !== true;
  const from = isWhole && began === 'created' ? month.from : item.from;
  const to = isWhole && ended !== 'released' ? month.to : item.until;
  const parts = readings
    .filter((reading) => reading.kind === kind && String(reading.id) === id)
    .map((reading) => {
      const until = Math.min(reading.toMs ?? stage.emulator.now(), to);
      return (
        (Math.max(0, until - Math.max(reading.fromMs, from)) * priceOf(reading)) / (month.to - month.from)
      );
    });
  const metered = parts.reduce((sum, each) => sum + each, 0);
  // The prices are a million times too high, so a cent of a usual price is a thousand.
  stage.observer.count(
    Number(cost) - Number(cost_at_least) < 10_000 ? 'bill items equal to the cent' : 'bill items with bounds',
  );
  // The adoption has the time of the machine, which is not that of the service to the second.
  const tolerance =
    0.02 + (began === 'known' ? (1_000 * priceOfAll(kind, id, readings)) / (month.to - month.from) : 0);
  if (metered < Number(cost_at_least) - tolerance || metered > Number(cost) + tolerance)
    stage.fail(
      'bill',
      `${item.key} ${id}: ${cost_at_least} to ${cost}, metered ${metered.toFixed(2)} ${began} ${ended}`,
    );
}

/** A month of the highest size that the object had. */
function priceOfAll(kind: string, id: string, readings: readonly MeterReading[]): number {
  const own = readings.filter((reading) => reading.kind === kind && String(reading.id) === id);
  return Math.max(0, ...own.map(priceOf));
}

function priceOf({ kind, size: [type, cores, memoryMb, , , card] }: MeterReading): number {
  if (kind === 'ip') return monthlyPrices.address;
  if (card !== null) return monthlyPrices.card;
  if (type === 5) return monthlyPrices.plan;
  return monthlyPrices.core * Number(cores) + (monthlyPrices.gb * Number(memoryMb)) / 1024;
}

function source({ serverTypes }: World): PriceSource {
  const types = serverTypes.map(({ id, name, pricingMode, gpu }) => {
    return { id: id as ServerTypeId, name, pricing_mode: pricingMode, gpu };
  });
  const pricing = serverTypes.map(({ id, packages }) => {
    const gpu_packages = packages.map(({ key }) => ({ key, price: `${monthlyPrices.card}` }));
    return [id, { gpu_packages }] as const;
  });
  const catalogue = { types, pricing: new Map(pricing) } as unknown as PriceSource['catalogue'];
  return { catalogue, profile: { ...documentedProfile, prices: list } };
}
