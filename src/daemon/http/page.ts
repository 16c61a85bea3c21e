import { html, raw } from 'hono/html';
import { takeApart } from '../../core/keys.ts';
import { isLeft } from '../../core/plan.ts';
import { waysWithBackups, waysWithIdle, waysWithLeftAlone } from '../../core/ways-out.ts';
import { leftAloneName } from '../../engine/bookkeeping/left-alone.ts';
import type { Condition } from '../project/condition.ts';
import type { ProjectFacts } from '../project/facts.ts';
import type { SourceState } from '../sources/spec-reader.ts';
import { drawPicture } from './picture.ts';
import { script } from './script.ts';
import { ago, ahead, span } from './spans.ts';
import { standingNow, standingText } from './standing.ts';
import { leftAloneIn, unattachedAddresses, whyOpen } from './status.ts';
import { style } from './style.ts';
import { keysOf, pictureOf } from './view.ts';
import { marked, wayOut } from './way-out.ts';

export interface PageInput {
  readonly facts: ProjectFacts | undefined;
  readonly projects: readonly { readonly id: number; readonly condition: Condition }[];
  /** Of a fleet: the replica that knows more of the project, where it is another one. */
  readonly elsewhere?: string | undefined;
  readonly source: SourceState;
  readonly version: string;
  /** Real wall ms. */
  readonly now: number;
}

type Html = ReturnType<typeof html> | '';

const looks: Readonly<Record<Condition, string>> = {
  starting: 'dim',
  fenced: 'bad',
  unauthorized: 'bad',
  unreachable: 'bad',
  failing: 'bad',
  blocked: 'bad',
  held: 'warn',
  drifting: 'warn',
  converging: 'busy',
  suspended: 'warn',
  converged: 'good',
};

