import { describe, expect, test } from 'vitest';
import {
  attribute,
  type ClaimRecords,
  countedBeside,
  interfacesOf,
  type ServerInterfaces,
  type Shown,
  serversShown,
} from '../../src/core/attribute.ts';
import type { Claim } from '../../src/core/claims.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Ip } from '../../src/core/resources.ts';
import type { Intent } from '../../src/core/state.ts';
import { sampleAnswer } from '../conformance/state-samples.ts';

const address = (id: number, server: number | null = null) =>
  ({ id, address: `203.0.113.${id}`, server_id: server, primary: true }) as unknown as Ip;
const ignored = { is: 'ignored', by: 'operator' } as const;
const claim = (kind: 'server' | 'ip', id: number, more: Partial<Claim> = {}): Claim => ({
  ...{ kind, id: String(id), holder: ignored, at: 0 },
  identity: kind === 'ip' ? { address: `203.0.113.${id}` } : {},
  ...more,
});
const creation = (more: object) =>
  ({ key: 'servers.new', kind: 'server', verb: 'create', phase: 'unknown', ...more }) as Intent;

/** Who holds what, where `bound` names the keys by kind and id. */
function held(
  ips: readonly Ip[],
  records: Partial<ClaimRecords>,
  bound: Record<string, string> = {},
  servers: number[] = [],
) {
  const shown: Shown = {
    ips,
    servers: servers.map((id) => ({ id })),
    keyOf: ({ kind, id }) => bound[`${kind} ${id}`] as ResourceKey | undefined,
  };
  return attribute(shown, { claims: [], intents: [], ...records });
}

