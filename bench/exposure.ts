import type { Readings } from '../src/emulator/readings.ts';
import { rig } from '../test/support/rig.ts';
import { fleetSpec } from './fleet-spec.ts';

const limits = { writes: 20, windowMs: 60_000 };

/** The exposure of the servers of one run. */
export interface Exposure {
  /** From the end of the creation task of a server to the acceptance of its firewall, in s; negative if it came first. */
  readonly afterTask: readonly number[];
  /** From the acceptance of a server to the acceptance of its firewall, in s. */
  readonly exposed: readonly number[];
  /** The time of the run by the lower bound of the write budget, where that is not zero. */
  readonly toBound: number;
  readonly reads: Readonly<Record<string, number>>;
}

/** Creates servers from nothing under the virtual clock, each with an address, a network interface and a firewall. */
export async function exposure(servers: number, readings: Partial<Readings> = {}): Promise<Exposure> {
  const { apply, emulator } = rig({ emulator: { readings } });
  const report = await apply(fleetSpec(servers));
  if (report.outcome !== 'converged') throw new Error(`not converged: ${JSON.stringify(report.blocked[0])}`);
  const tasks = emulator.world.projects.flatMap((project) => project.tasks);
  const each = tasks.flatMap(({ effect, endsMs, createdMs }) => {
    if (effect.kind !== 'create_server') return [];
    const put = emulator.requests.find(
      ({ operation, status, url }) =>
        operation === 'replace_firewall' && status === 200 && url.includes(`/servers/${effect.serverId}/`),
    );
    if (put === undefined) throw new Error(`server ${effect.serverId} has no firewall`);
    return [{ afterTask: (put.atMs - endsMs) / 1000, exposed: (put.atMs - createdMs) / 1000 }];
  });
  const boundMs = Math.floor((3 * servers) / limits.writes) * limits.windowMs;
  const gets = emulator.requests.filter(({ method }) => method === 'GET');
  return {
    afterTask: each.map(({ afterTask }) => afterTask),
    exposed: each.map(({ exposed }) => exposed),
    toBound: boundMs === 0 ? Number.NaN : report.durationMs / boundMs,
    reads: Object.fromEntries(
      [...Map.groupBy(gets, ({ operation }) => String(operation))].map(([name, all]) => [name, all.length]),
    ),
  };
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
