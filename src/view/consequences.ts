import { retiredFrom, retiringKey, takeApart } from '../core/keys.ts';
import { factsOf } from '../core/kind-facts.ts';
import type { Operation, Plan, UndoGrade } from '../core/plan.ts';

/** The consequences that an operator must know before the approval of an operation, in addition to the changed fields. */
export function consequences(operation: Operation, plan: Pick<Plan, 'operations'>): string[] {
  const lost = operation.loses === undefined ? [] : [`lost: ${operation.loses}`];
  const destroyed = [...lost, ...replacement(operation, plan)];
  return [...destroyed, ...traffic(operation), ...(destroyed.length === 0 ? undoing(operation) : [])];
}

/** Where it is not undone wholly. A backup that is taken only adds a copy. */
function undoing({ undo = 'wholly', kind }: Operation): string[] {
  return undo === 'wholly' || factsOf(kind).repeats === true ? [] : [`undo: ${undoTexts[undo]}`];
}

/** How far an operation can be undone. */
export const undoTexts = {
  wholly: 'wholly',
  another_address: 'with another address',
  data_lost: 'data lost',
  stays: 'not possible, it stays',
} as const satisfies Record<UndoGrade, string>;

/** The id of the operation's live resource, for a replacement that of the old one. For a deletion also its other identifiers. */
export function liveOf(operation: Operation, { operations }: Pick<Plan, 'operations'>): string[] {
  const { verb, replacement, reason = '' } = operation;
  const about = verb === 'create' ? operations.find(({ id }) => id === replacement) : operation;
  if (about === undefined) return [];
  const { target } = about;
  const reported = target === undefined || reason.includes(`id ${target}`);
  return [...(reported ? [] : [target]), ...(about.verb === 'delete' ? knownBy(about) : [])];
}

/** The same for an operator. A resource that is a field of its server has the id of the server, which is not shown. */
export function shownIds(operation: Operation, plan: Pick<Plan, 'operations'>): string[] {
  if (operation.verb === 'update' && factsOf(operation.kind).field !== undefined) return [];
  return liveOf(operation, plan).map((id) => (/^\d+$/.test(id) ? `id ${id}` : id));
}

/** Identifiers that the key does not show: another name, addresses, a subnet. */
function knownBy({ key, changes }: Operation): string[] {
  return changes.flatMap(({ from }) => (typeof from === 'string' && !key.endsWith(`.${from}`) ? [from] : []));
}

/** The dotted address that a deletion releases. */
export function addressInDeletion({ kind, verb, changes }: Operation): string | undefined {
  const { knownBy } = factsOf(kind);
  if (knownBy === undefined || verb !== 'delete') return undefined;
  const from = changes.find(({ path }) => path === knownBy)?.from;
  return typeof from === 'string' ? from : undefined;
}

/** @source API §1.4, §1.5 */
function replacement(operation: Operation, { operations }: Pick<Plan, 'operations'>): string[] {
  const { replacement: half, kind, verb } = operation;
  const { lost, impact } = factsOf(kind);
  if (half === undefined) return verb === 'delete' && lost !== undefined ? [`impact: ${lost} is lost`] : [];
  if (impact !== undefined) return [`impact: ${impact}`];
  if (lost === undefined) return [];
  const old = verb === 'delete' ? operation : operations.find(({ id }) => id === half);
  return [`impact: ${lost} is lost`, ...(old === undefined ? [] : addressChange(old, operations))];
}

/**
 * Its own address is deleted after the old server. An earlier server of the same key may still have an address as well.
 *
 * @param old the deletion of the old server
 */
function addressChange({ key: oldKey, target = '' }: Operation, operations: Plan['operations']): string[] {
  const server = retiredFrom(oldKey) ?? oldKey;
  const retired = retiringKey(server, target);
  const isOwn = ({ key, kind, verb }: Operation) =>
    verb === 'delete' && factsOf(kind).independent === true && takeApart(key).parent === retired;
  const release = operations.find(isOwn);
  const address = release && addressInDeletion(release);
  // Changes of a replacement are those of the entry.
  const dropped = operations.some(
    ({ key, changes }) =>
      key === server && changes.some(({ path, to }) => path === 'public_ipv4' && to === null),
  );
  if (address === undefined) return [];
  return [
    `its address ${address} is deleted, and the new server ${dropped ? 'has none' : 'gets another one'}`,
  ];
}

function traffic({ traffic: change, kind }: Operation): string[] {
  if (change === undefined) return [];
  const { opened, closed, open } = change;
  // The warning about a new server without a firewall says the same.
  if (!factsOf(kind).endsExposure) return [];
  const named = closed.filter((each) => !isRest(each));
  const changed = [
    ...(opened.length === 0 ? [] : [`opens ${opened.join(', ')}`]),
    ...(named.length === 0 ? [] : [`closes ${named.join(', ')}`]),
  ];
  return [...changed, changed.length === 0 ? openText(open) : `then ${openText(open)}`];
}

/** All incoming traffic that is allowed, so that a reader does not need the previous rules. */
function openText(open: readonly string[]): string {
  if (open.length === 0) return 'allows no incoming traffic';
  const known = open.filter((each) => !isUnknown(each));
  if (known.some(isRest)) return 'allows all incoming traffic that no rule drops';
  const may = known.length < open.length ? ['may allow other incoming traffic'] : [];
  return [
    ...(known.length === 0 ? [] : [`allows ${may.length === 0 ? 'only ' : ''}incoming ${known.join(', ')}`]),
    ...may,
  ].join(', and ');
}

/** Everything that no rule names. */
function isRest(text: string): boolean {
  return text === 'everything' || text === 'everything else';
}

/** Traffic that depends on a value that the API's document does not show. */
function isUnknown(text: string): boolean {
  return text.startsWith('unknown: ');
}
