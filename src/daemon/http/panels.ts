import { html } from 'hono/html';
import { partsOf } from '../../core/intent.ts';
import { type KeyStatus, keyStatuses } from '../../core/key-status.ts';
import { takeApart } from '../../core/keys.ts';
import { oncePer } from '../../core/once.ts';
import {
  type Blocked,
  type Change,
  isLeft,
  isWaiting,
  type Operation,
  operationId,
  type Warning,
} from '../../core/plan.ts';
import { run } from '../../core/remedy.ts';
import { counted } from '../../core/text.ts';
import { shortDigest } from '../../engine/run/approval.ts';
import { firstChanges } from '../notifications/drift.ts';
import { approvalOf, notificationOf } from '../notifications/notification.ts';
import type { Condition } from '../project/condition.ts';
import type { ProjectFacts } from '../project/facts.ts';
import { unattachedAddresses } from '../project/troubles.ts';
import type { SourceState } from '../sources/spec-reader.ts';
import { codeText, isInDangers, retryText, sinceText } from './dangers.ts';
import { wordText } from './headline.ts';
import { statusNow, statusText } from './key-status.ts';
import { Pager } from './pager.ts';
import { remediesHtml } from './remedies.ts';
import { span } from './spans.ts';
import { whyOpen } from './status.ts';
import { type Html, keyText, marked, sentence, timeAgo, timeAhead, timeSince } from './text.ts';
import { absence, keysOf } from './view.ts';

/**
 * Problems that stop vdcsync as a whole: as loud as a blocked write.
 *
 * @param isAlone no page of all projects shows the specs that no project uses
 */
export function alarms(
  facts: ProjectFacts | undefined,
  source: SourceState,
  { now, isAlone, pager }: { readonly now: number; readonly isAlone: boolean; readonly pager: Pager },
): Html[] {
  const broken = facts?.problem ?? [];
  const orphans = source.orphans
    .filter(({ projectId }) => facts === undefined || isAlone || projectId === facts.id)
    .flatMap(({ problem }) => problem);
  const error = facts?.error;
  const { commit } = source;
  return [
    source.error === undefined
      ? ''
      : html`<section class="wide alarm" id="source"><h2>The source cannot be read</h2><p>${source.error}</p><p>${source.readAt === undefined ? 'No spec was read yet.' : html`The specs of the last read, ${timeAgo(source.readAt, now)}, stay in force.`}</p></section>`,
    broken.length === 0
      ? ''
      : html`<section class="wide alarm" id="broken"><h2>The spec ${facts?.problemSince === undefined || facts.known === undefined ? 'is broken' : html`has been broken ${timeSince(facts.problemSince, facts.known.now)}`}</h2>
<p>${facts?.offer === undefined ? 'No valid spec was read yet, so vdcsync changes nothing.' : 'The last valid spec stays in force, so the newest edit has no effect.'}${commit === undefined ? '' : html` Newest commit: <code>${commit.id.slice(0, 12)}</code> “${commit.subject}”.`}</p>${problemList(pager.of(broken))}</section>`,
    orphans.length === 0
      ? ''
      : html`<section class="wide alarm" id="unused-specs"><h2>A spec cannot be used</h2><p>vdcsync does nothing for this spec until it is corrected.</p>${problemList(pager.of(orphans))}</section>`,
    facts?.waitingFor === undefined
      ? ''
      : html`<section class="wide alarm" id="waiting"><h2>Another process owns the state</h2><p>The owner is ${facts.waitingFor}. This process writes nothing until the owner ends.</p></section>`,
    error === undefined
      ? ''
      : html`<section class="wide alarm" id="error"><h2>${failures[facts?.condition ?? 'failing'] ?? failures.failing}</h2><p>${error instanceof Error ? error.message : String(error)}</p><p>Until this is solved, vdcsync changes nothing in this project, and this page shows older values.</p>${facts?.known === undefined || facts.nextReconciliationAt === undefined ? '' : html`<p class="dim">Next attempt: ${timeAhead(facts.nextReconciliationAt, facts.known.now)}.</p>`}${remediesHtml(notificationOf(facts?.condition ?? 'failing', facts?.plan, error).remedies, facts?.flags ?? '')}</section>`,
  ];
}

function problemList(problems: ProjectFacts['problem']): Html {
  return html`<ul>${problems.map(
    ({ position, message }) =>
      html`<li><code>${position.file}:${position.line}:${position.column}</code><br>${marked(sentence(message))}</li>`,
  )}</ul>${remediesHtml(checkingSpec(problems), '')}`;
}

