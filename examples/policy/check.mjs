// vdcsync apply --yes --check-command 'node examples/policy/check.mjs'
// Reads a plan from standard input, prints each violation, and exits with 1 if there is any. Change the rules to yours.
// A policy must refuse all that it does not understand: the fields are described in docs/how-to/policy.md.
import { json } from 'node:stream/consumers';

const maxMonthlyIncrease = 500;
/** Limits of a rule under which ssh may be open, as the plan writes them: `source 198.51.100.0/24`. */
const trustedSources = [];

const plan = await json(process.stdin);
const violations = [];
if (plan.format_version !== 1) violations.push('the plan has another format than this policy');

const { operations, cost } = plan;
const firewalls = new Set(
  operations.flatMap(({ kind, key, traffic }) => (kind === 'firewall' && traffic ? key : [])),
);

for (const { key, kind, verb, replacement, traffic, changes } of operations) {
  // Deletions of servers need the team that owns the servers. A replacement deletes its server too.
  if (kind === 'server' && (verb === 'delete' || replacement !== undefined)) {
    violations.push(`${key} must not be deleted or replaced by this pipeline`);
  }
  // A new server has no firewall. The same plan must set one.
  const isPublic = changes.some(({ path, to }) => path === 'public_ipv4' && to !== null);
  if (kind === 'server' && verb === 'create' && isPublic && !firewalls.has(`${key}.firewall`)) {
    violations.push(`${key} gets a public address, and this plan sets no firewall for it`);
  }
  for (const flow of traffic?.open ?? []) {
    const problem = problemOf(flow);
    if (problem !== undefined) violations.push(`${key} ${problem}`);
  }
}

// A limit that the authors of the spec cannot raise. The comparison also refuses a value that is not a number.
const increase = cost.known_monthly_most ?? cost.known_monthly_delta;
if (!(Number(increase) <= maxMonthlyIncrease)) {
  violations.push(`the plan adds ${increase} a month, more than ${maxMonthlyIncrease}`);
}
if (plan.more_warnings !== undefined)
  violations.push('the plan has too many warnings to show: split the project, or correct the file');
for (const key of cost.unpriced)
  violations.push(`${key} has no known price: give vdcsync a price list with --prices`);

for (const each of violations) console.error(`policy: ${each}`);
process.exitCode = violations.length === 0 ? 0 : 1;

/** No ssh for the whole internet, and nothing that the plan does not know for certain. */
function problemOf(flow) {
  if (flow.startsWith('unknown: ')) return `may open traffic that the plan does not know: ${flow}`;
  if (flow === 'everything' || flow === 'everything else') return 'opens ssh to every address';
  // `tcp 22`, `tcp 20-30`, `any protocol every port`; the limits of the rule follow in parentheses.
  const parts =
    /^(any protocol|tcp|udp|icmp|icmpv6) (every port|(\d+)(?:\s*[-:]\s*(\d+))?)(?: \((.*)\))?$/s.exec(flow);
  if (parts === null) return `opens traffic that this policy does not know: ${flow}`;
  const [, protocol, , first = '0', last = parts[2] === 'every port' ? '65535' : first, limits] = parts;
  if (protocol !== 'tcp' && protocol !== 'any protocol') return undefined;
  const isSsh = Number(first) <= 22 && 22 <= Number(last);
  // A limit that the API does not know or ignores would leave ssh open to every address.
  if (!isSsh || trustedSources.includes(limits)) return undefined;
  return limits === undefined
    ? 'opens ssh to every address'
    : `opens ssh with the limit "${limits}", which is not one of the trusted sources`;
}
