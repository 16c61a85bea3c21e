/** The page's whole style: two palettes, one column on a phone, two where there is room. */
export const style = `
:root { color-scheme: light dark;
  --back: #f5f6f8; --panel: #fff; --line: #e1e5ea; --text: #18202b; --dim: #586473;
  --good: #17784a; --warn: #8f5a00; --bad: #bf2233; --busy: #1b67c4; --code: #eef1f5; --alarm: #fff3f3; }
@media (prefers-color-scheme: dark) { :root {
  --back: #0f1318; --panel: #181d25; --line: #2a323d; --text: #e6ebf1; --dim: #98a4b3;
  --good: #4cc38a; --warn: #e5ad45; --bad: #ff8088; --busy: #74b3ff; --code: #232b36; --alarm: #2a181c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
header, main, footer { max-width: 1120px; margin: 0 auto; padding: 0 16px; }
header { padding-top: 18px; display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; }
h1 { font-size: 22px; line-height: 1.2; margin: 0 4px 0 0; } h2 { font-size: 16px; line-height: 1.3; margin: 0 0 8px; }
p { margin: 3px 0; } a { color: var(--busy); } .back { flex-basis: 100%; }
.badge { border: 1px solid currentColor; border-radius: 99px; padding: 1px 12px; font-weight: 600; font-size: 14px; }
.badge.bad { background: #c62839; border-color: #c62839; color: #fff; }
.good, .converged { color: var(--good); } .warn, .pending, .differs, .waiting, .retiring, .undeclared { color: var(--warn); } .bad, .blocked, .tainted { color: var(--bad); }
.busy, .in_flight { color: var(--busy); } .dim, .unknown { color: var(--dim); }
main { padding-top: 10px; }
.facts { color: var(--dim); margin: 12px 0; font-size: 14px; } .facts > span { margin-right: 16px; display: inline-block; }
.fresh { margin: 0 0 8px; }
.chips { display: flex; flex-wrap: wrap; gap: 8px; margin: 2px 0 12px; }
.chip { border: 1px solid var(--line); border-radius: 99px; padding: 5px 13px; text-decoration: none; background: var(--panel); font-size: 14px; }
.chip:not(.good, .warn, .bad, .busy, .dim) { color: var(--text); } .chip[aria-current] { border-color: currentColor; font-weight: 600; }
.chip.good { color: var(--good); } .chip.warn { color: var(--warn); } .chip.bad { color: var(--bad); border-color: currentColor; } .chip.dim { color: var(--dim); }
.panels { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 14px 16px; min-width: 0; scroll-margin: 12px; }
section.wide { grid-column: 1 / -1; }
section.alarm { border-color: var(--bad); border-left-width: 5px; } .alarm h2 { color: var(--bad); }
section.attention { border-left: 5px solid var(--warn); }
section.danger { background: var(--alarm); } .danger h2 { font-size: 18px; } .danger h2::before { content: '▲ '; }
ul { list-style: none; margin: 0; padding: 0; } li { padding: 8px 0; border-top: 1px solid var(--line); } li:first-child { border-top: 0; padding-top: 0; } li:last-child { padding-bottom: 0; }
code { background: var(--code); border-radius: 5px; padding: 1px 5px; font: 13px/1.6 ui-monospace, monospace; }
code .key { font: inherit; }
.key { font-family: ui-monospace, monospace; font-size: .93em; }
.key > span, .command span, .change span { display: inline-block; max-width: 100%; overflow-wrap: anywhere; }
.nowrap { white-space: nowrap; }
.code { color: var(--dim); font: 12.5px ui-monospace, monospace; }
.way { margin-top: 8px; } .way + ul { margin-top: 14px; } .way > span { display: block; }
.command { display: flex; align-items: center; gap: 8px; background: var(--code); border-radius: 8px; padding: 6px 6px 6px 12px; margin-top: 2px; }
.command code { flex: 1; min-width: 0; background: none; padding: 4px 0; user-select: all; white-space: pre-wrap; }
.copy { display: none; flex: none; min-width: 76px; min-height: 34px; } .scripted .copy { display: block; }
button { font: 600 14px system-ui, sans-serif; color: var(--text); background: var(--panel); border: 1px solid var(--line); border-radius: 7px; padding: 5px 12px; cursor: pointer; }
button:hover { border-color: var(--busy); } :focus-visible { outline: 2px solid var(--busy); outline-offset: 2px; }
details { margin-top: 8px; } details ul { margin-top: 8px; } summary { cursor: pointer; padding: 4px 0; } h2 + details { margin-top: 0; }
.rows li { display: flex; flex-wrap: wrap; gap: 0 14px; align-items: baseline; } .rows .row-key { flex: 1 1 300px; } .rows li > p { flex-basis: 100%; }
#projects > p { margin-top: 12px; }
.projects li { display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; } .projects li > a { flex: 1 1 260px; text-decoration: none; color: inherit; } .projects strong { color: var(--busy); }
form { display: flex; gap: 8px; margin-bottom: 12px; } input { font: 16px system-ui, sans-serif; flex: 1; min-width: 0; padding: 7px 12px; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 8px; }
::placeholder { color: var(--dim); opacity: 1; }
.dot { display: inline-block; width: 10px; height: 10px; border-radius: 50%; background: currentColor; margin-right: 9px; }
.sum b { font-size: 20px; } #bill > p { margin-bottom: 6px; }
time { text-decoration: underline dotted 1px; text-underline-offset: 3px; cursor: pointer; }
.scroll { overflow-x: auto; }
progress, meter { width: 140px; height: 12px; vertical-align: middle; } progress { accent-color: var(--busy); }
svg { display: block; width: 100%; min-width: 660px; max-width: 860px; margin: 0 auto; }
svg text { fill: var(--text); font: 13px system-ui, sans-serif; } svg .note, svg .column { fill: var(--dim); font-size: 11.5px; }
svg .tick { stroke: var(--line); } .timeline svg { min-width: 860px; margin: 0 0 12px; } .timeline text { font-size: 11.5px; } .timeline .dim { fill: var(--dim); } .timeline rect { stroke: none; }
.timeline .works { fill: var(--busy); } .timeline .waits { fill: var(--warn); } .timeline .other, .timeline .open { fill: var(--bad); }
svg .column { text-anchor: middle; } svg rect { fill: var(--back); stroke: var(--line); }
svg circle, svg text.status { fill: currentColor; } svg text.status { font-size: 11.5px; } svg .box:not(.converged) rect { stroke: currentColor; } svg .box.idle { color: var(--warn); } svg .idle rect { stroke-dasharray: 4 3; }
svg .link { fill: none; stroke: var(--dim); stroke-width: 1.4; opacity: .65; }
svg .in_flight circle { animation: pulse 1.2s infinite; } @keyframes pulse { 50% { opacity: .2; } }
@media (prefers-reduced-motion: reduce) { svg .in_flight circle { animation: none; } }
@media (max-width: 720px) { .wide-screen { display: none; } .rows .row-key { flex-basis: 100%; } .projects li > a { flex-basis: 100%; } }
footer { color: var(--dim); font-size: 13px; padding: 4px 16px 28px; }
.offline { margin: 0; padding: .6rem 1rem; color: #fff; background: #b3202f; position: sticky; top: 0; z-index: 1; }
`;

