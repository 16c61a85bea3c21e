import { html } from 'hono/html';
import { grouped } from '../../core/world.ts';
import { statusText } from './key-status.ts';
import type { Html } from './text.ts';
import type { Box, Picture } from './view.ts';

const size = { width: 760, box: 200, height: 60, gap: 14, top: 30 } as const;
const columns = { networks: 0, servers: 280, addresses: 560 } as const;
/** A box holds about so many characters of its title and note. */
const most = { title: 24, note: 31 } as const;

interface Placed {
  readonly box: Box;
  readonly x: number;
  readonly y: number;
}

/** The project drawn: networks, servers and addresses in columns, with lines between connected ones. */
export function drawPicture({ networks, servers, addresses, links }: Picture) {
  const placed = new Map<string, Placed>();
  const height = (count: number) => count * (size.height + size.gap);
  const tallest = Math.max(height(networks.length), height(servers.length), height(addresses.length), 60);
  for (const [boxes, x] of [
    [networks, columns.networks],
    [servers, columns.servers],
    [addresses, columns.addresses],
  ] as const) {
    const offset = size.top + (tallest - height(boxes.length)) / 2;
    boxes.forEach((box, index) => {
      placed.set(box.id, { box, x, y: offset + height(index) });
    });
  }
  const total = tallest + size.top + size.gap;
  const titles = [
    ['Networks', columns.networks],
    ['Servers', columns.servers],
    ['Addresses', columns.addresses],
  ] as const;
  return html`<svg viewBox="0 0 ${size.width} ${total}" role="img" aria-label="${networks.length} networks, ${servers.length} servers, ${addresses.length} addresses and their connections">
${titles.map(([title, x]) => html`<text class="column" x="${x + size.box / 2}" y="16">${title}</text>`)}
${links.map(([a, b]) => drawLink(placed.get(a), placed.get(b)))}
${[...placed.values()].map(drawBox)}
</svg>`;
}

/** The same for a narrow screen: each server with its networks and addresses below it, then everything else. */
export function drawOutline({ networks, servers, addresses, links }: Picture): Html {
  const linked = grouped(links.flatMap(([a, b]) => [[a, b] as const, [b, a] as const]));
  const linkedTo = (id: string, boxes: readonly Box[]) => {
    const others = new Set(linked.get(id));
    return boxes.filter((box) => others.has(box.id));
  };
  const isAlone = ({ id }: Box) => !linked.has(id);
  const leaf = (noun: string) => (box: Box) =>
    html`<li class="${classOf(box)}"><span class="dot"></span>${box.title.startsWith(`own ${noun}`) ? '' : noun} <strong>${box.title}</strong> <span class="dim">${box.note}</span>${badge(box)}</li>`;
  /** The dot alone shows that a box is converged. */
  const badge = (box: Box): Html =>
    box.standing === 'converged'
      ? ''
      : html` · <span class="nowrap ${levelOfBox(box)}">${saysOf(box)}</span>`;
  return html`<ul class="outline">${servers.map(
    (
      server,
    ) => html`<li class="${classOf(server)}"><span class="dot"></span><strong>${server.title}</strong> <span class="dim">${server.note}</span>${badge(server)}
<ul>${linkedTo(server.id, networks).map(leaf('network'))}${linkedTo(server.id, addresses).map(leaf('address'))}</ul></li>`,
  )}${networks.filter(isAlone).map(leaf('network'))}${addresses.filter(isAlone).map(leaf('address'))}</ul>`;
}

function classOf({ standing, idle }: Box): string {
  return `${standing}${idle ? ' idle' : ''}`;
}

function levelOfBox({ standing, idle }: Box): string {
  return idle ? 'warn' : standing;
}

function saysOf({ standing, says = statusText(standing) }: Box): string {
  return says;
}

function drawLink(from: Placed | undefined, to: Placed | undefined) {
  if (from === undefined || to === undefined) return '';
  const [x1, y1] = [from.x + size.box, from.y + size.height / 2];
  const [x2, y2] = [to.x, to.y + size.height / 2];
  const bend = (x2 - x1) / 2;
  return html`<path class="link" d="M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}"/>`;
}

function drawBox({ box, x, y }: Placed) {
  const { title, note } = box;
  const says = saysOf(box);
  return html`<g class="box ${classOf(box)}"><title>${title}: ${says}${note === '' ? '' : `, ${note}`}</title>
<rect x="${x + 0.5}" y="${y + 0.5}" width="${size.box - 1}" height="${size.height}" rx="7"/>
<circle cx="${x + 15}" cy="${y + 17}" r="4.5"/>
<text class="name" x="${x + 27}" y="${y + 21}">${cut(title, most.title)}</text>
<text class="note" x="${x + 27}" y="${y + 37}">${cut(note, most.note)}</text>
<text class="status" x="${x + 27}" y="${y + 52}">${cut(says, most.note)}</text></g>`;
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
