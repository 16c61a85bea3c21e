import { retiredFrom } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import {
  type Blocked,
  comesFirst,
  firstWarnings,
  isWaiting,
  type Plan,
  withoutRepeats,
} from '../../core/plan.ts';
import { command, commandLine, piecesOf, type Remedy } from '../../core/remedy.ts';
import { counted, printable } from '../../core/text.ts';
import { moment } from '../../core/time.ts';
import {
  consequences,
  costLines,
  groupsOf,
  liveOf,
  openText,
  type PlanLine,
  summaryLine,
} from '../../view/plan.ts';
import { changeLines, declaredChanges } from './values.ts';

/** The strictest of the usual forges limits a comment to 65,536 characters. The rest is for the caller's own text. */
export const markdownLimit = 60_000;

/**
 * A plan for a comment on a merge request: the summary open, the details folded. Parts beyond
 * `markdownLimit` are left out, details first, and counted in a note.
 */
export function planMarkdown(plan: Plan, flags = ''): string {
  const title = `### vdcsync: project ${plan.project.id} (${escaped(plan.project.name)}, ${escaped(plan.project.status)})`;
  const groups = groupsOf(plan).map(({ title: group, lines }) =>
    details(
      `<code>${html(group)}</code>: ${lines.map(({ sign, name }) => `${sign} ${html(name)}`).join(', ')}`,
      [fenced(lines.flatMap((line) => diffLines(line, plan)))],
    ),
  );
  const item = ({ key, verb, code, reason, remedies }: Blocked) =>
    `- **${verb}** ${inline(key)} (${inline(code)}): ${escaped(reason)}  \n  ${remedies.map((each) => remedyMarkdown(each, flags)).join('  \n  or ')}`;
  const blocked = plan.blocked.filter((each) => !isWaiting(each)).map(item);
  const waiting = plan.blocked.filter(isWaiting).map(item);
  const warning = ({ code, key, message, remedies = [] }: Plan['warnings'][number]) =>
    [
      `${key === null ? '' : `${inline(key)}: `}${escaped(message)} (${inline(code)})`,
      ...remedies.map((each) => remedyMarkdown(each, flags)),
    ].join('  \n  ');
  const first = plan.warnings.filter(comesFirst).map((each) => `> **Warning**: ${warning(each)}`);
  const { shown: listed, more } = firstWarnings(
    withoutRepeats(plan.warnings, plan.blocked).filter((each) => !comesFirst(each)),
  );
  const warnings = [
    ...listed.map((each) => `- ${warning(each)}`),
    ...(more === 0 ? [] : [`- and ${counted(more, 'more warning')}`]),
  ];
  const costs = costLines(plan).map((line) => `- ${escaped(line)}`);
  const dangers = plan.operations
    .filter(
      ({ risk, replacement, verb }) =>
        risk === 'destructive' && (replacement === undefined || verb === 'delete'),
    )
    .map((operation) => {
      const { key, kind, replacement, reason, loses } = operation;
      const live = liveOf(operation, plan).map(inline);
      const what = loses !== undefined ? 'changes' : replacement === undefined ? 'deletes' : 'replaces';
      const why = reason === undefined ? '' : `: ${escaped(reason)}`;
      const [, ...further] = consequences(operation, plan).map(escaped);
      const more = further.length === 0 ? '' : ` (${further.join('; ')})`;
      const { lost: data } = factsOf(kind);
      const gone = `Lost: ${escaped(loses ?? data ?? '')}.`;
      const lost = data === undefined ? '' : `. **${gone}**${more}`;
      const named = replacement === undefined ? key : (retiredFrom(key) ?? key);
      return `- **${what}** ${inline(named)}${live.length === 0 ? '' : ` (${live.join(', ')})`}${why}${lost}`;
    });
  const traffic = plan.operations.flatMap((operation) =>
    operation.traffic === undefined
      ? []
      : [`- ${inline(operation.key)}: ${consequences(operation, plan).map(escaped).join('; ')}`],
  );
  const head = [title, `**${escaped(summaryLine(plan))}**`, ...first];
  const foot = `<sub>Refreshed ${moment(plan.observed_at)}, ${inline(plan.digest)}</sub>`;
  const page = new Page(markdownLimit - [...head, foot].join('\n\n').length - noteRoom);
  // It is short, and nothing that is long shall push it out.
  const money = page.section('Cost and requests', costs);
  const body = [
    ...page.section('Deleted, replaced or lost', dangers),
    ...page.section('Blocked: manual decision needed', blocked),
    ...page.section('Waiting: no decision needed', waiting),
    ...page.section('Traffic', traffic),
    ...page.section('Warnings', warnings),
    ...money,
    ...page.take(groups, 'groups of operations'),
  ];
  return `${[...head, ...page.note(flags), ...body, foot].join('\n\n')}\n`;
}

