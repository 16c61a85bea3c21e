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
