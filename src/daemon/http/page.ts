import { html, raw } from 'hono/html';
import { counted } from '../../core/text.ts';
import { levelOf } from '../../view/condition.ts';
import type { ProjectView } from '../../view/project-view.ts';
import type { Rollout } from '../fleet/rollout.ts';
import type { ProjectSummary } from '../project/facts.ts';
import type { SourceState } from '../sources/spec-reader.ts';
import { billPanel } from './bill.ts';
import { dangersPanel, exposedSince, idlePanel, isInDangers, leakingSince } from './dangers.ts';
import { type Headline, headlineOf, iconOf, titleOf, wordText } from './headline.ts';
import { overviewHeadline, overviewPanel, rolloutsPanel, type Wanted } from './overview.ts';
import { script, style } from './page-assets.ts';
import { Pager } from './pager.ts';
import {
  alarms,
  approvalPanel,
  blockedPanel,
  budgetPanel,
  commitText,
  differencesPanel,
  inFlightPanel,
  journalPanel,
  reconciliationsPanel,
  resourcesPanel,
  waitingPanel,
  warningsPanel,
} from './panels.ts';
import { drawPicture } from './picture.ts';
import { type Html, since, span, timeAgo, timeAhead } from './text.ts';

export interface PageInput {
  /** The project of the page; none for the overview. */
  readonly view: ProjectView | undefined;
  readonly projects: readonly ProjectSummary[];
  /** Of the overview. */
  readonly wanted?: Wanted | undefined;
  /** Of a project: which entries of its lists the page shows. From 1. */
  readonly page?: number;
  /** Of a fleet: the replica that works on the project, where it is another one than the replica that shows the page. */
  readonly elsewhere?: { readonly worker: string; readonly shownBy: string } | undefined;
  /** Of the overview of a fleet. */
  readonly rollouts?: readonly Rollout[] | undefined;
  readonly source: SourceState;
  readonly version: string;
  /** Real wall ms. */
  readonly now: number;
}

