import { html, raw } from 'hono/html';
import { keyStatuses } from '../../core/key-status.ts';
import { takeApart } from '../../core/keys.ts';
import {
  type Blocked,
  type Change,
  isLeft,
  type Operation,
  type Warning,
  withoutRepeats,
} from '../../core/plan.ts';
import { command } from '../../core/remedy.ts';
import { capitalised, counted } from '../../core/text.ts';
import { shortDigest } from '../../engine/run/approval.ts';
import { diagnosticView, pendingOperations } from '../../view/build.ts';
import type { Condition } from '../../view/condition.ts';
import type { Commit } from '../../view/facts.ts';
import { consequences, shownIds } from '../../view/plan.ts';
import { type ProjectView, type ResourceView, resourcesIn } from '../../view/project-view.ts';
import { barsPicture, timelineOf } from '../../view/timeline.ts';
import { phaseWord, statusWord } from '../../view/words.ts';
import { firstChanges } from '../notifications/drift.ts';
import { approvalOf, waysOfError } from '../notifications/notification.ts';
import type { SourceState } from '../sources/spec-reader.ts';
import { changeText } from './bill.ts';
import { addressIn, codeText, isInDangers, retryText } from './dangers.ts';
import { wordText } from './headline.ts';
import type { Pager } from './pager.ts';
import { flagsOf, remediesHtml } from './remedies.ts';
import {
  absenceText,
  type Html,
  keyText,
  marked,
  sentence,
  since,
  span,
  timeAgo,
  timeAhead,
} from './text.ts';

/**
 * Problems that stop vdcsync as a whole: as loud as a blocked write.
 *
 * @param isAlone no page of all projects shows the specs that no project uses
 */
export function alarms(
  view: ProjectView | undefined,
  source: SourceState,
  { now, isAlone, pager }: { readonly now: number; readonly isAlone: boolean; readonly pager: Pager },
): Html[] {
  const broken = view?.spec.broken ?? [];
  const orphans = source.orphans
    .filter(({ projectId }) => view === undefined || isAlone || projectId === view.project.id)
    .flatMap(({ problem }) => problem.map(diagnosticView));
  const { error = null, waiting_for: owner = null } = view?.daemon ?? {};
  const { commit } = source;
  const age = view === undefined ? '' : since(view.spec.broken_since, view.at);
  return [
    source.error === undefined
      ? ''
      : html`<section class="wide alarm" id="source"><h2>The source cannot be read</h2><p>${source.error}</p><p>${source.readAt === undefined ? 'No spec was read yet.' : html`The specs of the last read, ${timeAgo(source.readAt, now)}, stay in force.`}</p></section>`,
    broken.length === 0
      ? ''
      : html`<section class="wide alarm" id="broken"><h2>The spec ${age === '' ? 'is broken' : html`has been broken${age}`}</h2>
<p>${view?.spec.files.length === 0 ? 'No valid spec was read yet, so vdcsync changes nothing.' : 'The last valid spec stays in force, so the newest edit has no effect.'}${commit === undefined ? '' : html` Newest commit: ${commitText(commit)}.`}</p>${problemList(pager.of(broken), view === undefined ? '' : flagsOf(view))}</section>`,
    orphans.length === 0
      ? ''
      : html`<section class="wide alarm" id="unused-specs"><h2>A spec cannot be used</h2><p>vdcsync does nothing for this spec until it is corrected.</p>${problemList(pager.of(orphans), '')}</section>`,
    owner === null
      ? ''
      : html`<section class="wide alarm" id="waiting"><h2>Another process owns the state</h2><p>The owner is ${owner}. This process writes nothing until the owner ends.</p></section>`,
    view === undefined || error === null ? '' : errorPanel(view, error),
  ];
}

function errorPanel(view: ProjectView, error: string): Html {
  const { condition, at, daemon } = view;
  const next = daemon?.next_reconciliation_at ?? null;
  const failed = condition ?? 'failing';
  return html`<section class="wide alarm" id="error"><h2>${failures[failed] ?? failures.failing}</h2><p>${error}</p><p>Until this is solved, vdcsync changes nothing in this project, and this page shows older values.</p>${next === null || at === null ? '' : html`<p class="dim">Next attempt: ${timeAhead(next, at)}.</p>`}${remediesHtml(waysOfError(failed), flagsOf(view))}</section>`;
}

type ShownCommit = Pick<Commit, 'id' | 'subject' | 'author'> & { readonly url?: string | null };

