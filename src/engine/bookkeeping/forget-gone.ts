import equal from 'fast-deep-equal';
import type { IpId, ServerId } from '../../core/resources.ts';
import { nameOf, type Vouched } from '../../plan/strangers.ts';
import type { Run } from '../run.ts';
import { vouchedBy } from './vouched-note.ts';
import { putVouched } from './vouching.ts';

/** Between the two looks that miss a stranger; one that shows in no list costs a read each time. */
const gapMs = 3_600_000;

/**
 * Strangers that are gone are vouched for no more: whoever has their id later is another.
 * Gone is what the lists lack twice, an hour apart, and its own read does not find.
 * @assumption A8 @assumption A17
 */
export async function forgetGone(run: Run): Promise<void> {
  const vouched = await vouchedBy(run.deps.store);
  if (vouched === undefined) return;
  const now = run.deps.clock.now();
  const { missed = {} } = vouched;
  const missing = missingIn(run, vouched);
  const due = missing.filter((name) => now - (missed[name] ?? now) >= gapMs);
  const gone = new Set(await goneOf(run, due));
  const left = missing.filter((name) => !gone.has(name));
  const next = Object.fromEntries(
    left.map((name) => [name, due.includes(name) ? now : (missed[name] ?? now)]),
  );
  if (equal(next, missed)) return;
  await putVouched(run.deps.store, {
    ...vouched,
    servers: vouched.servers.filter((id) => !gone.has(String(id))),
    addresses: vouched.addresses.filter((name) => !gone.has(name)),
    missed: next,
  });
}

/** What no list shows, by the id of a server or the name of an address. */
function missingIn({ world }: Run, { servers, addresses }: Vouched): readonly string[] {
  const listed = new Set(world.ips.map(nameOf));
  const isShown = (id: number) =>
    world.ipsOf(String(id)).length > 0 || world.servers?.some((each) => each.id === id) === true;
  return [
    ...servers.filter((id) => !isShown(id)).map(String),
    ...addresses.filter((name) => !listed.has(name)),
  ];
}

async function goneOf(run: Run, names: readonly string[]): Promise<readonly string[]> {
  if (names.length === 0) return [];
  const token = await run.fence();
  const read = run.cache.since(run.deps.clock.monotonic());
  const seen = await Promise.all(
    names.map(async (name) => {
      const id = Number(name.split(' ')[0]);
      if (name.includes(' ')) {
        const live = await read.findIp(id as IpId);
        return live !== undefined && nameOf(live) === name;
      }
      const cards = await read.findNetworkInterfaces(id as ServerId);
      return cards !== undefined || (await read.findServer?.(id as ServerId)) !== undefined;
    }),
  );
  return run.deps.writes.token() === token ? names.filter((_name, at) => seen[at] === false) : [];
}
