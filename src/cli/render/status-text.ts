import { monthLine } from '../../core/decimal.ts';
import type { KeyStatus } from '../../core/key-status.ts';
import { firstWarnings, withoutRepeats } from '../../core/plan.ts';
import { command, commandLine, waysWithBackups, waysWithIdle, waysWithIgnored } from '../../core/remedy.ts';
import { counted, printable, span } from '../../core/text.ts';
import { moment } from '../../core/time.ts';
import { ignoredName } from '../../view/bill.ts';
import { pendingOperations } from '../../view/build.ts';
import type { BilledView, ProjectView, ResourceView } from '../../view/project-view.ts';
import { phaseWord, statusWord } from '../../view/words.ts';
import type { Paint, Style } from '../terminal.ts';
import { blockedLines, section, warningLines } from './plan-text.ts';
import { remedyLines } from './remedies.ts';
import { present } from './values.ts';

const styles: Readonly<Record<KeyStatus, Style>> = {
  converged: 'green',
  pending: 'yellow',
  differs: 'yellow',
  retiring: 'yellow',
  in_flight: 'cyan',
  waiting: 'yellow',
  blocked: 'red',
  tainted: 'red',
  undeclared: 'yellow',
  unknown: 'dim',
};

/** The status for an operator. @param timeScale how many times faster than the wall's clock the clock of all times runs */
export function statusText(view: ProjectView, paint: Paint, timeScale = 1): string {
  const { state, in_flight: inFlight, blocked, idle, resources } = view;
  const now = view.at === null ? undefined : Date.parse(view.at);
  const bound = new Set(resources.map(({ key }) => key));
  const missing = pendingOperations(view).filter(({ key }) => !bound.has(key));
  const { shown: shownWarnings, more: moreWarnings } = firstWarnings(withoutRepeats(view.warnings, blocked));
  const project = view.project.id === null ? 'Project unknown' : `Project ${view.project.id}`;
  const recorded =
    state?.exists === true
      ? `state ${state.location}, serial ${state.serial}${state.changed_at === null ? '' : `, last changed ${moment(state.changed_at)}`}`
      : `no state yet at ${state?.location}`;
  const width = Math.max('KEY'.length, ...resources.map(({ key }) => key.length));
  const idWidth = Math.max('ID'.length, ...resources.map(({ id }) => printable(id ?? '').length));
  const addressOf = ({ addresses }: ResourceView) => addresses.map(printable).join(', ');
  const longest = Math.max(0, ...resources.map((each) => addressOf(each).length));
  const addressWidth = longest === 0 ? 0 : Math.max('ADDRESS'.length, longest);
  const line = (key: string, id: string, address: string, status: string) =>
    `  ${key.padEnd(width)}  ${id.padEnd(idWidth)}  ${addressWidth === 0 ? '' : `${address.padEnd(addressWidth)}  `}${status}`;
  const seen =
    view.observed_at === null
      ? paint(
          'yellow',
          `${state?.exists === true ? 'From the state only' : 'The API was not read'} (${printable(view.offline ?? 'the API was not read')})`,
        )
      : `Last refresh: ${moment(view.observed_at)}${age(view.observed_at, now)}${timeScale === 1 ? '' : ` (emulator clock, ${timeScale}×)`}`;
  return [
    paint('bold', project),
    paint('dim', printable(recorded)),
    seen,
    '',
    ...(resources.length === 0 ? [] : [paint('dim', line('KEY', 'ID', 'ADDRESS', 'STATUS'))]),
    ...resources.map((resource) => {
      const { key, id, standing, protect, bound_at: since } = resource;
      const began = since ?? '';
      const word =
        standing === 'unknown' ? `recorded ${moment(began)}${age(began, now)}` : statusWord(standing);
      const open = view.exposed?.includes(key) === true ? paint('red', ', exposed') : '';
      const status = `${paint(styles[standing], word)}${open}${protect ? paint('dim', ', protected') : ''}`;
      return line(key, printable(id ?? ''), addressOf(resource), status);
    }),
    ...(resources.length === 0 ? ['  no managed resources'] : []),
    '',
    ...section(
      paint('bold', 'Open writes'),
      inFlight.map(
        ({ key, verb, phase, since, task_id: task }) =>
          `  ${verb} ${key}: ${phaseWord(phase ?? 'sending')} since ${moment(since)}${task === null ? '' : `, task ${printable(task)}`}`,
      ),
    ),
    ...blockedLines(blocked, paint),
    ...section(
      paint('bold', 'Billed, unconfirmed'),
      (view.unconfirmed ?? []).map(
        ({ what, id, key }) =>
          `  ${printable(what)}, id ${printable(id)}: possibly the result of the open write of ${key}`,
      ),
    ),
    ...section(paint('bold', 'Warnings'), [
      ...shownWarnings.flatMap((warning) => warningLines(warning, paint, { indent: '  ', title: '' })),
      ...(moreWarnings === 0 ? [] : [`  and ${moreWarnings} more`]),
    ]),
    ...section(
      paint('bold', 'Pending'),
      missing.filter(({ verb }) => verb !== 'adopt').map(({ key, verb }) => `  ${key} (${verb})`),
    ),
    ...section(
      paint('bold', 'Existing, to be adopted by the next apply'),
      missing.filter(({ verb }) => verb === 'adopt').map(({ key }) => `  ${key}`),
    ),
    ...section(
      paint('bold', 'Billed and idle'),
      (idle ?? []).flatMap((each) => idleLines(each, paint)),
    ),
    ...section(
      paint('bold', 'Billed backups of deleted servers'),
      view.left_backups.flatMap(({ server_id: id, key, backups, since }) => [
        `  server ${printable(id)}, was ${key}, deleted ${moment(since)}: ${counted(backups.length, 'backup')} ${backups.map(printable).join(', ')}`,
        ...remedyLines(waysWithBackups(id), paint, '    '),
      ]),
    ),
    ...section(paint('bold', 'Released or ignored, and still billed'), ignoredLines(view.ignored, paint)),
    `Billed: ${billedText(view)}`,
    ...monthlyLines(view),
    paint('bold', verdict(view, paint.flags)),
    '',
  ].join('\n');
}