/** Checks the files of a broken spec where they are edited. */
function checkingSpec(broken: ProjectFacts['problem']) {
  const files = [...new Set(broken.map(({ position }) => position.file))];
  return [
    run(
      'validate',
      files.flatMap((file) => ['-f', file]),
      { when: 'to check the corrected file before you deploy it' },
    ),
  ];
}

const failures: Readonly<Partial<Record<Condition, string>>> = {
  fenced: 'The token is for another project',
  unauthorized: 'The API refuses the token',
  unreachable: 'The API does not answer',
  failing: 'The last reconciliation failed',
};

/** Each entry with how long it has been so, its cause, and the commands that settle it. */
export function blockedPanel(facts: ProjectFacts, pager = new Pager()): Html {
  const { plan, pauses, known } = facts;
  const all = (plan?.blocked ?? []).filter((each) => !isInDangers(facts, each));
  const waiting = all.filter(isWaiting);
  const blocked = all.filter((each) => !isWaiting(each));
  const inPlan = new Set(plan?.blocked.map(({ key }) => key));
  const backOff = (known?.backOff ?? []).filter(({ key }) => !inPlan.has(key));
  if (all.length + pauses.length + backOff.length === 0) return '';
  const now = known?.now ?? 0;
  return html`<section class="wide alarm" id="blocked"><h2>${blocked.length === 0 ? 'Waiting: no decision needed' : 'Blocked: manual decision needed'}</h2><ul>
${pager.of(blocked).map((each) => blockedItem(each, facts))}
${pager
  .of(pauses)
  .map(
    ({ scope, code, reason, probeAt, since }) =>
      html`<li><strong>${pausedText(scope)}</strong> <span class="bad">${timeSince(since, now)}</span> ${codeText({ code, reason })}<p>${marked(sentence(reason))}</p><p class="dim">${probeAt === null ? 'These writes continue when the project is Active.' : html`Next attempt: ${timeAhead(probeAt, now)}.`}</p></li>`,
  )}
${pager
  .of(backOff)
  .map(
    ({ key, failures, until, reason, code }) =>
      html`<li><strong>${keyText(key)}</strong> <span class="warn">failed ${counted(failures, 'time')}</span> ${codeText({ code, reason })}<p>${marked(sentence(reason))}</p><p class="dim">Next attempt: ${timeAhead(until, now)}.</p></li>`,
  )}</ul>${
    waiting.length === 0
      ? ''
      : html`<details id="waiting-for-blocked"><summary>${counted(waiting.length, 'operation waits', 'operations wait')}, no decision needed</summary><ul>${pager.of(waiting).map((each) => blockedItem(each, facts))}</ul></details>`
  }</section>`;
}

/** The writes of a paused class. A class of one operation has the name of that operation. */
function pausedText(scope: string): string {
  if (scope === 'everything') return 'All writes are paused';
  if (scope === 'spending') return 'Writes that add cost are paused';
  return `Writes such as ${wordText(scope)} are paused`;
}

function blockedItem(entry: Blocked, { blockedSince, known, flags }: ProjectFacts): Html {
  const { key, verb, reason, remedies } = entry;
  return html`<li><strong>${verb} ${keyText(key)}</strong> <span class="bad">blocked${sinceText(entry, blockedSince, known?.now)}</span> ${codeText(entry)}
<p>${marked(sentence(reason))}</p>${retryText(entry, known)}${remediesHtml(remedies, flags)}</li>`;
}

/** The plan that waits for the operator, with the command that approves it. */
export function approvalPanel({ condition, plan, flags }: ProjectFacts): Html {
  if (condition !== 'awaiting_approval' || plan === undefined) return '';
  const digest = shortDigest(plan.digest);
  return html`<section class="wide alarm" id="approval"><h2 class="warn">A plan waits for approval</h2><p>Plan <code>${digest}</code> has ${counted(plan.operations.length, 'operation')}. vdcsync applies it after your approval.</p>${remediesHtml(approvalOf(plan), flags)}</section>`;
}

