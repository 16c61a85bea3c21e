import { countedBeside, interfacesOf } from '../../core/attribute.ts';
import type { LeftBehind, SentWrite } from '../../core/evidence.ts';
import { member } from '../../core/json.ts';
import type { Known } from '../../core/kind.ts';
import type { ReadPort } from '../../core/ports.ts';
import type { Preimage } from '../../core/preimage.ts';
import type { Ip, Server, ServerId } from '../../core/resources.ts';
import { cutShort, cutShortIps, done, doneIf, notDone, recordedIds, unclear } from '../verdicts.ts';

export interface ServerBefore extends Preimage {
  /** The number of servers in each network, by the id of the network. */
  readonly server_counts: readonly (readonly [network: number, servers: number | null])[];
}

/** The documented reads show a new server only by its public address; the profile may enable a list of servers. */
export async function evidenceOfCreation(intent: SentWrite, read: ReadPort, known: Known) {
  const ips = await read.ips();
  const addressesOf = (id: string) =>
    ips
      .filter((each) => String(each.server_id) === id)
      .map((each) => ({ id: each.id, address: each.address }));
  const made = intent.answer?.id;
  if (made !== undefined) {
    const interfaces = await read.findNetworkInterfaces(Number(made) as ServerId);
    const addresses = addressesOf(made);
    if (interfaces === undefined && addresses.length === 0)
      return { verdict: 'not_done', gone: true, ...leftBehind(intent, ips, known) } as const;
    // Its address is billed and must be bound with it, so a list that does not show the address yet does not end the
    // wait. If no task reported the end, a server without its network interface does not end it either. @assumption
    // A28 @assumption A34
    if (isAnother(intent, addresses, await read.servers?.())) return notDone;
    const hasInterface = intent.answer?.taskId !== undefined || interfaces?.some((each) => each.public);
    const hasAddress = asksForAddress(intent) || intent.answer?.facts.address !== undefined;
    return (hasAddress && addresses.length === 0) || (asksForAddress(intent) && !hasInterface)
      ? ({ verdict: 'pending', id: made, facts: { addresses } } as const)
      : { ...done(made), facts: { addresses } };
  }
  const before = recordedIds(intent.preimage.servers);
  const listed = await read.servers?.();
  const isWhole = listed !== undefined && !(await isCutShort(listed, [...before, ...known('server')], read));
  const named = (listed ?? []).filter((each) => each.name.trim() === member(intent.request.body, 'name'));
  const appeared = [
    ...new Set([
      ...ips.flatMap(({ server_id }) => (server_id === null ? [] : [String(server_id)])),
      ...named.map(({ id }) => String(id)),
    ]),
  ].filter((id) => !before.has(id) && !known('server').has(id));
  const called = (id: string) =>
    [
      ...(listed ?? []).filter((each) => String(each.id) === id).map(({ name }) => `"${name.trim()}"`),
      ...addressesOf(id).map(({ address }) => address),
    ].join(', ');
  const all = appeared.map((id) => (called(id) === '' ? id : `${id} (${called(id)})`)).join(', ');
  if (!asksForAddress(intent) && !isWhole) {
    // The server that appeared may be unmanaged, while no read shows the created one. @assumption A22
    const came = appeared.length === 0 ? '' : `server ${all} is new, but `;
    const hidden =
      listed === undefined
        ? 'the API does not show servers without a public address'
        : 'the list of servers is incomplete: it lacks a server that exists';
    const reason = `${came}${hidden}`;
    return { verdict: 'unseen', reason, candidates: appeared } as const;
  }
  const [one, another] = appeared;
  if (another !== undefined) {
    const reason = `${appeared.length} new servers exist: ${all}`;
    return { verdict: 'unclear', reason, candidates: appeared } as const;
  }
  if (one !== undefined) {
    const facts = { addresses: addressesOf(one) };
    // The only new server, listed under the name of the entry.
    const certain = isWhole && named.length === 1 && String(named[0]?.id) === one;
    return { verdict: 'done', id: one, certain, called: called(one), facts } as const;
  }
  const short = await cutShortIps(ips, recordedIds(intent.preimage.ips), known('ip'), read);
  return short ?? (await shownByCount(intent, read, known('server'))) ?? notDone;
}

