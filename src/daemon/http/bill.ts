import { html } from 'hono/html';
import { nounOf } from '../../core/keys.ts';
import { factsOf, isAddress, kindsWith } from '../../core/kind-facts.ts';
import { counted } from '../../core/text.ts';
import { waysWithIgnored } from '../../core/ways-out.ts';
import { ignoredName } from '../../engine/claims/unattached.ts';
import type { ProjectFacts } from '../project/facts.ts';
import { leakingAddresses, unattachedAddresses } from '../project/troubles.ts';
import { addressPrice, perMonth } from './dangers.ts';
import { Pager } from './pager.ts';
import { remediesHtml } from './remedies.ts';
import { ignoredIn } from './status.ts';
import { type Html, keyText, marked } from './text.ts';

/** Everything that is billed, with its cost where prices are known. */
export function billPanel(facts: ProjectFacts, pager = new Pager()): Html {
  const { known, world, plan } = facts;
  const { idle, unconfirmed } = unattachedAddresses(facts);
  const leaking = leakingAddresses(facts).length;
  // Before the first refresh, a number would be wrong.
  const bound = (known?.bindings ?? []).filter(({ kind }) => isAddress(kind)).map(({ id }) => id);
  const ids = new Set([...(world?.ips ?? []).map(({ id }) => String(id)), ...bound]);
  const addresses =
    world === undefined ? [] : [`${counted(ids.size, 'address', 'addresses')}, unmanaged ones included`];
  const managed = kindsWith('counted').flatMap((kind) => {
    const count = known?.bindings.filter((each) => each.kind === kind).length ?? 0;
    return count === 0 && !factsOf(kind).bought ? [] : [counted(count, `managed ${nounOf(kind)}`)];
  });
  const unknown = plan?.cost.unknown ?? [];
  return html`<section id="bill"><h2>Cost</h2>${monthly(plan, unconfirmed.length > 0)}<ul>
<li>${[...managed, ...addresses].join(', ')}</li>
${leaking === 0 ? '' : html`<li class="bad">Not included: <a href="#danger">${counted(leaking, 'address', 'addresses')} under Danger</a>${costOf(world, leaking)}</li>`}
${pager.of(idle.filter(({ key }) => key !== null)).map(({ ip, key }) => html`<li class="warn"><span class="nowrap">${ip.address}</span> is idle and billed${costOf(world, 1)} <span class="dim">${keyText(key ?? '')}</span></li>`)}
${pager.of(plan?.cost.left_billed ?? []).map((text) => html`<li class="warn">${marked(text)}</li>`)}
${ignoredItem(facts, pager)}</ul>
${unknown.length === 0 ? '' : html`<details id="unpriced"><summary class="dim">${counted(unknown.length, 'price')} not known</summary><ul>${pager.of(unknown).map((text) => html`<li class="dim">${marked(text)}</li>`)}</ul></details>`}</section>`;
}

/** The sum of known prices, and how the pending operations change it. A sum of nothing would read as free. */
function monthly(plan: ProjectFacts['plan'], isUnconfirmed: boolean): Html {
  if (plan === undefined) return html`<p class="dim">The cost is not known before the first read.</p>`;
  const { monthly: sum, known_monthly_delta: delta } = plan.cost;
  const isKnown = Number(sum.known_before) !== 0;
  const change = Number(delta);
  if (!isKnown && change === 0) {
    if (sum.unknown.length === 0) return '';
    return html`<p class="dim">No price is known for ${counted(sum.unknown.length, 'managed resource')}. Add prices with <code>--prices FILE</code>.</p>`;
  }
  const currency = sum.currency === null ? '' : ` ${sum.currency}`;
  return html`<p class="sum">${isKnown ? html`<b>${sum.known_before}${currency}</b> a month for managed resources` : ''}${isKnown && sum.unknown.length > 0 ? html`. Not included: ${counted(sum.unknown.length, 'resource')} without a known price` : ''}</p>
${change === 0 ? '' : html`<p class="${change > 0 ? 'warn' : 'good'}">${change > 0 ? '+' : '−'}${perMonth(delta.replace('-', ''), sum.currency)} when the plan is applied${isUnconfirmed ? '. An unconfirmed address is billed already' : ''}</p>`}`;
}

function costOf(world: ProjectFacts['world'], count: number): string {
  const price = addressPrice(world, count);
  return price === undefined ? '' : `, ${price}`;
}

/** Billed, and ignored by the operator. */
function ignoredItem(facts: ProjectFacts, pager: Pager): Html {
  const left = ignoredIn(facts);
  if (left.length === 0) return '';
  return html`<li class="dim">Released or ignored, and still billed: ${pager.of(left).map(ignoredName).join(', ')}${remediesHtml(waysWithIgnored(), facts.flags)}</li>`;
}
