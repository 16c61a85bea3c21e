import equal from 'fast-deep-equal';
import { factsOf } from '../../core/kind-facts.ts';
import { moment } from '../../core/moment.ts';
import {
  type Blocked,
  comesFirst,
  inFileOrder,
  isRename,
  type Operation,
  type Plan,
  type Warning,
} from '../../core/plan.ts';
import { type Paint, printable, type Style } from '../terminal.ts';
import { consequences, liveOf } from './consequences.ts';
import { costLines, groupsOf, type PlanLine, type Sign, summaryLine } from './plan-groups.ts';
import { remedyLines } from './remedies.ts';
import { changeLines, declaredChanges, shown } from './values.ts';

const colours: Readonly<Record<Sign | ' ', Style | undefined>> = {
  '+': 'green',
  '~': 'yellow',
  '-': 'red',
  '±': 'magenta',
  '=': 'cyan',
  ' ': undefined,
};

/**
 * A plan to be read at a glance; one line where there is nothing to do.
 *
 * @param isApplied a run has ended with this plan, so that the state has recorded all that needs no write
 */
export function planText(plan: Plan, paint: Paint, isApplied = false): string {
  const groups = groupLines(plan, paint);
  const renames = plan.warnings.filter(isRename);
  const header =
    groups.length + plan.blocked.length + renames.length === 0
      ? []
      : [
          `Project ${plan.project.id} (${printable(plan.project.name)}, ${printable(plan.project.status)})`,
          '',
        ];
  const first = plan.warnings.filter(comesFirst).flatMap((warning) => warningLines(warning, paint));
  const warnings = plan.warnings
    .filter((each) => !comesFirst(each) && !isRename(each))
    .flatMap((warning) => warningLines(warning, paint));
  const costs = costLines(plan).map(printable);
  return [
    ...header,
    ...(first.length === 0 ? [] : [...first, '']),
    ...renames.map(
      ({ key, message }) => `${paint('cyan', `→ ${printable(key ?? '')}`)}  ${printable(message)}`,
    ),
    ...(renames.length === 0 ? [] : ['']),
    ...groups,
    ...blockedLines(plan.blocked, paint),
    ...(warnings.length === 0 ? [] : [...warnings, '']),
    ...(costs.length === 0 ? [] : [...costs, '']),
    paint('bold', summaryLine(plan, isApplied)),
    '',
  ].join('\n');
}

/** Operations that a run adds to its plan. */
export function furtherText(plan: Plan, paint: Paint): string {
  return ['The project needs further operations:', '', ...groupLines(plan, paint)].join('\n');
}

function groupLines(plan: Plan, paint: Paint): string[] {
  return groupsOf(plan).flatMap(({ title, lines }) => [
    paint('bold', printable(title)),
    ...lines.flatMap((line) => operationLines(line, plan, paint)),
    '',
  ]);
}

/** The resource of a firewall, for example, has no id of its own: its id is that of the server. */
function idOf(operation: Operation, plan: Plan): string[] {
  if (operation.verb === 'update' && factsOf(operation.kind).field !== undefined) return [];
  return liveOf(operation, plan).map((text) => (/^\d+$/.test(text) ? `id ${text}` : shown(text)));
}

function operationLines({ sign, operation, name }: PlanLine, plan: Plan, paint: Paint): string[] {
  const { verb, reason, replacement } = operation;
  const why = reason === undefined ? [] : [printable(reason)];
  const about = [
    ...idOf(operation, plan),
    ...(replacement === undefined ? why : [['replaced', ...why].join(': ')]),
  ];
  const isNew = verb === 'create' && replacement === undefined;
  const details =
    verb === 'delete' ? [] : declaredChanges(operation).flatMap((change) => changeLines(change, isNew));
  const margin = isNew ? '' : '  ';
  const [only, another] = details;
  const head = `  ${tint(sign, `${sign} ${printable(name)}`, paint)}`;
  // A creation with one field fits into one line.
  if (isNew && about.length === 0 && only !== undefined && another === undefined)
    return [`${head}  ${only.text}`, ...after(operation, plan, paint)];
  return [
    `${head}${about.length === 0 ? '' : paint('dim', `  ${about.join(', ')}`)}`,
    ...details.map(
      ({ mark, text }) => `      ${tint(mark, `${mark === ' ' ? margin : `${mark} `}${text}`, paint)}`,
    ),
    ...after(operation, plan, paint),
  ];
}

function after(operation: Operation, plan: Plan, paint: Paint): string[] {
  return consequences(operation, plan).map((text) => `      ${paint('yellow', `→ ${printable(text)}`)}`);
}

function tint(sign: Sign | ' ', text: string, paint: Paint): string {
  const colour = colours[sign];
  return colour === undefined ? text : paint(colour, text);
}

/** The blocks that need an operator: code, reason, and the command that resolves the block, each on a line of its own. */
export function blockedLines(blocked: readonly Blocked[], paint: Paint): string[] {
  const waiting = blocked.filter(isWaiting);
  return [
    ...waitingLines(inFileOrder(waiting), paint),
    ...decisionLines(inFileOrder(blocked.filter((each) => !isWaiting(each))), paint),
  ];
}

/** The operation waits for a write in flight, so it needs no decision. */
function isWaiting({ code, remedies: [only, another] }: Blocked): boolean {
  const isApply = only?.type === 'run' && only.command === 'apply';
  return code === 'dependency_blocked' && isApply && another === undefined;
}

function waitingLines(waiting: readonly Blocked[], paint: Paint): string[] {
  const [first] = waiting;
  if (first === undefined) return [];
  return [
    paint('bold', 'Waiting for a write in flight'),
    ...waiting.map(
      ({ key, verb, reason }) => `  ${paint('dim', '…')} ${verb} ${printable(key)}: ${printable(reason)}`,
    ),
    ...remedyLines(first.remedies, paint),
    '',
  ];
}

function decisionLines(ordered: readonly Blocked[], paint: Paint): string[] {
  if (ordered.length === 0) return [];
  return [
    paint('bold', 'Blocked: manual decision needed'),
    ...ordered.flatMap((each, at) => {
      const { key, verb, code, reason } = each;
      const next = ordered[at + 1];
      const head = `${verb} ${printable(key)}`;
      const since = each.since === undefined ? '' : ` since ${moment(Date.parse(each.since))}`;
      const tag = paint('dim', `[${printable(code)}]${since}`);
      // The remedies of the other operation are in its own lines.
      if (code === 'dependency_blocked' && each.remedies.every(({ type }) => type === 'outside'))
        return [`  ${paint('dim', '…')} ${head}: ${printable(reason)}  ${tag}`];
      // If one edit or command resolves several blocks, it is printed once, after the last of them.
      const isShared = next?.code === code && equal(next.remedies, each.remedies);
      return [
        `  ${paint('red', `! ${head}`)}  ${tag}`,
        `      ${printable(reason)}`,
        ...(isShared ? [] : remedyLines(each.remedies, paint)),
      ];
    }),
    '',
  ];
}

/** A warning in one line, and its remedies in one line each. */
export function warningLines(
  { code, key, message, remedies = [] }: Warning,
  paint: Paint,
  { indent = '', title = 'Warning ' } = {},
): string[] {
  const subject = key === null ? '' : `${printable(key)}: `;
  return [
    `${indent}${paint('yellow', title)}${subject}${printable(message)} ${paint('dim', `[${printable(code)}]`)}`,
    ...remedyLines(remedies, paint, `${indent}  `),
  ];
}