/** The whole page: everything in one answer, and nothing from anywhere else. */
export function renderPage(input: PageInput, nonce: string) {
  const { title, icon } = tabOf(input);
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><link rel="icon" id="icon" href="${icon}">
<noscript><meta http-equiv="refresh" content="15"></noscript>
<style nonce="${nonce}">${raw(style)}</style></head>
<body><p id="offline" class="offline" role="alert" hidden>No connection: this page may be out of date</p>
<div id="page">${renderBody(input)}</div>
<footer>vdcsync ${input.version} · <span id="live">this page is read only</span> · <a href="/status">JSON</a> · <a href="/metrics">metrics</a></footer>
<script nonce="${nonce}">${raw(script)}</script></body></html>`;
}

/** The part of the page that changes. Its header carries the title and the icon, which the script takes over. */
export function renderBody(input: PageInput) {
  const { view, projects, source, now, elsewhere } = input;
  const { name, headline, title, icon } = tabOf(input);
  const pager = new Pager(input.page);
  const loud = alarms(view, source, { now, isAlone: projects.length <= 1, pager });
  return html`<header data-title="${title}" data-icon="${icon}">
${view !== undefined && projects.length > 1 ? html`<a class="back" href="/">All ${projects.length} projects</a>` : ''}
<h1>${name}</h1> <span class="badge ${headline.level}">${wordText(headline.word)}</span>
${view === undefined ? '' : otherWords(view, headline)}</header>
<main>${view === undefined ? '' : freshness(view)}${view === undefined ? '' : chips(view)}
${elsewhere === undefined ? '' : html`<p class="facts"><span class="warn">Replica ${elsewhere.worker} works on this project. This page comes from replica ${elsewhere.shownBy}, and shows its last refresh, which may be older.</span></p>`}
<div class="panels">${view === undefined ? [loud, rolloutsPanel(input.rollouts ?? []), overview(input)] : [dangersPanel(view, pager), loud, panels(view, pager)]}</div>
${view === undefined ? '' : pageLinks(view, pager)}
${view === undefined ? '' : summary(view)}</main>`;
}

function tabOf({ view, projects }: PageInput) {
  const name = view === undefined ? 'vdcsync' : (view.project.name ?? `project ${view.project.id}`);
  const headline: Headline =
    view !== undefined
      ? headlineOf(view.condition ?? 'starting', troublesOf(view))
      : projects.length === 0
        ? { level: 'dim', word: 'no project' }
        : overviewHeadline(projects);
  return { name, headline, title: titleOf(headline, name), icon: iconOf(headline) };
}

function troublesOf({ counts, spec, condition_since: began, at }: ProjectView) {
  const troubles = {
    exposed: counts.exposed > 0,
    broken: spec.broken.length > 0,
    leaking: counts.leaking > 0,
  };
  if (began === null || at === null) return { ...troubles, since: undefined, now: 0 };
  return { ...troubles, since: Date.parse(began), now: Date.parse(at) };
}

/** The age of the headline, and the condition if the headline shows something worse. */
function otherWords(view: ProjectView, { word }: Headline): Html {
  const { at, blocked, condition_since: conditionSince, spec } = view;
  const condition = view.condition ?? 'starting';
  const age = (began: string | null): Html => html`<span class="dim">${since(began, at)}</span>`;
  // A condition begins again when vdcsync starts; the oldest blocked operation may be older.
  const [oldest = conditionSince] = blocked.flatMap((each) => each.since ?? []).sort();
  const conditionBegan = condition === 'blocked' ? oldest : conditionSince;
  if (word === condition) return age(conditionBegan);
  const began =
    word === 'exposed'
      ? exposedSince(view)
      : word === 'billed and idle'
        ? leakingSince(view)
        : spec.broken_since;
  return html`${age(began)} <span class="badge ${levelOf(condition)}">${wordText(condition)}</span>${age(conditionBegan)}`;
}

/** The age of everything that the page shows. */
function freshness({ at, observed_at: observed, daemon }: ProjectView): Html {
  if (at === null || daemon === null) return '';
  const { mode, reconciling, next_reconciliation_at: due } = daemon;
  const last =
    observed === null
      ? html`<span>Not read since vdcsync started</span>`
      : html`<span>Project last read: ${timeAgo(observed, at)}</span>`;
  const next = reconciling
    ? html`<span class="busy">Reconciling now</span>`
    : due === null
      ? ''
      : html`<span>Next reconciliation: ${timeAhead(due, at)}</span>`;
  const observe =
    mode === 'observe'
      ? html`<span class="warn">Mode observe: vdcsync only reports, and never writes</span>`
      : '';
  return html`<p class="facts fresh">${observe} ${last} ${next}</p>`;
}

function overview({ projects, wanted = {} }: PageInput): Html {
  return projects.length === 0
    ? html`<section class="wide"><p>No project yet: vdcsync has not read a valid spec.</p></section>`
    : overviewPanel(projects, wanted);
}

/** The counts at a glance, each a link to its panel. */
function chips(view: ProjectView): Html {
  const { counts, plan, daemon, blocked } = view;
  const { standings } = counts;
  const pending =
    plan?.awaits_approval === true ? 'to approve' : daemon?.mode === 'observe' ? 'not corrected' : 'pending';
  const unread = plan === null ? Object.values(standings).reduce((sum, each) => sum + each, 0) : 0;
  const placeOf = (needed: boolean, id: string) =>
    blocked.every((each) => each.decision !== needed || isInDangers(view, each)) ? 'danger' : id;
  const all: readonly (readonly [number, string, string, string])[] = [
    [counts.exposed, 'danger', 'bad', `${counts.exposed} exposed`],
    [view.spec.broken.length, 'broken', 'bad', 'spec broken'],
    [counts.blocked, placeOf(true, 'blocked'), 'bad', `${counts.blocked} blocked`],
    [counts.waiting, placeOf(false, 'waits'), 'warn', `${counts.waiting} waiting`],
    [counts.in_flight, 'in-flight', 'busy', `${counts.in_flight} in progress`],
    [
      counts.pending,
      plan?.awaits_approval === true ? 'approval' : 'differences',
      'warn',
      `${counts.pending} ${pending}`,
    ],
    [counts.leaking, 'idle', 'warn', `${counts.leaking} billed and idle`],
    [standings.undeclared, 'resources', 'warn', `${standings.undeclared} left the spec`],
    [unread, 'resources', 'dim', `${unread} not read`],
    [plan === null ? 0 : standings.converged, 'resources', 'good', `${standings.converged} converged`],
  ];
  return html`<nav class="chips" aria-label="At a glance">${all
    .filter(([count]) => count > 0)
    .map(([, id, level, text]) => html`<a class="chip ${level}" href="#${id}">${text}</a>`)}</nav>`;
}

function panels(view: ProjectView, pager: Pager): Html[] {
  return [
    approvalPanel(view, pager),
    blockedPanel(view, pager),
    waitingPanel(view, pager),
    idlePanel(view, pager),
    inFlightPanel(view, pager),
    differencesPanel(view, pager),
    warningsPanel(view, pager),
    resourcesPanel(view, pager),
    html`<section class="wide" id="picture"><h2>The project</h2><div class="scroll">${drawPicture(view)}</div></section>`,
    billPanel(view, pager),
    budgetPanel(view),
    reconciliationsPanel(view),
    journalPanel(view),
  ];
}

/** The links to the further entries of long lists. Evaluated after every list. */
function pageLinks({ project: { id } }: ProjectView, { page, pages }: Pager): Html {
  if (pages === 1) return '';
  const link = (to: number, text: string): Html =>
    to < 1 || to > pages ? '' : html`<a href="/?project=${id}&amp;page=${to}">${text}</a> `;
  return html`<nav class="facts" aria-label="Pages"><span>Page ${page} of ${pages}: long lists continue on the next page</span> ${link(page - 1, 'Previous page')}${link(page + 1, 'Next page')}</nav>`;
}

function summary({ project, spec, daemon, at }: ProjectView): Html {
  const { commit, files, broken } = spec;
  const status = project.status === null ? '' : `, ${project.status}`;
  const committed = commit === null || at === null ? '' : html`, ${timeAgo(commit.committed_at, at)}`;
  return html`<p class="facts"><span>Project ${project.id}${status}</span>
${commit === null ? html`<span>${files.join(', ') || 'No spec yet'}</span>` : html`<span>${broken.length > 0 ? 'Last valid commit of ' : ''}${commit.ref}: ${commitText(commit)}${committed}</span>`}
${
  daemon === null
    ? ''
    : html`<span>Reconciled every ${span(daemon.interval_seconds * 1000)} and after each edit; after failures, at growing intervals</span>
<span>${counted(daemon.reconciliations, 'reconciliation')} since vdcsync started</span>`
}</p>`;
}
