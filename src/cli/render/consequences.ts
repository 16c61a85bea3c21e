import type { Operation, Plan } from '../../core/plan.ts';

/** What a person has to know of an operation before saying yes, beside the fields that change. */
export function consequences(operation: Operation, plan: Pick<Plan, 'operations'>): string[] {
  return [...replacement(operation, plan), ...traffic(operation)];
}

/** The dotted address that a deletion releases. */
export function releasedAddress({ kind, verb, changes }: Operation): string | undefined {
  if (kind !== 'ip' || verb !== 'delete') return undefined;
  const from = changes.find(({ path }) => path === 'address')?.from;
  return typeof from === 'string' ? from : undefined;
}

/** @source API §1.4, §1.5 */
function replacement(
  { replacement: half, kind, verb, key }: Operation,
  { operations }: Pick<Plan, 'operations'>,
): string[] {
  if (kind === 'server' && verb === 'delete' && half === undefined) return ['lost: all that is on its disks'];
  if (half === undefined) return [];
  if (kind === 'server') {
    const own = operations.find((each) => each.verb === 'delete' && each.key === `${key}.public_ipv4`);
    const address = own && releasedAddress(own);
    const change = address === undefined ? [] : [`its address changes: ${address} → known afterwards`];
    return ['lost: all that is on its disks', ...change];
  }
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
