import { appliedServer } from '../../core/applied.ts';
import type { PriceSource } from '../../core/catalogue.ts';
import type { ReadPort } from '../../core/ports.ts';
import type { StateStore } from '../../core/state.ts';
import { type Month, monthAt } from '../../core/time.ts';
import { readBilled } from '../../engine/month-cost.ts';
import { refuseOtherState } from '../../engine/observe.ts';
import { type BilledTime, withRecordedTypes } from '../../plan/bill/billed-time.ts';
import { type MonthlyBill, monthlyBill } from '../../plan/bill/monthly-bill.ts';
import { kinds } from '../../reconcilers/registry.ts';
import { fromState } from '../compose.ts';
import { type ExitCode, exitCodes, usageError } from '../exit.ts';
import type { BillFormat } from '../flags.ts';
import { type OfflineFlags, readLive, whyOffline } from '../live.ts';
import { type BillContext, billCsv, billJson, billSvg, billText } from '../render/bill.ts';
import { clockOf, profileOf } from '../settings/config.ts';
import { specIfAny } from '../settings/spec-source.ts';
import { type Io, paintFor } from '../terminal.ts';

export interface BillFlags extends OfflineFlags {
  readonly month?: Month;
  readonly format?: BillFormat;
}

/** Shows the cost of each resource in a month. Reads the state, and the catalogue of the API for its prices. */
export async function bill(flags: BillFlags, io: Io): Promise<ExitCode> {
  const desired = await specIfAny(flags, io);
  const read = await fromState(flags, io, readState);
  if (desired !== undefined) refuseOtherState(desired, read.info);
  const projectId = desired?.projectId ?? read.info.projectId;
  const { profile } = profileOf(flags, io);
  const ofState = {
    catalogue: withRecordedTypes({ types: [], pricing: new Map() }, read.time),
    profile,
    now: Math.max(clockOf(io).now(), read.changedAt),
  };
  let source: PriceSource & { readonly now: number } = ofState;
  if (whyOffline(flags, io) === undefined && projectId !== null) {
    const asked = { projectId, token: desired?.token };
    const live = await readLive(flags, io, asked, async ({ reads, profile }) => {
      const catalogue = withRecordedTypes(await readPackages(reads, read.time), read.time);
      return { catalogue, profile, now: reads.apiNow() ?? ofState.now };
    });
    if (typeof live !== 'string') source = live;
    else io.stderr.write(`vdcsync: graphics card packages have no price, because ${live}\n`);
  }
  const current = monthAt(source.now);
  const { month = current } = flags;
  if (month.from > current.from)
    throw usageError(`${month.name} has not begun. Choose a month up to ${current.name} with --month.`);
  const made = monthlyBill(read.time, month, source.now, kinds, source);
  const about = { projectId, knownSince: read.info.createdAt, hasPrices: profile.prices !== undefined };
  io.stdout.write(rendered(made, about, flags.format ?? 'text', io));
  return exitCodes.done;
}

function rendered(made: MonthlyBill, about: BillContext, format: BillFormat, io: Io): string {
  switch (format) {
    case 'text':
      return billText(made, about, paintFor(io.stdout, io));
    case 'json':
      return `${JSON.stringify(billJson(made, about), null, 2)}\n`;
    case 'csv':
      return billCsv(made);
    case 'svg':
      return billSvg(made);
  }
}

async function readState(store: StateStore) {
  const [last] = await store.journal({ limit: 1 });
  return { info: await store.info(), time: await readBilled(store), changedAt: last?.at ?? 0 };
}

/** The catalogue, with the prices of the types of which a graphics card package was bought. */
async function readPackages(reads: ReadPort, { spans }: BilledTime): Promise<PriceSource['catalogue']> {
  const types = await reads.serverTypes();
  const bound = spans.flatMap(({ versions }) => versions.map(({ binding }) => appliedServer(binding)));
  const bought = new Set(bound.flatMap(({ gpuPackage, typeId }) => (gpuPackage === undefined ? [] : typeId)));
  const asked = types.filter(({ id }) => bought.has(id));
  const pricing = await Promise.all(asked.map(async ({ id }) => [id, await reads.pricing(id)] as const));
  return { types, pricing: new Map(pricing) };
}