/**
 * A network that counts more servers than before the creation, other than the servers of this spec: the list of
 * addresses may lack the created server. @assumption A8 @assumption A15
 */
async function shownByCount({ preimage }: SentWrite, read: ReadPort, managedIds: ReadonlySet<string>) {
  const counts = new Map((preimage as Partial<ServerBefore>).server_counts);
  const risen = (await read.networks()).filter(
    ({ id, server_count }) => (server_count ?? 0) > (counts.get(id) ?? Number.POSITIVE_INFINITY),
  );
  if (risen.length === 0) return undefined;
  const before = recordedIds(preimage.servers);
  const all = await interfacesOf(managedIds, read);
  const old = new Map([...all].filter(([id]) => before.has(id)));
  const network = risen.find((each) => {
    const earlier = { id: each.id, server_count: counts.get(each.id) ?? 0 };
    return countedBeside(each, all) > countedBeside(earlier, old);
  });
  if (network === undefined) return undefined;
  return unclear(`network ${network.name} counts a new server that no list shows`, []);
}

/** Whether the list lacks a server whose own read shows it. @assumption A8 */
async function isCutShort(listed: readonly Server[], expected: readonly string[], read: ReadPort) {
  const ids = listed.map(({ id }) => id);
  const isThere = async (id: string) =>
    (await read.findNetworkInterfaces(Number(id) as ServerId)) !== undefined;
  return (await cutShort('servers', ids, expected, isThere)) !== undefined;
}

/** The id in the answer may belong to another user's server by now. @assumption A17 */
function isAnother(
  { answer, request }: SentWrite,
  attached: readonly { readonly address: string }[],
  listed: readonly Server[] | undefined,
): boolean {
  const namedAddress = answer?.facts.address;
  if (namedAddress !== undefined && attached.length > 0)
    return !attached.some(({ address }) => address === namedAddress);
  if (answer === undefined || answer.to === 'this_send') return false;
  const shown = listed?.find(({ id }) => String(id) === answer.id);
  return shown !== undefined && shown.name.trim() !== member(request.body, 'name');
}

function asksForAddress({ request }: SentWrite): boolean {
  return member(request.body, 'public_ipv4') !== undefined;
}

/**
 * The address of a failed creation: the one that the answer named, or any that came at the same time. @assumption A40
 */
function leftBehind(
  { preimage, answer }: SentWrite,
  ips: readonly Ip[],
  known: Known,
): { readonly strays?: boolean; readonly left?: LeftBehind } {
  const before = recordedIds(preimage.ips);
  const managed = known('ip');
  const free = ips.filter(
    ({ id, server_id }) => server_id === null && !before.has(String(id)) && !managed.has(String(id)),
  );
  const namedAddress = answer?.facts.address;
  if (namedAddress === undefined) return { strays: free.length > 0 };
  const addresses = free.flatMap(({ id, address }) => (address === namedAddress ? [{ id, address }] : []));
  return addresses.length === 0 ? {} : { left: { addresses } };
}

/** A server is gone once its network interfaces answer 404 and no address is attached to it. */
export async function evidenceOfDeletion(intent: SentWrite, read: ReadPort) {
  const id = Number(intent.request.path.id) as ServerId;
  if ((await read.findNetworkInterfaces(id)) !== undefined) return notDone;
  const attached = (await read.ips()).some(({ server_id }) => server_id === id);
  const listed = ((await read.servers?.()) ?? []).some((each) => each.id === id);
  return doneIf(!attached && !listed, id);
}

/**
 * If no read shows the sizes, an accepted resize is believed, and an unanswered one is sent again with the same
 * content.
 */
export async function evidenceOfResize(intent: SentWrite, read: ReadPort) {
  const id = Number(intent.request.path.server_id) as ServerId;
  const shown = (await read.findServer?.(id)) ?? (await read.servers?.())?.find((each) => each.id === id);
  const asked = intent.request.body as Readonly<Record<string, number>>;
  const seen = Object.entries(asked).map(([size, value]) => [member(shown, size), value] as const);
  const visible = seen.filter(([now]) => now !== undefined);
  const same = visible.every(([now, value]) => now === value);
  const accepted = intent.phase === 'accepted' && intent.answer?.end !== 'failed';
  return doneIf(same && (visible.length === seen.length || accepted), id);
}
