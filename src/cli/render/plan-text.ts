import equal from 'fast-deep-equal';
import {
  type Blocked,
  comesFirst,
  firstWarnings,
  inFileOrder,
  isRename,
  isWaiting,
  type Operation,
  type Plan,
  type Warning,
  withoutRepeats,
} from '../../core/plan.ts';
import { counted, printable } from '../../core/text.ts';
import { moment } from '../../core/time.ts';
import {
  consequences,
  costLines,
  groupsOf,
  newState,
  openText,
  type PlanLine,
  type Sign,
  shownIds,
  summaryLine,
} from '../../view/plan.ts';
import type { Paint, Style } from '../terminal.ts';
import { remedyLines } from './remedies.ts';
import { changeLines, declaredChanges, shown, wrapped } from './values.ts';

const colours: Readonly<Record<Sign | ' ', Style | undefined>> = {
  '+': 'green',
  '~': 'yellow',
  '-': 'red',
  '±': 'magenta',
  '=': 'cyan',
  '…': 'dim',
  ' ': undefined,
};

/** The answers of the API to the creations, and the writes that the answers have cost. */
function proofLines({ proofs }: Plan): string[] {
  if (proofs === undefined) return [];
  const lines = proofs.results.map(({ key, outcome, unproven }) => {
    const names = unproven.map((each) => `\`${each}\``).join(', ');
    const open = names === '' ? '' : `. Unproven: ${names}`;
    return printable(`  ${key}: ${proofTexts[outcome]}${open}`);
  });
  return [`Proofs: ${counted(proofs.writes, 'write')}, nothing created`, ...lines, ''];
}

const proofTexts: Readonly<Record<NonNullable<Plan['proofs']>['results'][number]['outcome'], string>> = {
  accepted: 'the API names no refused value',
  refused: 'the API refuses it',
  unanswered: 'the API has not answered',
  not_sent: 'not sent',
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
  const warnings = planWarnings(
    plan,
    plan.warnings.filter((each) => !comesFirst(each) && !isRename(each)),
    paint,
  );
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
    ...warnings,
    ...proofLines(plan),
    ...(costs.length === 0 ? [] : [...costs, '']),
    paint('bold', summaryLine(plan, isApplied)),
    '',
  ].join('\n');
}

/** Warnings of a plan that no blocked operation repeats, with an empty line at the end. */
export function planWarnings(
  { blocked }: Pick<Plan, 'blocked'>,
  warnings: readonly Warning[],
  paint: Paint,
): string[] {
  const { shown: listed, more } = firstWarnings(withoutRepeats(warnings, blocked));
  const lines = sameWarnings(listed).flatMap((alike) => alikeLines(alike, paint));
  if (more > 0) lines.push(paint('yellow', `And ${counted(more, 'more warning')}.`));
  return lines.length === 0 ? [] : [...lines, ''];
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

function operationLines({ sign, operation, name }: PlanLine, plan: Plan, paint: Paint): string[] {
  const { verb, reason, replacement } = operation;
  if (operation.open === true)
    return [`  ${tint(sign, `${sign} ${printable(name)}  ${openText(operation)}`, paint)}`];
  const why = reason === undefined ? [] : [printable(reason)];
  const about = [
    ...shownIds(operation, plan).map((each) => shown(each)),
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
    ...details.flatMap(({ mark, text }) =>
      wrapped(`${mark === ' ' ? margin : `${mark} `}${text}`).map(
        (line) => `      ${tint(mark, line, paint)}`,
      ),
    ),
    ...after(operation, plan, paint),
  ];
}

function after(operation: Operation, plan: Plan, paint: Paint): string[] {
  return consequences(operation, plan).flatMap((text) =>
    wrapped(`→ ${printable(text)}`).map((line) => `      ${paint('yellow', line)}`),
  );
}

function tint(sign: Sign | ' ', text: string, paint: Paint): string {
  const colour = colours[sign];
  return colour === undefined ? text : paint(colour, text);
}

/** The blocks that need a decision, with their remedies, and then the operations that wait. */
export function blockedLines(blocked: readonly Blocked[], paint: Paint): string[] {
  const ordered = inFileOrder(blocked);
  const decisions = ordered.filter((each) => !isWaiting(each));
  return [
    ...section(
      paint('bold', 'Blocked: manual decision needed'),
      sharedRuns(decisions).flatMap((alike) => runLines(alike, paint)),
    ),
    ...section(
      paint('bold', 'Waiting: no decision needed'),
      sharedRuns(ordered.filter(isWaiting)).flatMap((alike) => waitingLines(alike, paint)),
    ),
  ];
}

export function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [title, ...lines, ''];
}