/** A commit with its author, and a link to its page at the forge. */
export function commitText({ id, subject, author, url }: ShownCommit): Html {
  const name = html`<code>${id.slice(0, 12)}</code>`;
  const link = url === undefined || url === null ? name : html`<a href="${url}" rel="noreferrer">${name}</a>`;
  return html`${link} “${subject}”${author === '' ? '' : ` by ${author}`}`;
}

/** @param flags that select the project in a command */
function problemList(problems: ProjectView['spec']['broken'], flags: string): Html {
  return html`<ul>${problems.map(
    ({ file, line, column, message }) =>
      html`<li><code>${file}:${line}:${column}</code><br>${marked(sentence(message))}</li>`,
  )}</ul>${remediesHtml([checkingSpec(problems)], overlaysIn(flags))}`;
}

/** Checks the files of a broken spec where they are edited. */
function checkingSpec(broken: ProjectView['spec']['broken']) {
  const files = [...new Set(broken.map(({ file }) => file))];
  return command(
    'validate',
    files.flatMap((file) => ['-f', file]),
    { when: 'to check the corrected spec before you deploy it' },
  );
}

function overlaysIn(flags: string): string {
  return (flags.match(/ --overlay (?:'[^']*'|\S+)/g) ?? []).join('');
}

const failures: Readonly<Partial<Record<Condition, string>>> = {
  fenced: 'The token is for another project',
  unauthorized: 'The API refuses the token',
  unreachable: 'The API does not answer',
  failing: 'The last reconciliation failed',
};

/** Each decision with how long it has been needed, its cause, and the commands that settle it. */
export function blockedPanel(view: ProjectView, pager: Pager): Html {
  const decisions = view.blocked.filter(({ decision }) => decision);
  const blocked = decisions.filter((each) => !isInDangers(view, each));
  const elsewhere = decisions.length - blocked.length;
  if (blocked.length === 0) return '';
  return html`<section class="wide alarm" id="blocked"><h2>Blocked: manual decision needed</h2><ul>
${pager.of(blocked).map((each) => blockedItem(each, view))}
${elsewhere === 0 ? '' : html`<li><a href="#danger">${counted(elsewhere, 'more decision')} under Danger</a></li>`}</ul></section>`;
}

/** Writes that vdcsync continues by itself: paused classes, failed writes, and operations that wait for others. */
export function waitingPanel(view: ProjectView, pager: Pager): Html {
  const { at, daemon } = view;
  const { pauses = [], back_off: retries = [] } = daemon ?? {};
  const waiting = view.blocked.filter((each) => !each.decision && !isInDangers(view, each));
  const inPlan = new Set(view.blocked.map(({ key }) => key));
  const backOff = retries.filter(({ key }) => !inPlan.has(key));
  if (waiting.length + pauses.length + backOff.length === 0) return '';
  return html`<section class="wide attention" id="waits"><h2 class="warn">Waiting: no decision needed</h2><ul>
${pager
  .of(pauses)
  .map(
    ({ scope, code, reason, probe_at: probe, since: began }) =>
      html`<li><strong>${pausedText(scope)}</strong> <span class="warn">${since(began, at)}</span> ${codeText({ code, reason })}<p>${marked(sentence(reason))}</p><p class="dim">${probe === null || at === null ? 'These writes continue when the project is Active.' : html`Next attempt: ${timeAhead(probe, at)}.`}</p></li>`,
  )}
${pager
  .of(backOff)
  .map(
    ({ key, failures, until, reason, code }) =>
      html`<li><strong>${keyText(key)}</strong> <span class="warn">failed ${counted(failures, 'time')}</span> ${codeText({ code, reason })}<p>${marked(sentence(reason))}</p>${at === null ? '' : html`<p class="dim">Next attempt: ${timeAhead(until, at)}.</p>`}</li>`,
  )}
${pager.of(waiting).map((each) => blockedItem(each, view))}</ul></section>`;
}

/** The writes of a paused class. A class of one operation has the name of that operation. */
function pausedText(scope: string): string {
  if (scope === 'everything') return 'All writes are paused';
  if (scope === 'spending') return 'Writes that add cost are paused';
  return `Writes such as ${wordText(scope)} are paused`;
}

function blockedItem(entry: ProjectView['blocked'][number], view: ProjectView): Html {
  const { key, verb, reason, decision, since: began = null } = entry;
  const word = decision ? 'blocked' : 'waiting';
  return html`<li><strong>${verb} ${keyText(key)}</strong> <span class="${decision ? 'bad' : 'warn'}">${word}${since(began, view.at)}</span> ${codeText(entry)}
<p>${marked(sentence(reason))}</p>${retryText(entry, view)}${remediesHtml(filledIn(entry, view), flagsOf(view))}</li>`;
}

/** The live id of an unconfirmed address stands where the operator would fill it in. */
function filledIn({ key, remedies }: Blocked, { unconfirmed }: ProjectView): Blocked['remedies'] {
  const [found, other] = (unconfirmed ?? []).filter((each) => each.key === key);
  if (found === undefined || other !== undefined) return remedies;
  const address = addressIn(found.what);
  return remedies.map((remedy) =>
    remedy.type === 'run' && remedy.args.includes('--adopt')
      ? {
          ...remedy,
          args: remedy.args.map((each) => (each === 'ID' ? found.id : each)),
          when: `if vdcsync alone can have created ${address}`,
        }
      : remedy,
  );
}

/** The plan that waits for the operator, with the fields, the impact and the cost of its operations. */
export function approvalPanel(view: ProjectView, pager: Pager): Html {
  const { plan, operations } = view;
  if (plan?.awaits_approval !== true) return '';
  const { known_monthly_delta: delta, monthly, unpriced } = plan.cost;
  const cost = Number(delta) === 0 ? [] : [`${changeText(delta, monthly.currency)}`];
  const unknown = unpriced.length === 0 ? [] : [`no known price for ${counted(unpriced.length, 'resource')}`];
  const costs = [...cost, ...unknown].join(', ');
  return html`<section class="wide attention" id="approval"><h2 class="warn">A plan waits for approval</h2><p>Plan <code>${shortDigest(plan.digest)}</code> has ${counted(operations.length, 'operation')}. vdcsync applies it after your approval.${costs === '' ? '' : html` Cost: <span class="warn">${costs}</span>.`}</p>${remediesHtml(approvalOf(plan), flagsOf(view))}<ul>${operationItems(view, pager.of(operations))}</ul></section>`;
}

/** The step of an operation, in standard words. */
const steps = {
  queued: 'queued',
  sent: 'sent',
  task: 'waiting for task',
  failed: 'task failed',
  checking: 'checking the result',
  waiting: 'waiting',
} as const;

export function inFlightPanel(view: ProjectView, pager: Pager): Html {
  const { in_flight: flights, at } = view;
  if (flights.length === 0 || at === null) return '';
  return html`<section id="in-flight"><h2 class="busy">In progress</h2><ul>
${pager.of(flights).map((each) => (each.step === null ? openItem(each, at) : runningItem(each, at)))}</ul></section>`;
}

type Flight = ProjectView['in_flight'][number];

function runningItem({ key, verb, step, detail, ...times }: Flight, at: string): Html {
  const { since: began, usual_end: usual, deadline } = times;
  const text = step === null ? '' : steps[step];
  const [passed, all] = [Date.parse(at) - Date.parse(began), Date.parse(usual ?? at) - Date.parse(began)];
  const bar =
    usual === null || all <= 0
      ? html`<progress aria-label="${key}"></progress>`
      : html`<progress aria-label="${key}" max="100" value="${Math.min(100, Math.round((100 * passed) / all))}"></progress> <span class="dim">usually done ${timeAhead(usual, at)}</span>`;
  const end = deadline === null ? '' : html`<span class="dim"> · deadline ${timeAhead(deadline, at)}</span>`;
  return html`<li><strong>${verb} ${keyText(key)}</strong> <span class="dim">running${since(began, at)}</span><p class="dim">${text}${detail === null ? '' : `: ${detail}`}</p>${bar}${end}</li>`;
}

function openItem({ key, verb, phase, since: began, task_id: task, detail }: Flight, at: string): Html {
  return html`<li><strong>${verb} ${keyText(key)}</strong> ${phaseWord(phase ?? 'sending')}, sent ${timeAgo(began, at)}${task === null ? '' : html` <code>${task}</code>`}${detail === null ? '' : html`<p class="dim">${marked(sentence(detail))}</p>`}</li>`;
}

export function differencesPanel(view: ProjectView, pager: Pager): Html {
  const { condition, daemon } = view;
  const left = view.warnings.filter(isLeft);
  const operations = view.plan?.awaits_approval === true ? [] : pendingOperations(view);
  if (left.length + operations.length === 0) return '';
  const isDrift = condition === 'drifting';
  const title = isDrift ? html`Differs from the spec${since(view.differs_since, view.at)}` : 'Pending';
  const why =
    daemon?.mode === 'observe'
      ? html`vdcsync corrects nothing in mode observe. To end a difference, change the spec, or restart vdcsync with <code>--mode correct</code>.`
      : 'vdcsync does not correct these differences by itself.';
  return html`<section id="differences"><h2 class="warn">${title}</h2>${isDrift ? html`<p>${why} The left value is the project, the right value is the spec.</p>` : ''}<ul>
${pager.of(left).map(({ key, code, message }) => html`<li><strong>${keyText(key ?? '')}</strong> ${code === 'drift' ? html`<span class="code">drift, only reported</span>` : ''}<p>${marked(sentence(message))}</p></li>`)}
${operationItems(view, pager.of(operations))}</ul></section>`;
}

/** Each operation with its fields, its impact, and the operations that it waits for. */
function operationItems({ operations }: ProjectView, shown: readonly Operation[]): Html[] {
  const open = new Set(operations.map(({ id }) => id));
  return shown.map((each) => operationItem(each, operations, open));
}

function operationItem(
  operation: Operation,
  operations: readonly Operation[],
  open: ReadonlySet<string>,
): Html {
  const { verb, key, reason, changes, needs, replacement } = operation;
  const impact = consequences(operation, { operations }).map(capitalised);
  const live = shownIds(operation, { operations });
  const waits = needs.filter((id) => open.has(id)).map((id) => id.replace(':', ' '));
  return html`<li><strong>${replacement === undefined ? verb : `replace (${verb})`} ${keyText(key)}</strong>${live.length === 0 ? '' : html` <span class="dim">${live.join(', ')}</span>`}${reason === undefined ? '' : html`<p>${marked(sentence(reason))}</p>`}${verb === 'delete' ? '' : changeList(changes, verb)}${impact.map((text) => html`<p class="warn">${marked(sentence(text))}</p>`)}${waits.length === 0 ? '' : html`<p class="dim">After ${marked(waits.join(', '))}</p>`}</li>`;
}

function changeList(changes: readonly Change[], verb: Operation['verb']): Html {
  if (changes.length === 0) return '';
  const { shown, more } = firstChanges(changes);
  // A new resource has no values before.
  const value = (values: string) => (verb === 'create' ? values.replace(/^none → /, '') : values);
  return html`<p>${shown.map(({ path, values }) => html`<code class="change"><span>${path}:</span> <span>${value(values)}</span></code><br>`)}${more === 0 ? '' : `${more} more`}</p>`;
}

/** Warnings that another panel shows. */
const elsewhere: ReadonlySet<string> = new Set(['exposed', 'in_flight']);

export function warningsPanel(view: ProjectView, pager: Pager): Html {
  const shown = new Set(view.idle?.map(({ what }) => addressIn(what)));
  // Unmanaged resources that are addresses alone are shown among the idle ones.
  const isIdle = ({ code, remedies = [] }: Warning) =>
    code === 'unmanaged_resources' &&
    remedies.some(
      (each) => each.type === 'run' && each.command === 'ignore' && each.args.every((id) => shown.has(id)),
    );
  const warnings = withoutRepeats(
    view.warnings.filter((each) => !isLeft(each) && !elsewhere.has(each.code) && !isIdle(each)),
    view.blocked,
  );
  if (warnings.length === 0) return '';
  return html`<section id="warnings"><h2>${counted(warnings.length, 'warning')}</h2><ul>
${pager.of(warnings).map(({ key, code, message, remedies = [] }) => html`<li>${key === null ? '' : html`<strong>${keyText(key)}</strong> `}<span class="code">${code}</span><p>${marked(sentence(message))}</p>${remediesHtml(remedies, flagsOf(view))}</li>`)}</ul></section>`;
}

/**
 * Resources that are not converged come first, the worst above. The others are folded: converged ones, and before the
 * first refresh all those about which nothing is known.
 */
export function resourcesPanel(view: ProjectView, pager: Pager): Html {
  const { plan } = view;
  const rows = resourcesIn(view).filter(({ managed }) => managed);
  const rank = ({ standing }: ResourceView) => -keyStatuses.indexOf(standing);
  const folded = plan === null ? 'unknown' : 'converged';
  const open = rows.filter(({ standing }) => standing !== folded).sort((a, b) => rank(a) - rank(b));
  const rest = rows.filter(({ standing }) => standing === folded);
  const row = (each: ResourceView): Html => {
    const { key, standing, id, protect } = each;
    const known = id !== null ? `id ${id}` : plan === null ? 'no id' : absenceText(each);
    return html`<li><span class="row-key">${keyText(key)}</span> <span class="${standing}">${statusWord(standing)}</span> <span class="dim">${known}${protect ? ', protected' : ''}</span></li>`;
  };
  const label =
    folded === 'unknown'
      ? html`<span class="dim">${rest.length} not read since vdcsync started</span>`
      : html`<span class="good">${rest.length} converged</span>`;
  return html`<section class="wide" id="resources"><h2>${counted(rows.length, 'resource')}</h2>
${open.length === 0 ? '' : html`<ul class="rows">${pager.of(open).map(row)}</ul>`}
${rest.length === 0 ? '' : html`<details id="converged"><summary>${label}</summary><ul class="rows">${pager.of(rest).map(row)}</ul></details>`}</section>`;
}

export function budgetPanel({ daemon, observed_at: observed, at }: ProjectView): Html {
  const requests = daemon?.requests ?? null;
  if (daemon === null || requests === null) return '';
  const { since_start: counts, window_seconds: window } = requests;
  const oldestMs = daemon.oldest_read_seconds * 1000;
  // The age of the last refresh is at the top of the page.
  const isOlder = observed !== null && at !== null && oldestMs > Date.parse(at) - Date.parse(observed) + 500;
  const row = (name: 'reads' | 'writes') => {
    const { used, limit } = requests[name];
    return html`<li>${name} <meter aria-label="${name}" min="0" max="${limit}" high="${limit * 0.9}" value="${Math.min(used, limit)}"></meter> ${used} of ${limit} in ${span(window * 1000)}</li>`;
  };
  return html`<section id="budgets"><h2>Requests</h2><ul>${row('reads')}${row('writes')}
<li class="dim">Since vdcsync started: ${counted(counts.reads, 'read')}, ${counts.polls} of them task polls; ${counted(counts.writes, 'write')}; rate limited ${counted(counts.throttled, 'time')}</li>
${!isOlder ? '' : html`<li class="dim">The data of some servers is up to ${span(oldestMs)} old</li>`}</ul></section>`;
}

/** The phases of open writes that need attention. */
const levels: Readonly<Record<string, string>> = { unknown: 'warn', blocked: 'bad' };

/** So many entries are read at a glance; the others are folded. */
const mostRows = 5;

/** The last writes. */
export function journalPanel({ writes, at }: ProjectView): Html {
  if (at === null || writes.length === 0) return '';
  const row = ({
    key,
    verb,
    kind,
    phase,
    outcome,
    detail,
    since: began,
    request_id: request,
  }: (typeof writes)[number]) =>
    html`<li><span class="row-key">${verb} ${keyText(key)}<span class="dim">${takeApart(key).kind === kind ? '' : ` ${kind}`}</span></span> <span class="${levels[phase] ?? ''}">${phaseWord(outcome ?? phase)}</span> <span class="dim">${timeAgo(began, at)}${request === null ? '' : html`, request <span class="nowrap">${request}</span>`}</span>${detail === null ? '' : html`<p class="dim">${marked(sentence(detail))}</p>`}</li>`;
  const bars = timelineOf(writes, Date.parse(at));
  const picture = raw(barsPicture(bars, 'Writes of the last run'));
  return html`<section class="wide" id="journal"><h2>Last writes</h2><div class="scroll timeline wide-screen">${picture}</div>${folded(writes.map(row), 'older-writes')}</section>`;
}

/** The last reconciliations, with their revision and result. */
export function reconciliationsPanel({ daemon, at }: ProjectView): Html {
  const last = daemon?.last_reconciliations ?? [];
  if (at === null || last.length === 0) return '';
  const row = (each: (typeof last)[number]) =>
    html`<li><span class="row-key">${each.outcome === 'stopped' ? 'interrupted' : wordText(each.outcome)}</span> <span>${each.commit === null ? '' : html`<code>${each.commit.slice(0, 12)}</code> `}${counted(each.operations, 'operation')}</span> <span class="dim">${timeAgo(each.ended_at, at)}, took ${span(Date.parse(each.ended_at) - Date.parse(each.started_at))} (trigger: ${each.triggers.join(', ')})</span></li>`;
  return html`<section class="wide" id="reconciliations"><h2>Last reconciliations</h2>${folded(last.map(row), 'older-reconciliations')}</section>`;
}

function folded(rows: readonly Html[], id: string): Html {
  const more = rows.length - mostRows;
  return html`<ul class="rows">${rows.slice(0, mostRows)}</ul>
${more <= 0 ? '' : html`<details id="${id}"><summary>${more} more</summary><ul class="rows">${rows.slice(mostRows)}</ul></details>`}`;
}
