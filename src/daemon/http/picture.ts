import { html } from 'hono/html';
import { networkObject } from '../../core/claims.ts';
import { type KeyStatus, keyStatuses } from '../../core/key-status.ts';
import { containersOf, type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf, isAddress } from '../../core/kind-facts.ts';
import { cut } from '../../core/text.ts';
import { type ProjectView, type ResourceView, resourcesIn } from '../../view/project-view.ts';
import { statusWord } from '../../view/words.ts';
import { absenceText } from './text.ts';

/** One box of the picture. */
interface Box {
  readonly id: string;
  readonly title: string;
  readonly note: string;
  readonly standing: KeyStatus;
  /** The standing in words, where its own are not enough. */
  readonly says?: string;
  /** Billed, and of no use. */
  readonly idle: boolean;
}

/** The number of boxes in a column. The lists of the page have the further resources. */
const mostBoxes = 100;

/** The boxes of the resources, and their connections: ids of two boxes each, the left one first. */
function boxesOf(view: ProjectView) {
  const resources = resourcesIn(view);
  const inside = Map.groupBy(resources, ({ key }) => containersOf(key)[0]);
  const network = networkObject('').kind;
  const servers = resources.filter(({ kind }) => factsOf(kind).container).slice(0, mostBoxes);
  const networks = resources.filter(({ kind }) => kind === network).slice(0, mostBoxes);
  const isNetwork = new Set<string>(networks.map(({ key }) => key));
  const linked = servers.flatMap(({ key, linked }) =>
    linked.map((other) => (isNetwork.has(other) ? ([other, key] as const) : ([key, other] as const))),
  );
  // An address without a key comes with its server.
  const unkeyed = (view.addresses ?? []).flatMap((each) =>
    each.server === null || each.key !== null ? [] : [[each.server, boxId(each)] as const],
  );
  return {
    networks: networks.map(networkBox),
    servers: servers.map((each) => serverBox(each, inside.get(each.key) ?? [], view)),
    addresses: addressBoxes(view, resources),
    links: [...linked, ...unkeyed],
  };
}

function serverBox(server: ResourceView, parts: readonly ResourceView[], { exposed }: ProjectView): Box {
  const { key, detail, id } = server;
  // As bad as the worst of its parts.
  const seen = [server, ...parts].map(({ standing }) => standing);
  const standing = keyStatuses.findLast((each) => seen.includes(each)) ?? 'unknown';
  const note = [detail ?? [], id === null ? absenceText(server) : `id ${id}`].flat().join(' · ');
  const box = { id: key, title: nameOf(key), note, idle: false };
  if (exposed?.includes(key)) return { ...box, standing: 'blocked', says: 'exposed' };
  return {
    ...box,
    standing,
    ...(standing === 'undeclared' ? { says: 'a part of it has left the spec' } : {}),
  };
}

function networkBox({ key, detail, standing, managed }: ResourceView): Box {
  const says = managed ? {} : { says: 'not managed' };
  return { id: key, title: nameOf(key), note: detail ?? '', standing, ...says, idle: false };
}

type AddressView = NonNullable<ProjectView['addresses']>[number];

/** Another address may still be the result of an unconfirmed write. */
function ownKey({ key, use }: AddressView): ResourceKey | null {
  return use === 'unconfirmed' ? null : key;
}

function boxId(address: AddressView): string {
  return ownKey(address) ?? `ip ${address.id}`;
}

/** All addresses of the project, and those that are only declared so far. */
function addressBoxes(view: ProjectView, resources: readonly ResourceView[]): readonly Box[] {
  const { addresses } = view;
  const declared = new Map<string, ResourceView>(
    resources.flatMap((each) => (isAddress(each.kind) ? [[each.key, each]] : [])),
  );
  const box = (each: AddressView): Box => {
    const key = ownKey(each);
    const isUnconfirmed = each.use === 'unconfirmed';
    const whose =
      key !== null ? nameOf(key) : each.server === null ? 'not in the spec' : 'comes with its server';
    const says = isUnconfirmed
      ? 'billed and unconfirmed'
      : each.use === 'idle'
        ? 'billed and idle'
        : 'not managed';
    const standing = declared.get(key ?? '')?.standing;
    return {
      ...{ id: boxId(each), title: each.address, note: isUnconfirmed ? `may be ${each.key}` : whose },
      ...(standing === undefined ? { standing: 'unknown', says } : { standing }),
      idle: isUnconfirmed || each.use === 'idle',
    };
  };
  const absent = (each: ResourceView): Box => {
    const { key, id, standing } = each;
    const note = id === null ? absenceText(each) : `id ${id}`;
    return { id: key, title: nameOf(key), note, standing, idle: false };
  };
  const shown = new Set<string | null>(addresses?.map(({ key }) => key));
  return [
    ...(addresses ?? []).slice(0, mostBoxes).map(box),
    ...[...declared.values()].filter(({ key }) => !shown.has(key)).map(absent),
  ].slice(0, mostBoxes);
}

/** A server's own address has no name but its server's. */
function nameOf(key: ResourceKey): string {
  const { name, parent, kind } = takeApart(key);
  return parent !== undefined && isAddress(kind) ? `own address of ${takeApart(parent).name}` : name;
}

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
export function drawPicture(view: ProjectView) {
  const { networks, servers, addresses, links } = boxesOf(view);
  const placed = new Map<string, Placed>();
  const height = (count: number) => count * (size.height + size.gap);
  const tallest = Math.max(height(networks.length), height(servers.length), height(addresses.length), 60);
  const drawn = [
    ['Networks', networks, columns.networks],
    ['Servers', servers, columns.servers],
    ['Addresses', addresses, columns.addresses],
  ] as const;
  for (const [, boxes, x] of drawn) {
    const offset = size.top + (tallest - height(boxes.length)) / 2;
    boxes.forEach((box, index) => {
      placed.set(box.id, { box, x, y: offset + height(index) });
    });
  }
  const total = tallest + size.top + size.gap;
  return html`<svg viewBox="0 0 ${size.width} ${total}" role="img" aria-label="${networks.length} networks, ${servers.length} servers, ${addresses.length} addresses and their connections">
${drawn.map(([title, boxes, x]) => html`<text class="column" x="${x + size.box / 2}" y="16">${title}${boxes.length < mostBoxes ? '' : ` (the first ${mostBoxes})`}</text>`)}
${links.map(([a, b]) => drawLink(placed.get(a), placed.get(b)))}
${[...placed.values()].map(drawBox)}
</svg>`;
}

function drawLink(from: Placed | undefined, to: Placed | undefined) {
  if (from === undefined || to === undefined) return '';
  const [x1, y1] = [from.x + size.box, from.y + size.height / 2];
  const [x2, y2] = [to.x, to.y + size.height / 2];
  const bend = (x2 - x1) / 2;
  return html`<path class="link" d="M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}"/>`;
}

function drawBox({ box, x, y }: Placed) {
  const { title, note, standing, idle, says = statusWord(standing) } = box;
  return html`<g class="box ${standing}${idle ? ' idle' : ''}"><title>${title}: ${says}${note === '' ? '' : `, ${note}`}</title>
<rect x="${x + 0.5}" y="${y + 0.5}" width="${size.box - 1}" height="${size.height}" rx="7"/>
<circle cx="${x + 15}" cy="${y + 17}" r="4.5"/>
<text class="name" x="${x + 27}" y="${y + 21}">${cut(title, most.title)}</text>
<text class="note" x="${x + 27}" y="${y + 37}">${cut(note, most.note)}</text>
<text class="status" x="${x + 27}" y="${y + 52}">${cut(says, most.note)}</text></g>`;
}
