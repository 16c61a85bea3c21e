import { html } from 'hono/html';
import { money, part } from '../../core/decimal.ts';
import { firewallKey, type ResourceKey } from '../../core/keys.ts';
import { oncePer } from '../../core/once.ts';
import { type Blocked, blockedName } from '../../core/plan.ts';
import { counted } from '../../core/text.ts';
import { waysWithBackups, waysWithIdle } from '../../core/ways-out.ts';
import type { ProjectFacts } from '../project/facts.ts';
import { exposedServers, leakingAddresses, unattachedAddresses } from '../project/troubles.ts';
import { Pager } from './pager.ts';
import { remediesHtml } from './remedies.ts';
import { type Html, keyText, marked, sentence, timeAhead, timeSince } from './text.ts';

/** The entries under *blocked* that the panel of dangers already shows. */
export function isInDangers(facts: ProjectFacts, { key }: Pick<Blocked, 'key'>): boolean {
  return keysInDangers(facts).has(key);
}

const keysInDangers = oncePer(
  (facts: ProjectFacts): ReadonlySet<string | null> =>
    new Set([
      ...exposedServers(facts).map((server) => firewallKey(server)),
      ...unattachedAddresses(facts).unconfirmed.map(({ key }) => key),
    ]),
);

/** Danger comes first: servers without their firewall, then money that is spent for nothing. */
export function dangersPanel(facts: ProjectFacts, pager = new Pager()): Html {
  const items = [...exposedServers(facts).map((key) => () => exposedItem(facts, key)), ...leaks(facts)];
  if (items.length === 0) return '';
  return html`<section class="wide alarm danger" id="danger"><h2>Danger</h2><ul>${pager.of(items).map((item) => item())}</ul></section>`;
}

/** When the oldest danger of the sort began, where that is known. */
export function exposedSince({ plan, known }: ProjectFacts): number | undefined {
  const servers = new Set(exposedServers({ plan }));
  return earliest(
    (known?.bindings ?? []).filter(({ key }) => servers.has(key)).map(({ boundAt }) => boundAt),
  );
}

export function leakingSince(facts: ProjectFacts): number | undefined {
  const { known, idleSince } = facts;
  return earliest([
    ...leakingAddresses(facts).flatMap(({ ip }) => idleSince.get(ip.id) ?? []),
    ...(known?.leftBackups ?? []).map(({ at }) => at),
  ]);
}

function earliest(moments: readonly number[]): number | undefined {
  return moments.length === 0 ? undefined : Math.min(...moments);
}

function exposedItem(facts: ProjectFacts, server: ResourceKey): Html {
  const { plan, known, world, blockedSince, flags } = facts;
  const firewall = firewallKey(server);
  const entry = plan?.blocked.find(({ key }) => key === firewall);
  const binding = known?.bindings.find(({ key }) => key === server);
  const addresses = binding === undefined ? [] : (world?.ipsOf(binding.id) ?? []);
  const public_ =
    addresses.length === 0
      ? ''
      : html` <span class="nowrap">(${addresses.map(({ address }) => address).join(', ')})</span>`;
  const since =
    binding === undefined || known === undefined ? '' : html` ${timeSince(binding.boundAt, known.now)}`;
  return html`<li><strong>${keyText(server)}</strong>${public_} <span class="bad">exposed${since}</span>
<p>The server has a public address, and its firewall is not in force: all its ports are open to the internet.${entry === undefined ? ` ${nextOfFirewall(facts)}` : html` ${blockedText('The write of the firewall', sinceText(entry, blockedSince, known?.now))} ${codeText(entry)} ${marked(sentence(entry.reason))}`}</p>${retryText({ key: firewall }, known)}${remediesHtml(entry?.remedies ?? [], flags)}</li>`;
}

