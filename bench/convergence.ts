import { rig } from '../test/support/rig.ts';
import { fleetSpec } from './fleet-spec.ts';
import type { Row } from './table.ts';

const limits = { writes: 20, reads: 60, windowMs: 60_000 };

/**
 * Servers, each with an address, a card in the one network and a firewall, made from
 * nothing under the virtual clock.
 *
 * The lower bound is what the write budget alone allows: after the first `writes` every
 * further batch waits a window, and the last server's own chain (its task, its card's
 * task) cannot be shorter than its tasks are.
 */
export async function convergence(tokens = 1, servers = 200): Promise<Row[]> {
  const { apply, emulator } = rig({ tokens });
  const report = await apply(fleetSpec(servers));
  if (report.outcome !== 'converged') throw new Error(`not converged: ${JSON.stringify(report.blocked[0])}`);

  const writes = emulator.requests.filter(({ method }) => method !== 'GET').length;
  const minimalWrites = 1 + 3 * servers;
  const tasks = 1 + 2 * servers;
  const boundMs = Math.floor((minimalWrites - 1) / (limits.writes * tokens)) * limits.windowMs;
  /** One read of each collection, then for each task one poll and for each resource one look at the end. */
  const minimalReads = 6 + tasks + minimalWrites;
  const shared = tokens === 1 ? '' : `${tokens} tokens, `;
  const time = {
    figure: `${shared}${servers} servers, ${minimalWrites} writes: time / budget's lower bound`,
    value: report.durationMs / boundMs,
    aim: tokens === 1 ? '≤ 1.02' : '≤ 1.1',
  };
  const throttled = { figure: `${shared}our own 429s`, value: report.requests.throttled, aim: '0' };
  if (tokens > 1) return [time, throttled];
  return [
    time,
    { figure: 'writes / needed', value: writes / minimalWrites, aim: '1' },
    {
      figure: 'reads / (one poll a task, one look a resource)',
      value: report.requests.reads / minimalReads,
      aim: '≤ 2',
    },
    { figure: 'polls a task', value: report.requests.polls / tasks, aim: '< 2' },
    throttled,
  ];
}
