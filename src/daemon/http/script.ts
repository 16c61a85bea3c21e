/**
 * Keeps the page as it is on the server: at each change the part that changes is fetched
 * anew. Without it the page reloads itself now and then; nothing else is lost.
 */
export const script = `
const live = document.getElementById('live');
const place = new URL(location.href);
let busy = false, again = false;
async function renew() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const answer = await window.fetch('/page' + place.search, { cache: 'no-store' });
    if (answer.ok) document.getElementById('page').innerHTML = await answer.text();
  } catch {} finally { busy = false; }
  if (again) { again = false; renew(); }
}
const events = new EventSource('/events');
events.addEventListener('changed', renew);
events.onopen = () => { live.textContent = 'live'; live.className = ''; renew(); };
events.onerror = () => { live.textContent = 'no connection: what is shown may be old'; live.className = 'offline'; };
`;