export function inFlightPanel({ inFlight, known, plan }: ProjectFacts, pager = new Pager()): Html {
  const shown = new Set([...inFlight, ...(plan?.blocked ?? [])].map(({ key }) => key));
  const open = (known?.intents ?? []).filter(({ key, phase }) => phase !== 'blocked' && !shown.has(key));
  if (inFlight.length + open.length === 0) return '';
  const now = known?.now ?? 0;
  return html`<section id="in-flight"><h2 class="busy">In progress</h2><ul>
${pager
  .of(inFlight)
  .map(
    ({ key, verb, step, detail, since, until }) =>
      html`<li><strong>${verb} ${keyText(key)}</strong> <span class="dim">running ${timeSince(since, now)}</span><p class="dim">${steps[step]}${detail === '' ? '' : `: ${detail}`}</p>${
        until === undefined || until <= since
          ? html`<progress aria-label="${key}"></progress>`
          : html`<progress aria-label="${key}" max="100" value="${Math.min(100, Math.round((100 * (now - since)) / (until - since)))}"></progress> <span class="dim">${timeAhead(until, now)}</span>`
      }</li>`,
  )}
${pager.of(open).map((intent) => {
  const { key, verb, phase, createdAt } = intent;
  const taskId = partsOf(intent).answer?.taskId;
  const why = whyOpen(intent);
  return html`<li><strong>${verb} ${keyText(key)}</strong> ${phaseText(phase)}, sent ${timeAgo(createdAt, now)}${taskId === undefined ? '' : html` <code>${taskId}</code>`}${why === undefined ? '' : html`<p class="dim">${marked(sentence(why))}</p>`}</li>`;
})}</ul></section>`;
}

