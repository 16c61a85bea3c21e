import { html, raw } from 'hono/html';
import type { KeyStatus } from '../../core/key-status.ts';
import { blockedName } from '../../core/plan.ts';
import { counted } from '../../core/text.ts';
import type { ProjectFacts, ProjectSummary } from '../project/facts.ts';
import { exposedServers, isLeaking } from '../project/troubles.ts';
import type { SourceState } from '../sources/spec-reader.ts';
import { billPanel } from './bill.ts';
import { dangersPanel, exposedSince, isInDangers, leakingSince, leaks } from './dangers.ts';
import { type Headline, headlineOf, iconOf, levelOf, titleOf, wordText } from './headline.ts';
import { overviewHeadline, overviewPanel, type Wanted } from './overview.ts';
import { Pager } from './pager.ts';
import {
  alarms,
  approvalPanel,
  blockedPanel,
  budgetPanel,
  differencesPanel,
  inFlightPanel,
  journalPanel,
  pendingOperations,
  resourcesPanel,
  rowsOf,
  warningsPanel,
} from './panels.ts';
import { drawOutline, drawPicture } from './picture.ts';
import { script } from './script.ts';
import { span } from './spans.ts';
import { style } from './style.ts';
import { type Html, timeAgo, timeAhead, timeSince } from './text.ts';
import { pictureOf } from './view.ts';

export interface PageInput {
  /** Of the project that the page is about; the overview is about none. */
  readonly facts: ProjectFacts | undefined;
  readonly projects: readonly ProjectSummary[];
  /** Of the overview. */
  readonly wanted?: Wanted | undefined;
  /** Of a project: which entries of its lists the page shows. From 1. */
  readonly page?: number;
  /** Of a fleet: the replica that works on the project, where it is another one than the replica that shows the page. */
  readonly elsewhere?: { readonly worker: string; readonly shownBy: string } | undefined;
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
  const { facts, projects, source, now } = input;
  const { name, headline, title, icon } = tabOf(input);
  const pager = new Pager(input.page);
  return html`<header data-title="${title}" data-icon="${icon}">
${facts !== undefined && projects.length > 1 ? html`<a class="back" href="/">All ${projects.length} projects</a>` : ''}
<h1>${name}</h1> <span class="badge ${headline.level}">${wordText(headline.word)}</span>
${facts === undefined ? '' : otherWords(facts, headline)}</header>
<main>${facts === undefined ? '' : freshness(facts)}${facts === undefined ? '' : chips(facts)}
${input.elsewhere === undefined ? '' : html`<p class="facts"><span class="warn">Replica ${input.elsewhere.worker} works on this project. This page comes from replica ${input.elsewhere.shownBy}, and shows its last refresh, which may be older.</span></p>`}
<div class="panels">${facts === undefined ? '' : dangersPanel(facts, pager)}${alarms(facts, source, { now, isAlone: projects.length <= 1, pager })}${
    facts === undefined ? overview(input) : panels(facts, pager)
  }</div>
${facts === undefined ? '' : pageLinks(facts, pager)}
${facts === undefined ? '' : summary(facts)}</main>`;
}

function tabOf({ facts, projects }: PageInput) {
  const name = facts === undefined ? 'vdcsync' : (facts.plan?.project.name ?? `project ${facts.id}`);
  const headline: Headline =
    facts !== undefined
      ? headlineOf(facts.condition, troublesOf(facts))
      : projects.length === 0
        ? { level: 'dim', word: 'no project' }
        : overviewHeadline(projects);
  return { name, headline, title: titleOf(headline, name), icon: iconOf(headline) };
}

function troublesOf(facts: ProjectFacts) {
  const { known } = facts;
  return {
    exposed: exposedServers(facts).length > 0,
    broken: facts.problem.length > 0,
    leaking: isLeaking(facts),
    ...(known === undefined ? { since: undefined, now: 0 } : { since: facts.conditionSince, now: known.now }),
  };
}

/** How long the headline has been so, and the condition, where the headline says something worse. */
function otherWords(facts: ProjectFacts, { word }: Headline): Html {
  const { condition, conditionSince, known } = facts;
  const since = (at: number | undefined): Html =>
    at === undefined || known === undefined
      ? ''
      : html` <span class="dim">${timeSince(at, known.now)}</span>`;
  const conditionBegan = condition === 'blocked' ? oldestBlock(facts) : conditionSince;
  if (word === condition) return since(conditionBegan);
  const began =
    word === 'exposed'
      ? exposedSince(facts)
      : word === 'billed and idle'
        ? leakingSince(facts)
        : facts.problemSince;
  return html`${since(began)} <span class="badge ${levelOf(condition)}">${wordText(condition)}</span>${since(conditionBegan)}`;
}

