/** A plan as its readers see it, in each form of output. */

import { monthLine } from '../core/decimal.ts';
import { nounOf, parseKey, retiredFrom, retiringKey, takeApart } from '../core/keys.ts';
import { factsOf, type KindName } from '../core/kind-facts.ts';
import {
  type Blocked,
  decisions,
  inFileOrder,
  isRecorded,
  isRename,
  type Operation,
  type Plan,
  reportsDifference,
  type Summary,
  type UndoGrade,
} from '../core/plan.ts';
import { counted, span } from '../core/text.ts';

/** The sign of a plan line. `±` is a replacement, with both of its halves, and `…` an open write of an earlier run. */
export type Sign = '+' | '~' | '-' | '±' | '=' | '…';

export interface PlanLine {
  readonly sign: Sign;
  readonly operation: Operation;
  /** The name inside its group. */
  readonly name: string;
}

const signs = { create: '+', update: '~', delete: '-', adopt: '=' } as const;

/**
 * The operations in the order of the spec: by server, all other resources by their map in the spec.
 *
 * @returns `title`: `networks`, or one server with all that is in it
 */
export function groupsOf(plan: Plan) {
  const groups = new Map<string, PlanLine[]>();
  // A blocked operation that may be tried again is listed under the blocks only.
  const blocked = new Set(plan.blocked.map(({ key }) => key));
  for (const operation of inFileOrder(plan.operations)) {
    if (blocked.has(operation.key)) continue;
    // A replacement has one line, at the creation of the new resource.
    if (operation.replacement !== undefined && operation.verb === 'delete') continue;
    const { title, name } = placeOf(operation.key);
    const sign =
      operation.open === true ? '…' : operation.replacement === undefined ? signs[operation.verb] : '±';
    const lines = groups.get(title) ?? [];
    groups.set(title, [...lines, { sign, operation, name }]);
  }
  return [...groups].map(([title, lines]) => ({ title, lines }));
}

/** An operation that an earlier run has sent. */
export function openText({ verb }: Operation): string {
  return `being ${participles[verb]} by an earlier run`;
}

const participles = { create: 'created', update: 'updated', delete: 'deleted', adopt: 'adopted' } as const;

function placeOf(key: string): { title: string; name: string } {
  const parsed = parseKey(key);
  // The id in the line distinguishes a retiring resource from its successor.
  const server = parsed && retiredFrom(parsed.key);
  if (parsed?.parent !== undefined)
    return { title: server ?? parsed.parent, name: key.slice(parsed.parent.length + 1) };
  if (parsed !== undefined && factsOf(parsed.kind).container)
    return { title: server ?? key, name: nounOf(parsed.kind) };
  const dot = key.indexOf('.');
  return { title: key.slice(0, dot), name: key.slice(dot + 1) };
}

/** The plan in one line. @param isApplied a run has ended with this plan */
export function summaryLine(plan: Plan, isApplied = false): string {
  const { summary, project } = plan;
  const nothing = plan.operations.length === 0 && plan.blocked.length === 0;
  if (nothing) {
    const managed = counted(summary.unchanged, 'resource');
    const differing = [...new Set(plan.warnings.filter(reportsDifference).map(({ key }) => key ?? 'it'))];
    if (differing.length > 0) {
      return `Nothing to do, but project ${project.id} differs from the spec: see the ${differing.length === 1 ? 'warning' : 'warnings'} of ${firstOf(differing)}.`;
    }
    const recorded = plan.warnings.filter(isRecorded);
    if (recorded.length > 0) {
      const keys = [...new Set(recorded.map(({ key }) => key ?? 'it'))];
      const what = recorded.every(isRename)
        ? counted(recorded.length, 'rename')
        : `the changes of ${firstOf(keys)}`;
      return isApplied
        ? `Nothing to send. The state has recorded ${what}.`
        : `Nothing to send. The next apply only records ${what}.`;
    }
    if (plan.warnings.some(({ code }) => code === 'left_out'))
      return `Nothing to do in the selected part of project ${project.id}.`;
    const seen = summary.unseen === undefined ? '' : ', as far as reads show';
    return `Nothing to do: project ${project.id} matches the spec${seen} (${managed}).`;
  }
  const parts = (
    [
      ['create', 'to create'],
      ['update', 'to update'],
      ['replace', 'to replace'],
      ['delete', 'to delete'],
      ['adopt', 'to adopt'],
      ['in_progress', 'in progress'],
      ['blocked', 'blocked'],
      ['unchanged', 'unchanged'],
    ] as const satisfies readonly (readonly [keyof Summary, string])[]
  ).flatMap(([count, words]) => {
    if ((summary[count] ?? 0) === 0) return [];
    if (count === 'blocked') return blockedParts(plan.blocked);
    if (count === 'in_progress') return [`${summary[count]} ${words}${openKeys(plan)}`];
    return [`${summary[count]} ${words}${count === 'delete' ? alongside(plan) : ''}`];
  });
  return `Plan: ${parts.join(', ')}.`;
}

