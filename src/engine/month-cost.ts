import type { ResourceKind, World } from '../core/kind.ts';
import type { KindName } from '../core/kind-facts.ts';
import type { MonthCost } from '../core/plan.ts';
import type { StateStore } from '../core/state.ts';
import { monthAt } from '../core/time.ts';
import { type BilledTime, billedTime, withRecordedTypes } from '../plan/bill/billed-time.ts';
import { monthCostOf, monthlyBill } from '../plan/bill/monthly-bill.ts';

/**
 * The billed time of one state. The journal is read again only if its newest line is another one: every change adds a
 * line. The notes of a fleet change the serial of the state and not the journal, so the serial is no measure.
 */
export class BilledHistory {
  #known: { readonly version: string; readonly time: BilledTime } | undefined;

  async of(store: StateStore): Promise<BilledTime> {
    const version = JSON.stringify(await store.journal({ limit: 1 }));
    if (this.#known?.version !== version) this.#known = { version, time: await readBilled(store) };
    return this.#known.time;
  }
}

/** Reads the whole journal, which takes time: see {@link BilledHistory}. */
export async function readBilled(store: StateStore): Promise<BilledTime> {
  const journal = await store.journal({ limit: mostLines });
  return billedTime(journal, await store.intents({ limit: mostLines }));
}

const mostLines = 10_000_000;

/** The cost of the current month. It is of use only with a price list, so only a process with prices reads the journal. */
export async function monthCost(
  store: StateStore,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  { apiNow, profile, catalogue }: World,
  history = new BilledHistory(),
): Promise<MonthCost> {
  const time = await history.of(store);
  const source = { profile, catalogue: withRecordedTypes(catalogue, time) };
  return monthCostOf(monthlyBill(time, monthAt(apiNow), apiNow, kinds, source));
}
