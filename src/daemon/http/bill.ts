import { html } from 'hono/html';
import { money, monthLine, part } from '../../core/decimal.ts';
import { nounOf } from '../../core/keys.ts';
import { factsOf, isAddress, kindsWith } from '../../core/kind-facts.ts';
import { waysWithIgnored } from '../../core/remedy.ts';
import { counted } from '../../core/text.ts';
import { ignoredName, unaskedIn } from '../../view/bill.ts';
import type { ProjectView } from '../../view/project-view.ts';
import { addressIn } from './dangers.ts';
import type { Pager } from './pager.ts';
import { flagsOf, remediesHtml } from './remedies.ts';
import { type Html, keyText, marked, perMonth } from './text.ts';

/** Everything that is billed, with its cost where prices are known. */
export function billPanel(view: ProjectView, pager: Pager): Html {
  const { resources, addresses, plan, idle, unconfirmed } = view;
  const unasked = unaskedIn(view).length + (unconfirmed?.length ?? 0);
  const managed = kindsWith('counted').flatMap((kind) => {
    const count = resources.filter((each) => each.kind === kind).length;
    return count === 0 && !factsOf(kind).bought ? [] : [counted(count, `managed ${nounOf(kind)}`)];
  });
  // Before the first refresh, a number would be wrong.
  const live = addresses === null ? [] : [`${addressCount(view)}, unmanaged ones included`];
  const { unknown = [], left_billed: left = [] } = plan?.cost ?? {};
  return html`<section id="bill"><h2>Cost</h2>${monthly(view)}<ul>
<li>${[...managed, ...live].join(', ')}</li>
${unasked === 0 ? '' : html`<li class="warn">Not included: <a href="#idle">${counted(unasked, 'address', 'addresses')} billed and idle</a>${costOf(view, unasked)}</li>`}
${view.warnings.some(({ code }) => code === 'unlisted_servers') ? html`<li class="warn">Not included: <a href="#warnings">servers that the API does not list</a></li>` : ''}
${pager.of((idle ?? []).filter(({ key }) => key !== null)).map(({ what, key }) => html`<li class="warn"><span class="nowrap">${addressIn(what)}</span> is idle and billed${costOf(view, 1)} <span class="dim">${keyText(key ?? '')}</span></li>`)}
${pager.of(left).map((text) => html`<li class="warn">${marked(text)}</li>`)}
${ignoredItem(view, pager)}</ul>
${unknown.length === 0 ? '' : html`<details id="unpriced"><summary class="dim">${counted(unknown.length, 'price')} not known</summary><ul>${pager.of(unknown).map((text) => html`<li class="dim">${marked(text)}</li>`)}</ul></details>`}</section>`;
}

/** An address that was bought since the last refresh counts as well. */
function addressCount({ addresses, resources }: ProjectView): string {
  const bound = resources.filter((each) => isAddress(each.kind));
  const ids = new Set([...(addresses ?? []), ...bound].map(({ id }) => id));
  return counted(ids.size, 'address', 'addresses');
}

/** The sum of known prices, and how the pending operations change it. A sum of nothing would read as free. */
function monthly({ plan, unconfirmed }: ProjectView): Html {
  if (plan === null) return html`<p class="dim">The cost is not known before the first read.</p>`;
  const { monthly: sum, month, known_monthly_delta: delta } = plan.cost;
  const isKnown = Number(sum.known_before) !== 0;
  const change = Number(delta);
  if (!isKnown && change === 0) {
    if (sum.unknown.length === 0) return '';
    return html`<p class="dim">No price is known for ${counted(sum.unknown.length, 'managed resource')}. Add prices with <code>--prices FILE</code>.</p>`;
  }
  const currency = sum.currency === null ? '' : ` ${sum.currency}`;
  const isBilled = (unconfirmed ?? []).length > 0;
  return html`<p class="sum">${isKnown ? html`<b>${sum.known_before}${currency}</b> a month for managed resources` : ''}${isKnown && sum.unknown.length > 0 ? html`. Not included: ${counted(sum.unknown.length, 'resource')} without a known price` : ''}</p>
${change === 0 ? '' : html`<p class="${change > 0 ? 'warn' : 'good'}">${changeText(delta, sum.currency)} when the plan is applied${isBilled ? '. An unconfirmed address is billed already' : ''}</p>`}${monthLine(month, sum.currency).map((line) => html`<p>${line}</p>`)}`;
}

/** `+3.20 EUR a month` */
export function changeText(delta: string, currency: string | null): string {
  return `${Number(delta) > 0 ? '+' : '−'}${perMonth(delta.replace('-', ''), currency)}`;
}

function costOf({ address_price: price }: ProjectView, count: number): string {
  return price === null ? '' : `, ${perMonth(money(part(price.known, count)), price.currency)}`;
}

/** Billed, and ignored by the operator. */
function ignoredItem(view: ProjectView, pager: Pager): Html {
  if (view.ignored.length === 0) return '';
  return html`<li class="dim">Released or ignored, and still billed: ${pager.of(view.ignored).map(ignoredName).join(', ')}${remediesHtml(waysWithIgnored(), flagsOf(view))}</li>`;
}
