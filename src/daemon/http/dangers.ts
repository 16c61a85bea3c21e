import { html } from 'hono/html';
import { money, part } from '../../core/decimal.ts';
import { firewallKey, type ResourceKey, takeApart } from '../../core/keys.ts';
import { type Blocked, endsExposure } from '../../core/plan.ts';
import type { Remedy } from '../../core/remedy.ts';
import { waysWithBackups, waysWithIdle } from '../../core/ways-out.ts';
import { blockedName, type ProjectFacts } from '../project/facts.ts';
import { remediesHtml } from './remedies.ts';
import { unattachedAddresses } from './status.ts';
import { type Html, keyText, marked, timeSince } from './text.ts';

/** Servers that are public and have no firewall although the file declares one. */
export function exposedServers({ plan, known }: ProjectFacts): readonly ResourceKey[] {
  const isBound = (key: ResourceKey) => known?.bindings.some((each) => each.key === key) === true;
  const reported = (plan?.warnings ?? []).flatMap(({ code, key }) =>
    code === 'exposed' && key !== null ? [key] : [],
  );
  const pending = (plan?.operations ?? [])
    .filter(endsExposure)
    .flatMap(({ key }) => takeApart(key).parent ?? [])
    .filter(isBound);
  return [...new Set([...reported, ...pending])];
}

/** Everything that is billed although no entry of the file asks for it. */
export function isLeaking(facts: ProjectFacts): boolean {
  const { idle, unconfirmed } = unattachedAddresses(facts);
  return (
    idle.some(({ key }) => key === null) ||
    unconfirmed.length > 0 ||
    (facts.known?.leftBackups ?? []).length > 0
  );
}

/** The entries under *blocked* that the panel of dangers already shows. */
export function isOfExposed(facts: ProjectFacts, { key }: Pick<Blocked, 'key'>): boolean {
  return exposedServers(facts).some((server) => key === firewallKey(server));
}

/** Danger comes first: servers without their firewall, then money that is spent for nothing. */
export function dangersPanel(facts: ProjectFacts): Html {
  const items = [...exposedServers(facts).map((key) => exposedItem(facts, key)), ...leaks(facts)];
  if (items.length === 0) return '';
  return html`<section class="wide alarm danger" id="danger"><h2>Danger</h2><ul>${items}</ul></section>`;
}

function exposedItem({ plan, known, world, blockedSince, flags }: ProjectFacts, server: ResourceKey): Html {
  const firewall = firewallKey(server);
  const entry = plan?.blocked.find(({ key }) => key === firewall);
  const binding = known?.bindings.find(({ key }) => key === server);
  const addresses = binding === undefined ? [] : (world?.ipsOf(binding.id) ?? []);
  const public_ =
    addresses.length === 0
      ? ''
      : html` <span class="nowrap">${addresses.map(({ address }) => address).join(', ')}</span>`;
  const since =
    binding === undefined || known === undefined ? '' : html` ${timeSince(binding.boundAt, known.now)}`;
  return html`<li><strong>${keyText(server)}</strong> <span class="bad">exposed${since}</span>${public_}
<p>The server is public, and its firewall is not in place: nothing is filtered.${entry === undefined ? ' The firewall is the next write.' : html` The firewall is blocked${sinceText(entry, blockedSince, known?.now)}: ${marked(entry.reason)}`}</p>${remediesHtml(entry?.remedies ?? [], flags)}</li>`;
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

function leaks(facts: ProjectFacts): Html[] {
  const { flags, known, world } = facts;
  const { idle, unconfirmed } = unattachedAddresses(facts);
  const ways = (each: readonly Remedy[]) => remediesHtml(each, flags);
  const price = addressPrice(world, 1);
  const cost = price === undefined ? '' : `, ${price}`;
  return [
    ...idle
      .filter(({ key }) => key === null)
      .map(
        ({ ip }) =>
          html`<li><strong class="nowrap">${ip.address}</strong> <span class="bad">billed and idle${cost}</span>
<p>The address is attached to nothing, and the file does not declare it.</p>${ways(waysWithIdle(String(ip.id), ip.address))}</li>`,
      ),
    ...unconfirmed.map(
      ({ ip, key }) =>
        html`<li><strong class="nowrap">${ip.address}</strong> <span class="bad">billed and unconfirmed${cost}</span>
<p>The address is attached to nothing. The open write of ${keyText(key ?? '')} may have created it.</p></li>`,
    ),
    ...(known?.leftBackups ?? []).map(
      ({ server, key, backups }) =>
        html`<li><strong>${keyText(key)}</strong> <span class="bad">backup left and billed</span>
<p>Server ${server} is deleted. Its ${backups.length === 1 ? 'backup' : 'backups'} ${backups.join(', ')} still ${backups.length === 1 ? 'exists and is' : 'exist and are'} billed.</p>${ways(waysWithBackups(server))}</li>`,
    ),
  ];
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