/** The whole page: everything in one answer, and nothing from anywhere else. */
export function renderPage(input: PageInput, nonce: string) {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>vdcsync</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><link rel="icon" href="data:,">
<noscript><meta http-equiv="refresh" content="15"></noscript>
<style nonce="${nonce}">${raw(style)}</style></head>
<body><div id="page">${renderBody(input)}</div>
<footer>vdcsync ${input.version} · <span id="live">read only</span> · <a href="/status">JSON</a> · <a href="/metrics">metrics</a></footer>
<script nonce="${nonce}">${raw(script)}</script></body></html>`;
}

/** What changes of it. */
export function renderBody({ facts, projects, elsewhere, source, now }: PageInput) {
  return html`<header><h1>${facts?.plan?.project.name ?? (facts === undefined ? 'vdcsync' : `Project ${facts.id}`)}</h1>
${facts === undefined ? '' : html`<span class="badge ${looks[facts.condition]}">${facts.condition}</span>`}
${navigation(projects, facts?.id)}</header>
<main>${facts === undefined ? '' : summary(facts)}
${elsewhere === undefined ? '' : html`<p class="facts"><span class="warn">worked on by ${elsewhere}; below is what this replica saw last</span></p>`}
<div class="cards">${alarms(facts, source, now)}${facts === undefined ? '' : cards(facts)}</div></main>`;
}

function navigation(projects: PageInput['projects'], current: number | undefined): Html {
  if (projects.length < 2) return '';
  return html`<nav>${projects.map(
    ({ id, condition }) =>
      html`<a href="/?project=${id}" ${id === current ? raw('aria-current="page"') : ''}>${id} <span class="${looks[condition]}">${condition}</span></a>`,
  )}</nav>`;
}

function summary(facts: ProjectFacts) {
  const { known, offer, lastPass, plan } = facts;
  const now = known?.now;
  const commit = offer?.commit;
  return html`<p class="facts"><span>project ${facts.id}${plan === undefined ? '' : `, ${plan.project.status}`}</span>
<span>${facts.mode === 'observe' ? 'observing only' : `every ${span(facts.intervalMs)}`}</span>
${commit === undefined ? html`<span>${offer?.files.join(', ') ?? 'no spec yet'}</span>` : html`<span>${commit.ref} at <code>${commit.id.slice(0, 12)}</code> ${commit.subject}</span>`}
${now === undefined || facts.lookedAt === undefined ? '' : html`<span>looked at ${ago(now - facts.lookedAt)}</span>`}
${now === undefined || lastPass === undefined ? '' : html`<span>last pass ${lastPass.outcome}, ${ago(now - lastPass.endedAt)} (${lastPass.triggers.join(', ')})</span>`}
${facts.passing ? html`<span class="busy">a pass is running</span>` : now === undefined || facts.nextPassAt === undefined ? '' : html`<span>next ${ahead(facts.nextPassAt - now)}</span>`}</p>`;
}

/** What somebody has to know first. */
function alarms(facts: ProjectFacts | undefined, source: SourceState, now: number): Html[] {
  const broken = [...(facts?.problem ?? []), ...source.orphans.flatMap(({ problem }) => problem)];
  const error = facts?.error;
  return [
    source.error === undefined
      ? ''
      : html`<section class="wide alarm"><h2 class="bad">The source cannot be read</h2><p>${source.error}</p>${source.readAt === undefined ? '' : html`<p class="dim">Last read ${ago(now - source.readAt)}; what was read then stays in force.</p>`}</section>`,
    broken.length === 0
      ? ''
      : html`<section class="wide alarm"><h2 class="bad">The spec is broken; the last good one stays in force</h2><ul>${broken.map(
          ({ position, message }) =>
            html`<li><code>${position.file}:${position.line}:${position.column}</code> ${message}</li>`,
        )}</ul></section>`,
    facts?.waitingFor === undefined
      ? ''
      : html`<section class="wide alarm"><h2 class="warn">Waiting for the state</h2><p>It is owned by ${facts.waitingFor}. Nothing is written meanwhile.</p></section>`,
    error === undefined
      ? ''
      : html`<section class="wide alarm"><h2 class="bad">The last pass failed</h2><p>${error instanceof Error ? error.message : String(error)}</p></section>`,
  ];
}

function cards(facts: ProjectFacts): Html[] {
  return [
    blockedCard(facts),
    inFlightCard(facts),
    differencesCard(facts),
    warningsCard(facts),
    html`<section class="wide"><h2>The project</h2><div class="scroll">${drawPicture(pictureOf(facts))}</div></section>`,
    resourcesCard(facts),
    billCard(facts),
    budgetCard(facts),
    journalCard(facts),
  ];
}

function blockedCard({ plan, holds, known }: ProjectFacts): Html {
  const blocked = plan?.blocked ?? [];
  const backOff = known?.backOff ?? [];
  if (blocked.length + holds.length + backOff.length === 0) return '';
  const now = known?.now ?? 0;
  return html`<section class="wide alarm" id="blocked"><h2 class="bad">Needs an operator, or time</h2><ul>
${blocked.map(
  ({ key, verb, code, reason, resolve }) =>
    html`<li><strong>${verb} ${key}</strong> <span class="dim">${code}</span><br>${marked(reason)}${resolve.split(' | ').map(wayOut)}</li>`,
)}
${holds.map(
  ({ scope, code, reason, probeAt }) =>
    html`<li><strong>${scope} is held back</strong> <span class="dim">${code}</span><br>${reason}<br><span class="dim">${probeAt === null ? 'until the project is Active' : `one write tries again ${ahead(probeAt - now)}`}</span></li>`,
)}
${backOff.map(
  ({ key, failures, until, reason }) =>
    html`<li><strong>${key}</strong> failed ${failures}×, again ${ahead(until - now)}<br>${reason}</li>`,
)}</ul></section>`;
}

function inFlightCard({ inFlight, known }: ProjectFacts): Html {
  const open = (known?.intents ?? []).filter(
    ({ key, phase }) => phase !== 'blocked' && !inFlight.some((each) => each.key === key),
  );
  if (inFlight.length + open.length === 0) return '';
  const now = known?.now ?? 0;
  return html`<section id="in-flight"><h2 class="busy">In flight</h2><ul>
${inFlight.map(
  ({ key, verb, step, detail, since, until }) =>
    html`<li><strong>${verb} ${key}</strong> for ${span(now - since)}<br><span class="dim">${step} ${detail}</span>${
      until === undefined || until <= since
        ? html`<br><progress></progress>`
        : html`<br><progress max="100" value="${Math.min(100, Math.round((100 * (now - since)) / (until - since)))}"></progress> ${ahead(until - now)}`
    }</li>`,
)}
${open.map((intent) => {
  const { key, verb, phase, createdAt, taskId } = intent;
  const why = whyOpen(intent);
  return html`<li><strong>${verb} ${key}</strong> ${phase}, sent ${ago(now - createdAt)}${taskId === undefined ? '' : html` <code>${taskId}</code>`}${why === undefined ? '' : html`<br><span class="dim">${why}</span>`}</li>`;
})}</ul></section>`;
}

function differencesCard({ plan, differsSince, known }: ProjectFacts): Html {
  const left = (plan?.warnings ?? []).filter(isLeft);
  const operations = plan?.operations ?? [];
  if (left.length + operations.length === 0) return '';
  const age =
    differsSince === undefined || known === undefined ? '' : ` for ${span(known.now - differsSince)}`;
  return html`<section id="differences"><h2 class="warn">Differs from the file${age}</h2><ul>
${left.map(({ key, code, message }) => html`<li><strong>${key}</strong> ${message}${code === 'drift' ? html` <span class="dim">(drift: only reported)</span>` : ''}</li>`)}
${operations.map(({ verb, key, reason }) => html`<li><strong>${verb} ${key}</strong> ${reason ?? ''}</li>`)}</ul></section>`;
}

function warningsCard({ plan }: ProjectFacts): Html {
  const warnings = (plan?.warnings ?? []).filter((each) => !isLeft(each));
  if (warnings.length === 0) return '';
  return html`<section id="warnings"><h2>To know</h2><ul>
${warnings.map(({ key, message }) => html`<li>${key === null ? '' : html`<strong>${key}</strong> `}${marked(message)}</li>`)}</ul></section>`;
}

function resourcesCard(facts: ProjectFacts): Html {
  const keys = keysOf(facts);
  const bindings = new Map(facts.known?.bindings.map((each) => [each.key, each]));
  return html`<section class="wide" id="resources"><h2>${keys.length} resources</h2><div class="scroll"><table>
<tr><th>key</th><th>id</th><th>stands</th></tr>
${keys.map((key) => {
  const standing = standingNow(facts, key);
  const binding = bindings.get(key);
  const marks = binding?.protect ? ['protected'] : [];
  return html`<tr><td class="key">${key}</td><td>${binding?.id ?? facts.world?.idOf(key) ?? '–'}</td><td class="${standing}">${[standingText(standing), ...marks].join(', ')}</td></tr>`;
})}</table></div></section>`;
}

export function billCard(facts: ProjectFacts): Html {
  const { known, world, plan, carry } = facts;
  const { idle, inDoubt } = unattachedAddresses(facts);
  const addresses = world?.ips.length ?? 0;
  const ways = (each: readonly string[]) => each.map((way) => wayOut(carry(way)));
  const managed = (['server', 'backup', 'server_image'] as const).flatMap((kind) => {
    const count = known?.bindings.filter((each) => each.kind === kind).length ?? 0;
    const noun = `${kind.replace('_', ' ')}${count === 1 ? '' : 's'}`;
    return count === 0 && kind !== 'server' ? [] : [`${count} managed ${noun}`];
  });
  return html`<section id="bill"><h2>What is billed</h2><ul>
<li>${managed.join(', ')}, ${addresses === 1 ? '1 address' : `${addresses} addresses`} in the project</li>
${idle.map(({ ip, key }) => html`<li class="warn">${ip.address} is idle and billed <span class="dim">${key ?? 'not of this file'}</span>${key === undefined ? ways(waysWithIdle(String(ip.id), ip.address)) : ''}</li>`)}
${inDoubt.map(({ ip, key }) => html`<li class="warn">${ip.address} is billed and in doubt: it may be <span class="dim">${key}</span></li>`)}
${(known?.leftBackups ?? []).map(({ server, backups }) => html`<li class="warn">backup ${backups.join(', ')} of server ${server}, which is gone, is billed${ways(waysWithBackups(server))}</li>`)}
${leftAloneItem(facts, ways)}
${(plan?.cost.left_billed ?? []).map((text) => html`<li class="warn">${text}</li>`)}
${(plan?.cost.unknown ?? []).map((text) => html`<li class="dim">${text}</li>`)}</ul></section>`;
}

/** What is billed and told no more. */
function leftAloneItem(facts: ProjectFacts, ways: (each: readonly string[]) => readonly Html[]): Html {
  const left = leftAloneIn(facts);
  if (left.length === 0) return '';
  return html`<li class="dim">left alone as somebody else's, and billed as long as it is there: ${left.map(leftAloneName).join(', ')}${ways(waysWithLeftAlone())}</li>`;
}