/** A condition begins again when vdcsync starts; the oldest blocked operation may be older. */
function oldestBlock({ plan, blockedSince, conditionSince }: ProjectFacts): number | undefined {
  const began = (plan?.blocked ?? []).flatMap((each) => blockedSince.get(blockedName(each)) ?? []);
  return began.length === 0 ? conditionSince : Math.min(...began);
}

/** The age of everything that the page shows. */
function freshness({ known, mode, refreshedAt, reconciling, nextReconciliationAt }: ProjectFacts): Html {
  if (known === undefined) return '';
  const { now } = known;
  const last =
    refreshedAt === undefined
      ? html`<span>Not read since vdcsync started</span>`
      : html`<span>Project last read: ${timeAgo(refreshedAt, now)}</span>`;
  const next = reconciling
    ? html`<span class="busy">Reconciling now</span>`
    : nextReconciliationAt === undefined
      ? ''
      : html`<span>Next reconciliation: ${timeAhead(nextReconciliationAt, now)}</span>`;
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
function chips(facts: ProjectFacts): Html {
  const { plan, inFlight, problem } = facts;
  const [exposed, blocked] = [
    exposedServers(facts).length,
    (plan?.blocked ?? []).filter((each) => !isInDangers(facts, each)).length,
  ];
  const pending = pendingOperations(facts).length;
  const leaking = leaks(facts).length;
  const standings = rowsOf(facts).map(({ standing }) => standing);
  const count = (wanted: KeyStatus) => standings.filter((each) => each === wanted).length;
  const [converged, left] = [count('converged'), count('undeclared')];
  const unread = plan === undefined ? standings.length : 0;
  const all: readonly (readonly [number, string, string, string])[] = [
    [exposed, 'danger', 'bad', `${exposed} exposed`],
    [leaking, 'danger', 'bad', `${leaking} billed and idle`],
    [problem.length, 'broken', 'bad', 'spec broken'],
    [blocked, 'blocked', 'bad', `${blocked} blocked`],
    [inFlight.length, 'in-flight', 'busy', `${inFlight.length} in progress`],
    [pending, 'differences', 'warn', `${pending} ${facts.mode === 'observe' ? 'not corrected' : 'pending'}`],
    [left, 'resources', 'warn', `${left} left the file`],
    [unread, 'resources', 'dim', `${unread} not read`],
    [plan === undefined ? 0 : converged, 'resources', 'good', `${converged} converged`],
  ];
  return html`<nav class="chips" aria-label="At a glance">${all
    .filter(([count]) => count > 0)
    .map(([, id, level, text]) => html`<a class="chip ${level}" href="#${id}">${text}</a>`)}</nav>`;
}

function panels(facts: ProjectFacts, pager: Pager): Html[] {
  const picture = pictureOf(facts, pager);
  return [
    approvalPanel(facts),
    blockedPanel(facts, pager),
    inFlightPanel(facts, pager),
    differencesPanel(facts, pager),
    warningsPanel(facts, pager),
    resourcesPanel(facts, pager),
    html`<section class="wide" id="picture"><h2>The project</h2><div class="scroll wide-screen">${drawPicture(picture)}</div><div class="narrow-screen">${drawOutline(picture)}</div></section>`,
    billPanel(facts, pager),
    budgetPanel(facts),
    journalPanel(facts),
  ];
}

/** The links to the further entries of long lists. Evaluated after every list. */
function pageLinks({ id }: ProjectFacts, { page, pages }: Pager): Html {
  if (pages === 1) return '';
  const link = (to: number, text: string): Html =>
    to < 1 || to > pages ? '' : html`<a href="/?project=${id}&amp;page=${to}">${text}</a> `;
  return html`<nav class="facts" aria-label="Pages"><span>Page ${page} of ${pages}: long lists continue on the next page</span> ${link(page - 1, 'Previous page')}${link(page + 1, 'Next page')}</nav>`;
}

function summary(facts: ProjectFacts): Html {
  const { known, offer, lastReconciliation, plan } = facts;
  const now = known?.now;
  const commit = offer?.commit;
  return html`<p class="facts"><span>Project ${facts.id}${plan === undefined ? '' : `, ${plan.project.status}`}</span>
${commit === undefined ? html`<span>${offer?.files.join(', ') ?? 'No spec yet'}</span>` : html`<span>${facts.problem.length > 0 ? 'Last valid commit of ' : ''}${commit.ref}: <code>${commit.id.slice(0, 12)}</code> “${commit.subject}”</span>`}
${now === undefined || lastReconciliation === undefined ? '' : html`<span>Last reconciliation: ${lastReconciliation.outcome.replaceAll('_', ' ')}, ${timeAgo(lastReconciliation.endedAt, now)} (trigger: ${lastReconciliation.triggers.join(', ')})</span>`}
<span>Reconciled every ${span(facts.intervalMs)} and after each edit; after failures, at growing intervals</span>
<span>${counted(facts.reconciliations, 'reconciliation')} since vdcsync started</span></p>`;
}
