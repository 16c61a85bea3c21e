import { html, raw } from 'hono/html';
import { counted } from '../../core/text.ts';
import { conditions, type Level, levelOf } from '../../view/condition.ts';
import type { Rollout } from '../fleet/rollout.ts';
import type { ProjectSummary } from '../project/facts.ts';
import { type Headline, headlineOf, wordText } from './headline.ts';
import { ago, type Html, timeSince } from './text.ts';

/** More rows than an operator reads at once; the others are counted, and found by search or filter. */
const mostRows = 100;

/** The search and the filter of the overview, from the query of its address. */
export interface Wanted {
  readonly text?: string | undefined;
  /** One of {@link wordsOf}. */
  readonly state?: string | undefined;
  readonly all?: boolean;
}

interface ProjectRow {
  readonly project: ProjectSummary;
  readonly headline: Headline;
}

const order: Readonly<Record<Level, number>> = { bad: 0, warn: 1, busy: 2, dim: 3, good: 4 };
/** Within a level: an exposed server comes first, then the order of the conditions. */
const words: readonly string[] = ['exposed', 'spec broken', ...conditions, 'billed and idle'];

/** All projects in a word. */
export function overviewHeadline(projects: readonly ProjectSummary[]): Headline {
  const rows = projects.map(rowOf);
  const unhealthy = rows.filter(({ headline }) => headline.level === 'bad').length;
  if (unhealthy > 0) return { level: 'bad', word: `${unhealthy} of ${projects.length} need attention` };
  const open = rows.filter(({ headline }) => headline.level !== 'good');
  const worst = open.sort(byUrgency)[0]?.headline.level;
  if (worst !== undefined)
    return { level: worst, word: `${open.length} of ${projects.length} not converged` };
  return { level: 'good', word: `${projects.length} converged` };
}

/** The changes of the specs that not all projects of a fleet have yet. */
export function rolloutsPanel(rollouts: readonly Rollout[]): Html {
  if (rollouts.length === 0) return '';
  const item = ({ change, phase, total, left, wave, reason }: Rollout) =>
    html`<li><code>${change.slice(0, 12)}</code> <span class="${phase === 'running' ? 'busy' : 'warn'}">${phase}</span> <progress aria-label="${change}" max="${total}" value="${total - left}"></progress> ${total - left} of ${counted(total, 'project')} <span class="dim">${counted(wave, 'wave')} begun</span>${reason === null ? '' : html`<p>${reason}</p>`}</li>`;
  return html`<section class="wide" id="rollouts"><h2>Rollout</h2><ul>${rollouts.map(item)}</ul></section>`;
}

/** Every project in a line, those that need attention first: found by name, id or state. */
export function overviewPanel(projects: readonly ProjectSummary[], wanted: Wanted): Html {
  const rows = projects.map(rowOf).sort(byUrgency);
  const text = (wanted.text ?? '').trim().toLowerCase();
  const matching = rows.filter(
    ({ project, headline }) =>
      (text === '' || `${project.name ?? ''} ${project.id}`.toLowerCase().includes(text)) &&
      (!wanted.state || wordsOf({ project, headline }).includes(wanted.state)),
  );
  // Without a question, only projects that may need an operator.
  const isAsked = text !== '' || Boolean(wanted.state) || wanted.all === true;
  const listed = isAsked ? matching : matching.filter(({ headline }) => headline.level !== 'good');
  const shown = wanted.all === true ? listed : listed.slice(0, mostRows);
  return html`<section class="wide" id="projects"><h2>${counted(projects.length, 'project')}</h2>
<form method="get" action="/" role="search"><input type="search" name="q" id="q" value="${wanted.text ?? ''}" placeholder="Name or id" aria-label="Search by name or id" autocomplete="off">
${wanted.state ? html`<input type="hidden" name="state" value="${wanted.state}">` : ''}<button>Search</button></form>
${ageText(projects)}${filters(rows, wanted)}
${shown.length === 0 ? html`<p class="dim">${isAsked ? 'No project matches.' : 'Every project is converged.'}</p>` : html`<ul class="projects">${shown.map(rowItem)}</ul>`}
${moreText(listed.length - shown.length, matching.length - listed.length, wanted)}</section>`;
}