/** The next step for a firewall that is not blocked. */
function nextOfFirewall({ mode, condition, offer }: ProjectFacts): string {
  if (mode === 'observe') return 'In mode observe, vdcsync does not set the firewall.';
  switch (condition) {
    case 'drifting':
      if (offer?.desired.settings.drift === 'report')
        return 'With `drift: report`, vdcsync does not correct the firewall.';
      return 'vdcsync does not set the firewall while it only observes.';
    case 'awaiting_approval':
      return 'The plan with the firewall waits for your approval.';
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

function blockedText(write: string, since: Html): Html {
  return since === '' ? html`${write} is blocked.` : html`${write} has been blocked${since}.`;
}

/** How long an entry has been blocked, where that is known. */
export function sinceText(
  entry: Pick<Blocked, 'code' | 'verb' | 'key'>,
  blockedSince: ProjectFacts['blockedSince'],
  now: number | undefined,
): Html {
  const since = blockedSince.get(blockedName(entry));
  return since === undefined || now === undefined ? '' : html` ${timeSince(since, now)}`;
}

/** Each resource that is billed, and that the file does not ask for: the functions write its item. */
export function leaks(facts: ProjectFacts): (() => Html)[] {
  const { flags, known, world, idleSince } = facts;
  const { idle, unconfirmed } = unattachedAddresses(facts);
  const price = addressPrice(world, 1);
  const cost = price === undefined ? '' : `, ${price}`;
  const since = (at: number | undefined): Html =>
    at === undefined || known === undefined ? '' : html` ${timeSince(at, known.now)}`;
  return [
    ...idle
      .filter(({ key }) => key === null)
      .map(
        ({ ip }) =>
          () =>
            html`<li><strong class="nowrap">${ip.address}</strong> <span class="bad">billed and idle${since(idleSince.get(ip.id))}${cost}</span>
<p>No server uses the address, and the file does not declare it.</p>${remediesHtml(waysWithIdle(String(ip.id), ip.address), flags)}</li>`,
      ),
    ...unconfirmed.map(
      ({ ip, key }) =>
        () =>
          html`<li><strong class="nowrap">${ip.address}</strong> <span class="bad">billed and unconfirmed${since(idleSince.get(ip.id))}${cost}</span>
<p>vdcsync requested ${keyText(key ?? '')}, and does not know the result: this address may be it. No server uses the address.</p>${unconfirmedItem(facts, key, ip)}</li>`,
    ),
    ...(known?.leftBackups ?? []).map(({ server, key, backups, at }) => () => {
      const noun = backups.length === 1 ? 'backup' : 'backups';
      return html`<li><strong>${keyText(key)}</strong> <span class="bad">deleted, with ${backups.length} ${noun} still billed${since(at)}</span>
<p>Server ${server} was deleted. Its ${noun} ${backups.map((id, at) => html`${at === 0 ? '' : ', '}<span class="nowrap">${id}</span>`)} still ${backups.length === 1 ? 'exists and is' : 'exist and are'} billed.</p>${remediesHtml(waysWithBackups(server), flags)}</li>`;
    }),
  ];
}

/** The way out of the unconfirmed write. The live id of the address stands where the operator would fill it in. */
function unconfirmedItem(
  { plan, blockedSince, known, flags }: ProjectFacts,
  key: ResourceKey | null,
  ip: { readonly id: number; readonly address: string },
): Html {
  const entry = plan?.blocked.find((each) => each.key === key);
  if (entry === undefined) return html`<p class="dim">vdcsync checks this. No action is needed yet.</p>`;
  const filled = entry.remedies.map((remedy) =>
    remedy.type === 'run' && remedy.args.includes('--adopt')
      ? {
          ...remedy,
          args: remedy.args.map((each) => (each === 'ID' ? String(ip.id) : each)),
          when: `if vdcsync alone can have created ${ip.address}`,
        }
      : remedy,
  );
  return html`<p>${blockedText('The write', sinceText(entry, blockedSince, known?.now))} ${codeText(entry)} ${marked(sentence(entry.reason))}</p>${retryText(entry, known)}${remediesHtml(filled, flags)}`;
}

/** The code of a block, unless the answer of the API in the reason names it. */
export function codeText({ code, reason }: Pick<Blocked, 'code' | 'reason'>): Html {
  return reason.includes(code) ? '' : html`<span class="code">${code}</span>`;
}

/** When vdcsync tries the operation again by itself. */
export function retryText({ key }: Pick<Blocked, 'key'>, known: ProjectFacts['known']): Html {
  const retry = known?.backOff.find((each) => each.key === key);
  return retry === undefined || known === undefined
    ? ''
    : html`<p class="dim">Failed ${counted(retry.failures, 'time')}. Next attempt: ${timeAhead(retry.until, known.now)}.</p>`;
}

/** The cost of so many addresses, if the price list has it. */
export function addressPrice(world: ProjectFacts['world'], count: number): string | undefined {
  const prices = world?.profile?.prices;
  if (prices?.address === undefined) return undefined;
  return perMonth(money(part(prices.address, count)), prices.currency);
}

export function perMonth(amount: string, currency: string | null | undefined): string {
  return `${amount}${currency === null || currency === undefined ? '' : ` ${currency}`} a month`;
}