/** The outcome of a write in the phase `unknown` is not known yet. */
function phaseText(phase: string): string {
  return phase === 'unknown' ? 'unconfirmed' : phase.replaceAll('_', ' ');
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

export function differencesPanel(facts: ProjectFacts, pager = new Pager()): Html {
  const { plan, differsSince, known, condition, mode } = facts;
  const left = (plan?.warnings ?? []).filter(isLeft);
  const operations = pendingOperations(facts);
  if (left.length + operations.length === 0) return '';
  const age =
    differsSince === undefined || known === undefined ? '' : html` ${timeSince(differsSince, known.now)}`;
  const isDrift = condition === 'drifting';
  return html`<section id="differences"><h2 class="warn">${isDrift ? html`Differs from the file${age}` : 'Pending'}</h2>${isDrift ? html`<p>${mode === 'observe' ? html`vdcsync corrects nothing in mode observe. To end a difference, change the file, or restart vdcsync with <code>--mode correct</code>.` : 'vdcsync does not correct these differences by itself.'} The left value is the project, the right value is the file.</p>` : ''}<ul>
${pager.of(left).map(({ key, code, message }) => html`<li><strong>${keyText(key ?? '')}</strong> ${code === 'drift' ? html`<span class="code">drift, only reported</span>` : ''}<p>${marked(sentence(message))}</p></li>`)}
${pager.of(operations).map(({ verb, key, reason, changes }) => html`<li><strong>${verb} ${keyText(key)}</strong>${reason === undefined ? '' : html`<p>${marked(sentence(reason))}</p>`}${verb === 'update' ? changeList(changes) : ''}</li>`)}</ul></section>`;
}

/** The operations that have not begun, and that wait for no manual decision. */
export function pendingOperations({ plan, inFlight }: ProjectFacts): readonly Operation[] {
  const others = new Set(
    [...(plan?.blocked ?? []), ...inFlight].map(({ verb, key }) => operationId(verb, key)),
  );
  return (plan?.operations ?? []).filter(({ id }) => !others.has(id));
}

function changeList(changes: readonly Change[]): Html {
  const { shown, more } = firstChanges(changes);
  return html`<p>${shown.map(({ path, values }) => html`<code class="change"><span>${path}:</span> <span>${values}</span></code><br>`)}${more === 0 ? '' : `${more} more`}</p>`;
}

/** Warnings that another panel shows. */
const elsewhere: ReadonlySet<string> = new Set(['exposed', 'in_flight']);

export function warningsPanel(facts: ProjectFacts, pager = new Pager()): Html {
  const { plan, flags } = facts;
  const shown = new Set(unattachedAddresses(facts).idle.map(({ ip }) => ip.address));
  // Unmanaged resources that are addresses alone are shown among the dangers.
  const isDanger = ({ code, remedies = [] }: Warning) =>
    code === 'unmanaged_resources' &&
    remedies.some(
      (each) => each.type === 'run' && each.command === 'ignore' && each.args.every((id) => shown.has(id)),
    );
  const warnings = (plan?.warnings ?? []).filter(
    (each) => !isLeft(each) && !elsewhere.has(each.code) && !isDanger(each),
  );
  if (warnings.length === 0) return '';
  return html`<section id="warnings"><h2>${counted(warnings.length, 'warning')}</h2><ul>
${pager.of(warnings).map(({ key, code, message, remedies = [] }) => html`<li>${key === null ? '' : html`<strong>${keyText(key)}</strong> `}<span class="code">${code}</span><p>${marked(sentence(message))}</p>${remediesHtml(remedies, flags)}</li>`)}</ul></section>`;
}

/** The statuses of a resource that is still to be created. */
const absent: ReadonlySet<KeyStatus> = new Set(['differs', 'unknown']);

/** Each managed resource of the file or the state, with its status. */
export const rowsOf = oncePer((facts: ProjectFacts) => {
  const unmanaged = new Set(
    (facts.offer?.desired.resources ?? []).filter((each) => each.managed === false).map(({ key }) => key),
  );
  return keysOf(facts)
    .filter((key) => !unmanaged.has(key))
    .map((key) => ({ key, standing: statusNow(facts, key) }));
});

/**
 * Resources that are not converged come first, the worst above. The others are folded: converged ones, and before the
 * first refresh all those about which nothing is known.
 */
export function resourcesPanel(facts: ProjectFacts, pager = new Pager()): Html {
  const rows = rowsOf(facts);
  const rank = ({ standing }: { readonly standing: KeyStatus }) => -keyStatuses.indexOf(standing);
  const folded = facts.plan === undefined ? 'unknown' : 'converged';
  const open = rows.filter(({ standing }) => standing !== folded).sort((a, b) => rank(a) - rank(b));
  const rest = rows.filter(({ standing }) => standing === folded);
  const bindings = new Map(facts.known?.bindings.map((each) => [each.key, each]));
  const row = ({ key, standing }: (typeof rows)[number]): Html => {
    const binding = bindings.get(key);
    const id = binding?.id ?? facts.world?.idOf(key);
    return html`<li><span class="row-key">${keyText(key)}</span> <span class="${standing}">${id === undefined && facts.plan !== undefined && absent.has(standing) ? 'pending' : statusText(standing)}</span> <span class="dim">${id !== undefined ? `id ${id}` : facts.plan === undefined ? 'no id' : absence(facts, key)}${binding?.protect ? ', protected' : ''}</span></li>`;
  };
  const label =
    folded === 'unknown'
      ? html`<span class="dim">${rest.length} not read since vdcsync started</span>`
      : html`<span class="good">${rest.length} converged</span>`;
  return html`<section class="wide" id="resources"><h2>${counted(rows.length, 'resource')}</h2>
${open.length === 0 ? '' : html`<ul class="rows">${pager.of(open).map(row)}</ul>`}
${rest.length === 0 ? '' : html`<details id="converged"><summary>${label}</summary><ul class="rows">${pager.of(rest).map(row)}</ul></details>`}</section>`;
}

export function budgetPanel({ known, refreshedAt }: ProjectFacts): Html {
  if (known === undefined) return '';
  const { used, limits, counts, oldestReadMs } = known;
  // The age of the last refresh is at the top of the page.
  const isOlder = refreshedAt !== undefined && oldestReadMs > known.now - refreshedAt;
  const row = (name: 'reads' | 'writes') =>
    html`<li>${name} <meter aria-label="${name}" min="0" max="${limits[name]}" high="${limits[name] * 0.9}" value="${Math.min(used[name], limits[name])}"></meter> ${used[name]} of ${limits[name]} in ${span(limits.windowMs)}</li>`;
  return html`<section id="budgets"><h2>Requests</h2><ul>${row('reads')}${row('writes')}
<li class="dim">Since vdcsync started: ${counted(counts.reads, 'read')}, ${counts.polls} of them task polls; ${counted(counts.writes, 'write')}; rate limited ${counted(counts.throttled, 'time')}</li>
${!isOlder ? '' : html`<li class="dim">The data of some servers is up to ${span(oldestReadMs)} old</li>`}</ul></section>`;
}

/** The phases of open writes that need attention. */
const levels: Readonly<Record<string, string>> = { unknown: 'warn', blocked: 'bad' };

/** So many writes are read at a glance; the others are folded. */
const mostWrites = 5;

export function journalPanel({ known }: ProjectFacts): Html {
  if (known === undefined || known.history.length === 0) return '';
  const { history, now } = known;
  const row = (each: (typeof history)[number]) => {
    const { key, verb, createdAt, phase, requestId, detail, kind } = each;
    return html`<li><span class="row-key">${verb} ${keyText(key)}<span class="dim">${takeApart(key).kind === kind ? '' : ` ${kind}`}</span></span> <span class="${levels[phase] ?? ''}">${phaseText(partsOf(each).outcome ?? phase)}</span> <span class="dim">${timeAgo(createdAt, now)}${requestId === undefined ? '' : html`, request <span class="nowrap">${requestId}</span>`}</span>${detail ? html`<p class="dim">${marked(sentence(detail))}</p>` : ''}</li>`;
  };
  return html`<section class="wide" id="journal"><h2>Last writes</h2><ul class="rows">${history.slice(0, mostWrites).map(row)}</ul>
${history.length <= mostWrites ? '' : html`<details id="older-writes"><summary>${history.length - mostWrites} more</summary><ul class="rows">${history.slice(mostWrites).map(row)}</ul></details>`}</section>`;
}
