import type { Operation } from '../../core/plan.ts';

/** What a person has to know of an operation before saying yes, beside the fields that change. */
export function consequences(operation: Operation): string[] {
  return [...replacement(operation), ...traffic(operation)];
}

/** @source API §1.4, §1.5 */
function replacement({ replacement: half, kind, verb }: Operation): string[] {
  if (kind === 'server' && verb === 'delete' && half === undefined) return ['lost: all that is on its disks'];
  if (half === undefined) return [];
  if (kind === 'server')
    return ['lost: all that is on its disks; an address that the file does not name changes'];
  return kind === 'network' ? ['lost: it gets another id, and whoever is on it loses it meanwhile'] : [];
}

function traffic({ traffic: change }: Operation): string[] {
  if (change === undefined) return [];
  const { opened, closed, open } = change;
  const list = (flows: readonly string[]) => (flows.length === 0 ? 'nothing' : flows.join(', '));
  return [
    ...(opened.length === 0 ? [] : [`opens ${list(opened)}`]),
    ...(closed.length === 0 ? [] : [`closes ${list(closed)}`]),
    `lets in ${list(open)}`,
  ];
}