/** The most names in a list: a longer list is hard to scan. */
const mostNames = 20;

function idleLines({ what, id, key, since }: BilledView, paint: Paint): string[] {
  const whose = key === null ? 'not managed by this spec' : key;
  const line = `  ${printable(what)}, id ${printable(id)}, ${whose}${since === null ? '' : `, since ${moment(since)}`}`;
  if (key !== null) return [line];
  const [, address = id] = printable(what).split(' ');
  return [line, ...remedyLines(waysWithIdle(id, address), paint, '    ')];
}

function ignoredLines(left: ProjectView['ignored'], paint: Paint): string[] {
  if (left.length === 0) return [];
  const names = left.slice(0, mostNames).map(ignoredName);
  const more = left.length - names.length;
  const shown = more > 0 ? [...names, `and ${more} more, all of them with --format json`] : names;
  return [`  ${shown.map(printable).join(', ')}`, ...remedyLines(waysWithIgnored(), paint, '    ')];
}

function billedText(view: ProjectView): string {
  const { state, idle, observed_at: observed, unconfirmed_creations: open } = view;
  if (state?.exists !== true && observed === null) return 'unknown without the API';
  const may =
    open.length === 0 ? '' : `; possibly ${open.join(', ')}: the result of the creation is not known`;
  const known =
    view.billed.length > 0 ? billedSum(view.billed) : `nothing${may === '' ? '' : ' for certain'}`;
  const unlisted = view.warnings.some(({ code }) => code === 'unlisted_servers')
    ? '; not included: servers that the API does not list'
    : '';
  return `${known}${may}${unlisted}${idle === null ? ' (idle addresses: unknown without the API)' : ''}`;
}

function billedSum(billed: ProjectView['billed']): string {
  const others = billed.filter(({ key }) => key === null).length;
  const sorts = new Map<string, number>();
  for (const { what } of billed) {
    const sort = /^(?:server image|\S+)/.exec(what)?.[0] ?? what;
    sorts.set(sort, (sorts.get(sort) ?? 0) + 1);
  }
  const each = [...sorts].map(([sort, count]) => counted(count, sort, plurals[sort]));
  return `${each.join(', ')}${others === 0 ? '' : `; ${others} of these not managed by this spec`}`;
}

const plurals: Readonly<Record<string, string>> = { address: 'addresses' };

/** Nothing where no price is known: a sum of nothing would read as free. */
function monthlyLines({ plan, idle_monthly: idle }: ProjectView): string[] {
  const monthly = plan?.cost.monthly;
  const sum = (known: string, currency: string | null) =>
    `${known} ${currency === null ? "in the account's currency" : printable(currency)}`;
  return present(
    monthly !== undefined &&
      Number(monthly.known_before) !== 0 &&
      `Monthly cost of managed resources: ${sum(monthly.known_before, monthly.currency)}${unknown(monthly.unknown)}`,
    monthLine(plan?.cost.month, monthly?.currency ?? null).map(printable),
    idle !== null &&
      Number(idle.known) !== 0 &&
      `Monthly cost of idle addresses: ${sum(idle.known, idle.currency)}`,
  );
}

/** As many names as are read at a glance. */
function unknown(keys: readonly string[]): string {
  if (keys.length === 0) return '';
  const whose = keys.length > 3 ? `${keys.length} more resources` : keys.join(', ');
  return `, plus the unknown cost of ${whose}`;
}

function verdict({ converged, counts, in_flight: inFlight }: ProjectView, flags?: string): string {
  const writes = inFlight.length === 1 ? 'the open write' : `${inFlight.length} open writes`;
  const inFlightText = `Not converged: \`${commandLine(command('apply'), flags)}\` finishes ${writes}.`;
  const { blocked, waiting } = counts;
  if (converged === true) return 'Converged.';
  if (converged === false && blocked + waiting === 0 && inFlight.length > 0) return inFlightText;
  if (converged === false)
    return `Not converged: \`${commandLine(command('plan'), flags)}\` shows the difference.`;
  if (blocked > 0) return `${counted(blocked, 'operation')} blocked.`;
  if (waiting > 0) return `${counted(waiting, 'operation')} waiting.`;
  if (inFlight.length > 0) return inFlightText;
  return 'Convergence: unknown without the spec and the API.';
}

/** The age of a recorded time. A time in the future, written by a clock that ran faster, has no age. */
function age(text: string, now: number | undefined): string {
  if (now === undefined) return '';
  const ms = now - Date.parse(text);
  return ms < 0 ? '' : ms < 1_000 ? ', just now' : `, ${span(ms)} ago`;
}