/** How old the results of the projects are. */
function ageText(projects: readonly ProjectSummary[]): Html {
  const ages = projects.flatMap(({ reconciledAt, now }) =>
    reconciledAt === undefined ? [] : [now - reconciledAt],
  );
  const unknown = projects.length - ages.length;
  const oldest =
    ages.length === 0 ? '' : html`<span>Oldest reconciliation: ${ago(Math.max(...ages))}</span> `;
  const rest = unknown === 0 ? '' : html`<span>${unknown} not reconciled since vdcsync started</span>`;
  return html`<p class="facts fresh">${oldest}${rest}</p>`;
}

function filters(rows: readonly ProjectRow[], wanted: Wanted): Html {
  const counts = Map.groupBy(rows.flatMap(wordsOf), (word) => word);
  const chips = [...counts.keys()]
    .sort((a, b) => words.indexOf(a) - words.indexOf(b))
    .map(
      (word) =>
        html`<a class="chip ${levelOfWord(word)}" href="${queryOf({ ...wanted, all: false, state: word })}" ${wanted.state === word ? raw('aria-current="true"') : ''}>${wordText(word)} <b>${counts.get(word)?.length}</b></a>`,
    );
  const all = html`<a class="chip" href="${queryOf({ text: wanted.text, all: true })}" ${wanted.all === true ? raw('aria-current="true"') : ''}>all <b>${rows.length}</b></a>`;
  return html`<nav class="chips" aria-label="Filter by state">${chips}${all}</nav>`;
}

function rowItem({ project, headline }: ProjectRow): Html {
  // The age belongs to the condition, which the headline may not name.
  const { id, name, condition, since, now, blocked, broken, leaking } = project;
  const notes = [
    ...(blocked === 0
      ? []
      : [`${counted(blocked, 'operation')}${condition === 'blocked' ? '' : ' blocked'}`]),
    ...(leaking && headline.word !== 'billed and idle' ? ['billed and idle'] : []),
    ...(broken && headline.word !== 'spec broken' ? ['spec broken'] : []),
  ];
  return html`<li><a href="/?project=${id}"><span class="dot ${headline.level}"></span><strong>${name ?? `project ${id}`}</strong> <span class="dim">${id}</span></a>
<span class="${headline.level}">${wordText(headline.word)}</span> <span class="dim">${since === undefined ? '' : html`${headline.word === condition ? '' : `· ${wordText(condition)} `}${timeSince(since, now)}`}${notes.map((note) => ` · ${note}`)}</span></li>`;
}

function moreText(cut: number, converged: number, wanted: Wanted): Html {
  if (cut > 0) return html`<p><a href="${queryOf({ ...wanted, all: true })}">Show ${cut} more</a></p>`;
  if (converged === 0) return '';
  return html`<p><a href="${queryOf({ state: 'converged' })}">Show ${converged} converged</a></p>`;
}

function queryOf({ text, state, all }: Wanted): string {
  const query = new URLSearchParams({
    ...(text ? { q: text } : {}),
    ...(state ? { state } : {}),
    ...(all === true ? { all: '1' } : {}),
  });
  return query.size === 0 ? '/' : `/?${query}`;
}

/** All words that are true of a project. A project is converged only if no other word is. */
function wordsOf({ project }: ProjectRow): string[] {
  const { exposed, leaking, broken, condition } = project;
  const troubles = [
    ...(exposed ? ['exposed'] : []),
    ...(leaking ? ['billed and idle'] : []),
    ...(broken ? ['spec broken'] : []),
  ];
  return condition === 'converged' && troubles.length > 0 ? troubles : [...troubles, condition];
}

/** A word that is no condition is an exposed server, a broken spec or an idle address. */
function levelOfWord(word: string): Level {
  const condition = conditions.find((each) => each === word);
  if (condition !== undefined) return levelOf(condition);
  return word === 'billed and idle' ? 'warn' : 'bad';
}

function rowOf(project: ProjectSummary): ProjectRow {
  return { project, headline: headlineOf(project.condition, project) };
}

function byUrgency(a: ProjectRow, b: ProjectRow): number {
  const level = order[a.headline.level] - order[b.headline.level];
  if (level !== 0) return level;
  const word = rank(a) - rank(b);
  // The one that has been so for longest comes first.
  return word !== 0 ? word : (a.project.since ?? 0) - (b.project.since ?? 0) || a.project.id - b.project.id;
}

function rank({ headline }: ProjectRow): number {
  return words.indexOf(headline.word);
}