/** A resource that the API already shows has no operation left, so the summary names the keys of all open writes. */
function openKeys({ warnings, summary }: Plan): string {
  const keys = new Set(
    warnings.flatMap(({ code, key }) => (code === 'in_flight' && key !== null ? [key] : [])),
  );
  return keys.size === summary.in_progress ? ` (${firstOf([...keys])})` : '';
}

/** An operation that needs no decision is counted apart. @param left operations that wait for the blocked ones */
export function blockedParts(blocked: readonly Blocked[], left: readonly Operation[] = []): string[] {
  const counts = decisions(blocked, left);
  return [
    ...(counts.blocked === 0 ? [] : [`${counts.blocked} blocked`]),
    ...(counts.waiting === 0 ? [] : [`${counts.waiting} waiting`]),
  ];
}

/** The rest is counted. */
function firstOf(keys: readonly string[]): string {
  const most = 3;
  const further = keys.length > most ? ` and ${keys.length - most} more` : '';
  return `${keys.slice(0, most).join(', ')}${further}`;
}

/** An address that is deleted with its server is a step of its own. `max_deletions` does not count it. */
function alongside({ operations }: Plan): string {
  const count = operations.filter(
    ({ verb, kind, key }) =>
      verb === 'delete' && factsOf(kind).knownBy !== undefined && parseKey(key)?.parent !== undefined,
  ).length;
  if (count === 0) return '';
  return ` (${counted(count, 'address', 'addresses')} with ${count === 1 ? 'its server' : 'their servers'})`;
}

export const newState = 'New state: apply adopts resources that a lost state created within 24 hours.';

/** A line about the cost and a line about the requests, if there are any. */
export function costLines({ cost, effort, operations, new_state: isNew }: Plan): string[] {
  if (operations.length === 0 && cost.left_billed.length === 0) return [];
  const delta = Number(cost.known_monthly_delta);
  const signed = `${delta > 0 ? '+' : ''}${cost.known_monthly_delta}`;
  const { currency, known_before: before, known_after: after } = cost.monthly;
  const [unit, where] = currency === null ? ['', ", in the account's currency"] : [` ${currency}`, ''];
  const most = cost.known_monthly_most;
  const atMost =
    most === undefined ? '' : ` (at most ${Number(most) > 0 ? '+' : ''}${most} with another package)`;
  const freed = cost.known_monthly_freed;
  const replaced =
    freed === undefined ? '' : ` (${freed} of it for servers that this spec has deleted to replace them)`;
  const known =
    delta === 0 && most === undefined
      ? []
      : [
          `Cost: ${signed}${unit} a month, from ${before} to ${after}${atMost}${replaced}; known prices only${where}`,
        ];
  const effortText =
    `Requests: ${counted(effort.writes, 'write')}, at least ${counted(effort.reads, 'read')}` +
    (effort.seconds_at_least === 0
      ? ''
      : `; because of the request limits, they take at least ${span(effort.seconds_at_least * 1000)}`);
  return [
    ...known,
    ...monthLine(cost.month, currency),
    ...unknownCost(cost.unknown),
    ...cost.left_billed.map((text) => `Left behind: ${text}`),
    ...(effort.writes === 0 ? [] : [effortText]),
    ...(isNew ? [newState] : []),
  ];
}

const kindWords: Readonly<Partial<Record<KindName, string>>> = {
  ip: 'address',
  network_interface: 'network interface',
};

/** Counts by kind, because one line for each resource would hide the rest. The JSON names each resource, with its reason. */
function unknownCost(unknown: readonly string[]): string[] {
  if (unknown.length === 0) return [];
  const kinds = Map.groupBy(unknown, (text) => parseKey(text.slice(0, text.indexOf(': ')))?.kind);
  const counts = [...kinds].map(([kind, { length }]) => {
    const noun = kind === undefined ? 'resource' : (kindWords[kind] ?? kind.replaceAll('_', ' '));
    return counted(length, noun, noun.endsWith('s') ? `${noun}es` : `${noun}s`);
  });
  return [`No catalogue price for ${counts.join(', ')}. Add prices with \`--prices FILE\`.`];
}

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
  return [...changed, changed.length === 0 ? allowedText(open) : `then ${allowedText(open)}`];
}

/** All incoming traffic that is allowed, so that a reader does not need the previous rules. */
function allowedText(open: readonly string[]): string {
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