const noteRoom = 500;

/** Collects the parts that fit, and counts the parts that do not. */
class Page {
  #room: number;
  readonly #left: string[] = [];

  constructor(room: number) {
    this.#room = room;
  }

  section(heading: string, lines: readonly string[]): string[] {
    if (lines.length === 0) return [];
    const title = `#### ${heading}\n\n`;
    this.#room -= title.length + 2;
    const taken = this.take(lines, `lines of “${heading}”`);
    return taken.length === 0 ? [] : [`${title}${taken.join('\n')}`];
  }

  take(parts: readonly string[], what: string): string[] {
    const taken: string[] = [];
    for (const part of parts) {
      if (this.#room < part.length + 2) continue;
      this.#room -= part.length + 2;
      taken.push(part);
    }
    if (taken.length < parts.length)
      this.#left.push(`${parts.length - taken.length} of ${parts.length} ${what}`);
    return taken;
  }

  note(flags: string): string[] {
    if (this.#left.length === 0) return [];
    return [
      `> **Cut to ${markdownLimit} characters**: without ${this.#left.join(', ')}. \`${commandLine(command('plan'), flags)}\` shows all of it.`,
    ];
  }
}

/** Commands as code, all else as prose. */
function remedyMarkdown(remedy: Remedy, flags: string): string {
  const steps = piecesOf(remedy, flags).map((piece) =>
    'command' in piece ? inline(piece.command) : escaped(piece.text),
  );
  return `${steps.join('; then ')}${remedy.when === undefined ? '' : ` (${escaped(remedy.when)})`}`;
}

/** A `diff` block colours by the first character of a line. */
function diffLines({ sign, operation, name }: PlanLine, plan: Plan): string[] {
  const { verb, replacement, reason } = operation;
  if (operation.open === true) return [`! ${sign} ${printable(name)}  # ${openText(operation)}`];
  const isNew = verb === 'create' && replacement === undefined;
  const mark = sign === '+' || sign === '-' ? sign : '!';
  const known = [...liveOf(operation, plan), ...(reason === undefined ? [] : [reason])];
  const about = known.length === 0 ? '' : `  # ${printable(known.join(', '))}`;
  return [
    `${mark} ${sign === mark ? '' : `${sign} `}${printable(name)}${about}`,
    ...(verb === 'delete' ? [] : declaredChanges(operation))
      .flatMap((change) => changeLines(change, isNew))
      .map(({ mark: inner, text }) => {
        const first = isNew ? '+' : inner === '~' ? '!' : inner;
        return `${first}     ${text}`;
      }),
  ];
}

function details(summary: string, body: readonly string[]): string {
  return `<details><summary>${summary}</summary>\n\n${body.join('\n\n')}\n\n</details>`;
}

/** The fence is longer than any run of backticks inside. */
function fenced(lines: readonly string[]): string {
  const text = lines.join('\n');
  const fence = '`'.repeat(Math.max(3, longestTicks(text) + 1));
  return `${fence}diff\n${text}\n${fence}`;
}

function inline(text: string): string {
  const clean = printable(text);
  const ticks = '`'.repeat(longestTicks(clean) + 1);
  const pad = clean.startsWith('`') || clean.endsWith('`') ? ' ' : '';
  return `${ticks}${pad}${clean}${pad}${ticks}`;
}

function longestTicks(text: string): number {
  return Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
}

/** Prose; text between backticks is code. */
function escaped(text: string): string {
  const parts = text.split('`');
  if (parts.length % 2 === 0) return plain(text);
  return parts.map((part, index) => (index % 2 === 0 || part === '' ? plain(part) : inline(part))).join('');
}

/** Text that stays text: no markup, no HTML, no mention of a user. */
function plain(text: string): string {
  return html(printable(text)).replace(/^[+-]|[\\`*_[\]#!|~@]/g, (character) =>
    character === '@' ? '@\u200b' : `\\${character}`,
  );
}

function html(text: string): string {
  return printable(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