/** Consecutive operations that wait with the same remedies. If another operation has to end first, it has the remedy. */
function waitingLines(alike: readonly Blocked[], paint: Paint): string[] {
  const ways = (alike[0]?.remedies ?? []).filter(({ type }) => type === 'run');
  return [
    ...alike.map(
      ({ key, verb, code, reason }) =>
        `  ${paint('dim', '…')} ${verb} ${printable(key)}: ${printable(reason)}  ${paint('dim', `[${printable(code)}]`)}`,
    ),
    ...remedyLines(ways, paint),
  ];
}

/** Consecutive blocks that one edit or command resolves. */
function sharedRuns(ordered: readonly Blocked[]): Blocked[][] {
  const runs: Blocked[][] = [];
  for (const each of ordered) {
    const last = runs.at(-1);
    const [first] = last ?? [];
    if (first?.code === each.code && equal(first.remedies, each.remedies)) last?.push(each);
    else runs.push([each]);
  }
  return runs;
}

/** The sentences that all texts begin with. One text shares nothing. */
function commonSentences(texts: readonly (readonly string[])[]): readonly string[] {
  const [first = [], ...others] = texts;
  if (others.length === 0) return [];
  const end = first.findIndex((sentence, at) => others.some((each) => each[at] !== sentence));
  return end === -1 ? first : first.slice(0, end);
}

function sentencesOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(/(?<=\.) (?=[A-Z\d])/);
}

function runLines(alike: readonly Blocked[], paint: Paint): string[] {
  const last = alike.at(-1);
  const isGroup = alike.length > 1;
  const common = commonSentences(alike.map(({ reason }) => sentencesOf(reason)));
  return [
    ...(common.length === 0 ? [] : [`  ${printable(common.join(' ').replace(/\.$/, ''))}:`]),
    ...alike.flatMap((each) => {
      const { key, verb, code, reason } = each;
      const head = `${verb} ${printable(key)}`;
      const since = each.since === undefined ? '' : ` since ${moment(each.since)}`;
      const tag = paint('dim', `[${printable(code)}]${since}`);
      return [
        `  ${paint('red', `! ${head}`)}  ${tag}`,
        ...sentencesOf(reason)
          .slice(common.length)
          .map((each) => `      ${printable(each)}`),
        ...(isGroup ? [] : remedyLines(each.remedies, paint)),
      ];
    }),
    // The remedies of a group are printed once, and not under one of its resources.
    ...(isGroup && last !== undefined ? remedyLines(last.remedies, paint, '  ') : []),
  ];
}

/** Of a `destroy` that finds nothing: a lost state does not know the resources that are still billed. */
export function nothingManaged({ project, warnings, new_state: isNew }: Plan, paint: Paint): string {
  const nothing = `Nothing to delete: the state manages no resource of project ${project.id}.`;
  return [
    ...warnings.flatMap((warning) => warningLines(warning, paint)),
    ...(isNew ? [newState] : []),
    nothing,
    '',
  ].join('\n');
}

/** A warning in one line, and its remedies in one line each. */
export function warningLines(
  { code, key, message, remedies = [] }: Omit<Warning, 'key'> & { readonly key: string | null },
  paint: Paint,
  { indent = '', title = 'Warning: ' } = {},
): string[] {
  const subject = key === null ? '' : `${printable(key)}: `;
  return [
    `${indent}${paint('yellow', title)}${subject}${printable(message)} ${paint('dim', `[${printable(code)}]`)}`,
    ...remedyLines(remedies, paint, `${indent}  `),
  ];
}

/** Warnings that differ only in their keys, together, at the place of the first. */
function sameWarnings(warnings: readonly Warning[]): Warning[][] {
  const name = ({ code, message, remedies = [] }: Warning) => JSON.stringify([code, message, remedies]);
  return [...Map.groupBy(warnings, name).values()];
}

/** One line for all keys that have the same warning. */
function alikeLines(alike: readonly Warning[], paint: Paint): string[] {
  const [first] = alike;
  if (first === undefined) return [];
  const keys = alike.flatMap(({ key }) => (key === null ? [] : [key]));
  return warningLines({ ...first, key: keys.length === 0 ? null : keys.join(', ') }, paint);
}