/**
 * Keeps the page current: after each change on the server the script fetches the part that changes, with title and
 * icon. Details that the reader has opened, typed, focused or scrolled stay. Without scripts the page reloads itself now and
 * then; only the copy buttons are missing.
 */
export const script = `
document.documentElement.classList.add('scripted');
const page = document.getElementById('page');
const live = document.getElementById('live');
const offline = document.getElementById('offline');
let busy = false, again = false;
function keep() {
  const open = [...page.querySelectorAll('details[open]')].map(each => each.id);
  const scrolled = [...page.querySelectorAll('.scroll')].map(each => each.scrollLeft);
  const { id, value, selectionStart } = document.activeElement ?? {};
  const nameOf = each => each.dataset.copy ?? each.href ?? each.textContent;
  const focused = page.contains(document.activeElement) ? nameOf(document.activeElement) : undefined;
  return () => {
    for (const each of open) document.getElementById(each)?.setAttribute('open', '');
    page.querySelectorAll('.scroll').forEach((each, at) => { each.scrollLeft = scrolled[at] ?? 0; });
    const same = [...page.querySelectorAll('a, button, summary')].find(each => nameOf(each) === focused);
    if (focused !== undefined && id !== 'q') same?.focus({ preventScroll: true });
    const field = id === 'q' ? document.getElementById(id) : null;
    if (field) { field.value = value; field.focus(); field.setSelectionRange(selectionStart, selectionStart); }
  };
}
function show(text) {
  const restore = keep();
  page.innerHTML = text;
  restore();
  const top = page.querySelector('header');
  if (!top) return;
  document.title = top.dataset.title;
  document.getElementById('icon').href = top.dataset.icon;
}
async function update() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const answer = await window.fetch('/page' + location.search, { cache: 'no-store' });
    offline.hidden = answer.ok;
    if (answer.ok) show(await answer.text());
  } catch { offline.hidden = false; } finally { busy = false; }
  if (again) { again = false; update(); }
}
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}
page.addEventListener('click', async ({ target }) => {
  // A phone has no hover: a tap shows the moment, and a second one the age again.
  const time = target.closest('time');
  if (time) [time.textContent, time.title] = [time.title, time.textContent];
  const button = target.closest('button.copy');
  if (!button) return;
  await copy(button.dataset.copy).then(() => { button.textContent = 'Copied'; }, () => { button.textContent = 'Not copied'; });
  window.setTimeout(() => { button.textContent = 'Copy'; }, 2000);
});
let typing;
page.addEventListener('input', ({ target }) => {
  if (target.id !== 'q') return;
  clearTimeout(typing);
  typing = window.setTimeout(() => {
    const place = new URL(location.href);
    if (target.value) place.searchParams.set('q', target.value); else place.searchParams.delete('q');
    history.replaceState(null, '', place);
    update();
  }, 150);
});
// Ages grow although nothing changes, and a phone suspends pages in the background.
const isSeen = () => document.visibilityState === 'visible';
const isSelecting = () => String(window.getSelection()) !== '';
window.setInterval(() => { if (isSeen() && !isSelecting()) update(); }, 15000);
document.addEventListener('visibilitychange', () => { if (isSeen()) update(); });
const events = new EventSource('/events');
events.addEventListener('changed', update);
events.onopen = () => { live.textContent = 'live'; update(); };
events.onerror = () => { live.textContent = 'offline'; offline.hidden = false; };
`;