describe('src/core/attribute.ts', () => {
  test('an address on a managed server is managed, and a key whose object has changed owns nothing', () => {
    const bound = { 'server 7': 'servers.web', 'ip 1': 'ips.a' };
    const ips = [address(1), address(2, 7)];
    expect(held(ips, {}, bound).unmanaged).toEqual({ servers: [], addresses: [] });
    const changed = (key: ResourceKey) => key === 'ips.a';
    expect(held(ips, { changed }, bound).unmanaged.addresses.map(({ id }) => id)).toEqual([1]);
  });

  test('an ignored address is known by its text, and an ignored server by one of its addresses', () => {
    const claims = [claim('server', 7), claim('ip', 2), claim('ip', 1, { identity: { address: '1.2.3.4' } })];
    expect(held([address(1), address(2, 7)], { claims }).address(address(1)).is).toBe('unmanaged');
    expect(held([address(2, 7), address(3, 7)], { claims }).unmanaged.servers).toEqual([]);
    expect(held([address(3, 7)], { claims }).unmanaged.servers).toEqual([7]);
    expect(held([], { claims }, {}, [7]).server('7')).toEqual(ignored);
  });

  test('an ignored server with a known address is known by it, and also if no address shows the server', () => {
    const claims = [claim('server', 7, { identity: { address: address(3).address } })];
    const [same, other, none] = [[address(3, 7)], [address(4, 7)], []].map((ips) =>
      held(ips, { claims }, {}, [7]).server('7'),
    );
    expect([same, other, none]).toEqual([ignored, { is: 'unmanaged' }, ignored]);
  });

  test('a server that was found under its key is unmanaged until an entry adopts it, even if no list shows it', () => {
    const found = claim('server', 7, { holder: { is: 'found', key: 'servers.web' as ResourceKey } });
    expect(held([], { claims: [found] }).unmanaged.servers).toEqual([7]);
    expect(held([], { claims: [found] }, {}, [7]).unmanaged.servers).toEqual([7]);
    expect(held([], { claims: [found] }, { 'server 7': 'servers.web' }).unmanaged.servers).toEqual([]);
    expect(held([], { claims: [claim('server', 7)] }).unmanaged.servers).toEqual([]);
  });

  test('an answer identifies its object, and an unconfirmed creation may have created any newer object', () => {
    const preimage = { servers: [6], ips: [1] };
    const certain = held(
      [],
      { intents: [creation({ phase: 'accepted', answer: { ...sampleAnswer, id: '7' } })] },
      {},
      [7, 8],
    );
    expect(certain.server('7')).toEqual({ is: 'pending', key: 'servers.new', certain: true });
    expect(certain.unmanaged.servers).toEqual([8]);
    const open = held(
      [address(1), address(2)],
      { intents: [creation({ unconfirmed: {}, preimage })] },
      {},
      [6, 7],
    );
    expect(open.server('7')).toEqual({ is: 'pending', key: 'servers.new', certain: false });
    expect(open.address(address(2)).is).toBe('pending');
    expect([open.unmanaged.servers, open.unmanaged.addresses.map(({ id }) => id)]).toEqual([[6], [1]]);
  });

  test('an object with the id of a deleted one, but another address, is another object', () => {
    const release = (addresses: readonly string[]) =>
      creation({
        ...{ kind: 'ip', verb: 'delete', preimage: { addresses } },
        request: { name: 'release_ip', path: { id: 1 } },
      });
    const [same, other] = [[address(1).address], ['203.0.113.250']].map(
      (addresses) => held([address(1)], { removed: [release(addresses)] }).unmanaged.addresses.length,
    );
    expect([same, other]).toEqual([0, 1]);
  });

  test('a server with the id of an answer, but only other addresses than the answer named, is another server', () => {
    const made = (named: string) =>
      creation({ phase: 'accepted', answer: { ...sampleAnswer, id: '7', facts: { address: named } } });
    const [same, own, other] = [
      [address(1).address, [address(1, 7)]] as const,
      [address(1).address, [address(1, 7), address(2, 7)]] as const,
      ['203.0.113.250', [address(1, 7)]] as const,
    ].map(([named, ips]) => held(ips, { intents: [made(named)] }, { 'ip 1': 'ips.a' }).unmanaged.servers);
    expect([same, own, other]).toEqual([[], [], [7]]);
  });

  test('a released object is no longer managed, and a released server keeps its addresses', () => {
    const released = { is: 'released', by: 'file', formerKey: 'servers.old' as ResourceKey } as const;
    const claims = [claim('server', 7, { holder: released })];
    const bound = { 'ip 1': 'ips.a' };
    const known = held([address(1, 7)], { claims }, bound);
    expect([known.server('7'), known.address(address(1, 7))]).toEqual([
      released,
      { is: 'managed', key: 'ips.a' },
    ]);
  });

  test('an address on a server that an open write made belongs to that write', () => {
    const intents = [creation({ phase: 'accepted', answer: { ...sampleAnswer, id: '7', facts: {} } })];
    const known = held([address(1, 7), address(2)], { intents });
    expect(known.unmanaged.addresses.map(({ id }) => id)).toEqual([2]);
  });

  const preimage = { servers: [6], ips: [1] };
  const blocked = (code: string, candidates: readonly string[] = []) => ({
    ...{ phase: 'blocked', preimage: {} },
    blocked: { code, reason: '', candidates },
  });
  const mayHaveMade = { is: 'pending', key: 'servers.new', certain: false };
  const hasMade = { ...mayHaveMade, certain: true };
  const answer = { ...sampleAnswer, id: '7' };
  test.each<[string, object, object]>([
    ['a candidate in a question to the operator', blocked('outcome_unknown', ['7']), mayHaveMade],
    ['the answered object does not exist', { ...blocked('not_there'), answer }, { is: 'unmanaged' }],
    ['a deletion', { verb: 'delete', unconfirmed: {}, preimage }, { is: 'unmanaged' }],
    ['a creation that buys nothing', { kind: 'firewall', unconfirmed: {}, preimage }, { is: 'unmanaged' }],
    ['no list from before the creation', { unconfirmed: {}, preimage: { ips: [1] } }, { is: 'unmanaged' }],
  ])('a server next to an open write: %s', (_name, more, holder) => {
    expect(held([], { intents: [creation(more)] }, {}, [7]).server('7')).toEqual(holder);
  });

  const named = (text: string | readonly string[]) => ({
    ...{ phase: 'accepted', preimage: { servers: [], ips: [1] } },
    answer: { ...answer, facts: { address: text } },
  });
  const itsAddress = { ...hasMade, key: 'servers.new.public_ipv4' };
  test.each<[string, number, object, object]>([
    ['that its answer named', 2, named(['203.0.113.9', address(2).address]), itsAddress],
    ['that its answer did not name', 2, named('203.0.113.9'), { is: 'unmanaged' }],
    ['of the creation of an address', 2, { ...named(address(2).address), kind: 'ip' }, { is: 'unmanaged' }],
  ])('a free address next to the creation of a server: an address %s', (_name, id, more, holder) => {
    expect(held([], { intents: [creation(more)] }).address(address(id))).toEqual(holder);
  });

  test('a found key leads to its server, and to no address', () => {
    const found = { is: 'found', key: 'ips.web' as ResourceKey } as const;
    expect(held([], { claims: [claim('ip', 7, { holder: found })] }).unmanaged.servers).toEqual([]);
    expect(held([], { claims: [claim('server', 7, { holder: ignored })] }).unmanaged.servers).toEqual([]);
  });

  test('a deleted server that shows with one of its addresses, or without any, is the deleted one', () => {
    const request = { name: 'delete_server', path: { id: 7 } } as const;
    const addresses = [address(1).address, address(2).address];
    const removed = [creation({ verb: 'delete', request, preimage: { addresses } })];
    const gone = { ...hasMade };
    expect(held([], { removed }, {}, [7]).server('7')).toEqual(gone);
    expect(held([address(1, 7), address(3, 7)], { removed }).server('7')).toEqual(gone);
    expect(held([address(3, 7)], { removed }).server('7')).toEqual({ is: 'unmanaged' });
  });

  test('a server with unknown addresses at its deletion is the deleted server, with any read that shows it', () => {
    const request = { name: 'delete_server', path: { id: 7 } } as const;
    const removed = [creation({ verb: 'delete', request, preimage: {} })];
    expect(held([address(3, 7)], { removed }).server('7')).toEqual(hasMade);
  });

  test('addresses show servers that no list shows', () => {
    expect([...serversShown({ ips: [address(1), address(2, 7), address(3, 7)] })]).toEqual([7]);
  });

  test('a network counts servers in addition to the known servers', () => {
    const known = new Map([
      ['2001', [{ network_id: 3 }, { network_id: 4 }, { network_id: 4 }]],
      ['2002', [{ network_id: null }, { network_id: 4 }]],
    ]) as unknown as ServerInterfaces;
    const beside = (id: number, server_count: number | null) =>
      countedBeside({ id, server_count } as never, known);
    expect([beside(3, 2), beside(4, 2), beside(4, 1), beside(3, null), beside(5, 1)]).toEqual([
      1, 0, 0, 0, 1,
    ]);
    // A server with several interfaces in the network counts once.
    expect(beside(4, 3)).toBe(1);
  });

  test('the network interfaces of servers are those of the servers that exist', async () => {
    const cards = [{ network_id: 3 }];
    const findNetworkInterfaces = async (id: number) => (id === 2001 ? cards : undefined);
    const read = { findNetworkInterfaces } as never;
    expect(await interfacesOf(['2001', '2002'], read)).toEqual(new Map([['2001', cards]]));
  });
});
