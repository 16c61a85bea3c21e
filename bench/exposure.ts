import type { Readings } from '../src/emulator/readings.ts';
import { rig } from '../test/support/rig.ts';
import { fleetSpec } from './fleet-spec.ts';
import type { Row } from './table.ts';

const limits = { writes: 20, windowMs: 60_000 };
const sizes = [1, 5, 20, 40, 100, 200] as const;

/** The exposure of the servers of one run, in seconds. */
interface Exposure {
  /** From the end of the creation task of a server to the acceptance of its firewall. Negative: the firewall was first. */
  readonly afterTask: readonly number[];
  /** From the acceptance of a server to the acceptance of its firewall. */
  readonly exposed: readonly number[];
  /** The time of the run, divided by the lower bound of the write budget. Infinite if the bound is zero. */
  readonly toBound: number;
}

/** Creates servers from nothing under the virtual clock, each with an address, a network interface and a firewall. */
export async function exposureOf(servers: number, readings: Partial<Readings> = {}): Promise<Exposure> {
  const { apply, emulator } = rig({ emulator: { readings } });
  const report = await apply(fleetSpec(servers));
  if (report.outcome !== 'converged') throw new Error(`not converged: ${JSON.stringify(report.blocked[0])}`);
  const accepted = emulator.requests.filter(
    ({ operation, status }) => operation === 'replace_firewall' && status === 200,
  );
  const tasks = emulator.world.projects.flatMap((project) => project.tasks);
  const each = tasks.flatMap(({ effect, endsMs, createdMs }) => {
    if (effect.kind !== 'create_server') return [];
    const put = accepted.find(({ url }) => url.includes(`/servers/${effect.serverId}/`));
    if (put === undefined) throw new Error(`server ${effect.serverId} has no firewall`);
    return [{ afterTask: (put.atMs - endsMs) / 1000, exposed: (put.atMs - createdMs) / 1000 }];
  });
  const boundMs = Math.floor((3 * servers) / limits.writes) * limits.windowMs;
  return {
    afterTask: each.map(({ afterTask }) => afterTask),
    exposed: each.map(({ exposed }) => exposed),
    toBound: report.durationMs / boundMs,
  };
}

/**
 * How long servers are exposed. With `refused`, the API refuses the firewall of a server until its creation has ended:
 * only polls then show when the firewall can be sent.
 *
 * The budgets do not allow both 5 s for each server and 1.02 of the bound then:
 *
 * - Writes: a server takes 3 writes, each of which uses a slot for 60 s: 180 s of slots. For 5 s, a poll and a free slot
 *   are needed each 5 s. The ends of the tasks are spread over 20 s, so a task needs 2.5 polls on average. Slots become
 *   free each 3 s at best, so the slot for a poll is kept free for 1.5 s on average: 3.8 s for each server, which is
 *   2.1 % of 180 s. The creations without a wait for the firewall take 1.01 of the bound, so the sum is 1.03 at best.
 * - Reads: 1.02 of the bound is 9.2 s for each server, so 9.2 reads. Of 200 servers, each one needs 5.8 reads other than
 *   the polls of its creation: 2.3 of network interfaces (one before the interface is added, one after, and one more if
 *   the first is older than a minute by then), 1.2 polls of the interface, one of the addresses, one of the firewall and
 *   0.3 of the project and the networks. With a poll each 4 s it needs 3.2 polls of its creation. The sum is 9.0 reads.
 *   The rest is too little for servers whose tasks end together.
 */
export async function exposure(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const servers of sizes) rows.push(...rowsOf(servers, 'allowed', await exposureOf(servers)));
  for (const servers of sizes)
    rows.push(...rowsOf(servers, 'refused', await exposureOf(servers, { firewallWhileCreating: 409 })));
  return rows;
}

function rowsOf(servers: number, api: 'allowed' | 'refused', seen: Exposure): Row[] {
  const of = `${servers} servers, firewall during the creation ${api}`;
  const aim = '≤ 5';
  return [
    { figure: `${of}: s from the task to the firewall, median`, value: quantile(seen.afterTask, 0.5), aim },
    { figure: `${of}: the same, p99`, value: quantile(seen.afterTask, 0.99), aim },
    { figure: `${of}: the same, highest`, value: quantile(seen.afterTask, 1), aim },
    { figure: `${of}: s from the acceptance, highest`, value: quantile(seen.exposed, 1), aim: '' },
    ...(Number.isFinite(seen.toBound)
      ? [{ figure: `${of}: time / budget's lower bound`, value: seen.toBound, aim: '' }]
      : []),
  ];
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
