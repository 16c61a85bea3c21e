// vdcsync apply --yes --check-command 'node examples/policy/check.mjs'
// Reads a plan from standard input, prints each violation, and exits with 1 if there is any. Change the rules to yours.
import { json } from 'node:stream/consumers';

const maxMonthlyIncrease = 500;
const plan = await json(process.stdin);
const violations = [];

for (const { key, kind, verb, replacement, traffic } of plan.operations) {
  // Deletions of servers need the team that owns the servers. A replacement deletes its server too.
  if (kind === 'server' && (verb === 'delete' || replacement !== undefined)) {
    violations.push(`${key} must not be deleted or replaced by this pipeline`);
  }
  // No ssh for the whole internet. A flow with a source has the source in parentheses.
  if (traffic?.open.some(isSshForAll)) violations.push(`${key} opens ssh to every address`);
}

// A limit that the authors of the spec cannot raise.
if (Number(plan.cost.known_monthly_delta) > maxMonthlyIncrease) {
  violations.push(`the plan adds ${plan.cost.known_monthly_delta} a month, more than ${maxMonthlyIncrease}`);
}

for (const each of violations) console.error(`policy: ${each}`);
process.exitCode = violations.length === 0 ? 0 : 1;

/** `tcp 22`, `tcp 20-30`, `any protocol every port`, `everything`, `everything else`. */
function isSshForAll(flow) {
  if (/^everything/.test(flow)) return true;
  const [, protocol, ports] = /^(any protocol|\S+) (every port|[\d:-]+)$/.exec(flow) ?? [];
  if (protocol !== 'tcp' && protocol !== 'any protocol') return false;
  const [first = 0, last = first] = ports === 'every port' ? [0, 65535] : ports.split(/[:-]/).map(Number);
  return first <= 22 && 22 <= last;
}
