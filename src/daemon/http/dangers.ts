import { html } from 'hono/html';
import { firewallKey, type ResourceKey } from '../../core/keys.ts';
import type { Blocked } from '../../core/plan.ts';
import { waysWithBackups, waysWithIdle } from '../../core/remedy.ts';
import { counted } from '../../core/text.ts';
import { unaskedIn } from '../../view/bill.ts';
import type { BilledView, ProjectView } from '../../view/project-view.ts';
import type { Pager } from './pager.ts';
import { flagsOf, remediesHtml } from './remedies.ts';
import { type Html, keyText, marked, perMonth, sentence, since, timeAhead } from './text.ts';

/** Servers without their firewall. */
export function dangersPanel(view: ProjectView, pager: Pager): Html {
  const exposed = view.exposed ?? [];
  if (exposed.length === 0) return '';
  return html`<section class="wide alarm danger" id="danger"><h2>Danger</h2><ul>${pager.of(exposed).map((key) => exposedItem(view, key))}</ul></section>`;
}

/** Whether the panel of dangers shows the whole of a blocked entry. */
export function isInDangers({ exposed }: ProjectView, { key }: Pick<Blocked, 'key'>): boolean {
  return exposed?.some((server) => firewallKey(server) === key) === true;
}

/** The firewall is late by the age of its server. */
export function exposedSince({ exposed, resources }: ProjectView): string | null {
  const servers = new Set<string>(exposed ?? []);
  return earliest(resources.filter(({ key }) => servers.has(key)).map((each) => each.bound_at));
}

export function leakingSince(view: ProjectView): string | null {
  const { unconfirmed, left_backups: left } = view;
  return earliest([...unaskedIn(view), ...(unconfirmed ?? []), ...left].map((each) => each.since));
}

/** ISO moments sort as text. */
function earliest(moments: readonly (string | null)[]): string | null {
  return moments.filter((each) => each !== null).sort()[0] ?? null;
}

function exposedItem(view: ProjectView, server: ResourceKey): Html {
  const firewall = firewallKey(server);
  const entry = view.blocked.find(({ key }) => key === firewall);
  const resource = view.resources.find(({ key }) => key === server);
  const addresses = resource?.addresses.join(', ') ?? '';
  const next = entry === undefined ? ` ${nextOfFirewall(view)}` : html` ${blockedText(entry, view)}`;
  return html`<li><strong>${keyText(server)}</strong>${addresses === '' ? '' : html` <span class="nowrap">(${addresses})</span>`} <span class="bad">exposed${since(resource?.exposed_since ?? null, view.at)}</span>
<p>The server has a public address, and its firewall is not in force: all its ports are open to the internet.${next}</p>${retryText({ key: firewall }, view)}${remediesHtml(entry?.remedies ?? [], flagsOf(view))}</li>`;
}

/** The next step for a firewall that is not blocked. */
function nextOfFirewall({ daemon, condition, plan, spec }: ProjectView): string {
  if (daemon?.mode === 'observe') return 'In mode observe, vdcsync does not set the firewall.';
  if (plan?.awaits_approval === true) return 'The plan with the firewall waits for your approval.';
  switch (condition) {
    case 'drifting':
      if (spec.drift === 'report') return 'With `drift: report`, vdcsync does not correct the firewall.';
      return 'vdcsync does not set the firewall while it only observes.';
    case 'paused':
      return 'vdcsync sets the firewall when the API accepts writes again.';
    case 'fenced':
    case 'unauthorized':
    case 'unreachable':
    case 'failing':
      return 'vdcsync sets the firewall when the reconciliations succeed again.';
    default:
      return 'vdcsync sets the firewall next.';
  }
}

function blockedText(entry: Blocked, { at }: ProjectView): Html {
  const how =
    entry.since === undefined
      ? 'The write of the firewall is blocked.'
      : html`The write of the firewall has been blocked${since(entry.since, at)}.`;
  return html`${how} ${codeText(entry)} ${marked(sentence(entry.reason))}`;
}

/** Each resource that is billed, and that the spec does not ask for. */
export function idlePanel(view: ProjectView, pager: Pager): Html {
  const { unconfirmed, left_backups: left, at } = view;
  const flags = flagsOf(view);
  const price = view.address_price;
  const cost = price === null ? '' : `, ${perMonth(price.known, price.currency)}`;
  const head = ({ what, since: began }: BilledView, words: string) =>
    html`<strong class="nowrap">${addressIn(what)}</strong> <span class="warn">${words}${since(began, at)}${cost}</span>`;
  const items = [
    ...unaskedIn(view).map(
      (each) => () =>
        html`<li>${head(each, 'billed and idle')}
<p>No server uses the address, and the spec does not declare it.</p>${remediesHtml(waysWithIdle(each.id, addressIn(each.what)), flags)}</li>`,
    ),
    ...(unconfirmed ?? []).map(
      (each) => () =>
        html`<li>${head(each, 'billed and unconfirmed')}
<p>vdcsync requested ${keyText(each.key ?? '')}, and does not know the result: this address may be it. No server uses the address.${view.blocked.some(({ key, decision }) => decision && key === each.key) ? html` <a href="#blocked">Decide under Blocked</a>.` : ' vdcsync checks this. No action is needed yet.'}</p></li>`,
    ),
    ...left.map(({ server_id: server, key, backups, since: began }) => () => {
      return html`<li><strong>${keyText(key)}</strong> <span class="warn">deleted, with ${counted(backups.length, 'backup')} still billed${since(began, at)}</span>
<p>Server ${server} was deleted. Its backup${backups.length === 1 ? '' : 's'} ${backups.map((id, at) => html`${at === 0 ? '' : ', '}<span class="nowrap">${id}</span>`)} still ${backups.length === 1 ? 'exists and is' : 'exist and are'} billed.</p>${remediesHtml(waysWithBackups(server), flags)}</li>`;
    }),
  ];
  if (items.length === 0) return '';
  return html`<section class="wide attention" id="idle"><h2 class="warn">Billed and idle</h2><ul>${pager.of(items).map((item) => item())}</ul></section>`;
}

export function addressIn(what: string): string {
  return what.replace(/^address /, '');
}

/** The code of a block, unless the answer of the API in the reason names it. */
export function codeText({ code, reason }: Pick<Blocked, 'code' | 'reason'>): Html {
  return reason.includes(code) ? '' : html`<span class="code">${code}</span>`;
}

/** When vdcsync tries the operation again by itself. */
export function retryText({ key }: Pick<Blocked, 'key'>, { daemon, at }: ProjectView): Html {
  const retry = daemon?.back_off.find((each) => each.key === key);
  if (retry === undefined || at === null) return '';
  return html`<p class="dim">Failed ${counted(retry.failures, 'time')}. Next attempt: ${timeAhead(retry.until, at)}.</p>`;
}