function budgetCard({ known }: ProjectFacts): Html {
  if (known === undefined) return '';
  const { used, limits, counts, oldestReadMs } = known;
  const row = (name: 'reads' | 'writes') =>
    html`<li>${name} <meter min="0" max="${limits[name]}" high="${limits[name] * 0.9}" value="${Math.min(used[name], limits[name])}"></meter> ${used[name]} of ${limits[name]} in ${span(limits.windowMs)}</li>`;
  return html`<section id="budgets"><h2>Requests</h2><ul>${row('reads')}${row('writes')}
<li class="dim">since the start: ${counts.reads} reads, ${counts.polls} of them polls; ${counts.writes} writes; limited ${counts.throttled}×</li>
<li class="dim">the oldest answer in use is ${span(oldestReadMs)} old</li></ul></section>`;
}

function journalCard({ known }: ProjectFacts): Html {
  if (known === undefined || known.history.length === 0) return '';
  return html`<section class="wide" id="journal"><h2>Last writes</h2><div class="scroll"><table>
<tr><th>when</th><th>write</th><th>came to</th><th>request</th></tr>
${known.history.map(
  ({ key, verb, createdAt, outcome, phase, requestId, detail, kind }) =>
    html`<tr><td>${ago(known.now - createdAt)}</td><td class="key">${verb} ${key}<span class="dim"> ${takeApart(key).kind === kind ? '' : kind}</span></td><td>${outcome ?? phase}${detail ? html` <span class="dim">${detail}</span>` : ''}</td><td class="key">${requestId ?? ''}</td></tr>`,
)}</table></div></section>`;
}
