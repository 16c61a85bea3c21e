import { describe, expect, test } from 'vitest';
import type { Claim } from '../../src/core/claims.ts';
import type { Binding, Intent } from '../../src/core/state.ts';
import { billOf, leaksIn } from '../../src/view/bill.ts';
import type { ProjectFacts } from '../../src/view/facts.ts';

const at = (ms: number) => new Date(ms).toISOString();
const ip = (id: number, server: number | null = null) => ({ id, address: `a${id}`, server_id: server });
const bound = (key: string, kind: string, id: string, more: object = {}) =>
  ({ key, kind, id, identity: {}, boundAt: 1_000, ...more }) as unknown as Binding;
const intent = (key: string, kind: string, more: object = {}) =>
  ({
    ...{ id: key, key, kind, verb: 'create', phase: 'sending', createdAt: 2_000 },
    ...{ preimage: {}, request: { path: {} } },
    ...more,
  }) as unknown as Intent;
const claim = (kind: string, id: string, holder: object, more: object = {}) =>
  ({ kind, id, identity: {}, holder, at: 3_000, ...more }) as Claim;
const onAddress = (holder: object) => claim('ip', '51', holder, { identity: { address: 'a51' } });
const answered = (id: string) => ({ phase: 'accepted', answer: { id, facts: {} } });
const lost = { phase: 'unknown', unconfirmed: { why: 'lost', question: {} } };

type Lists = 'ips' | 'bindings' | 'intents' | 'claims' | 'history' | 'entries' | 'operations';
type Given = Partial<Record<Lists | 'warnings' | 'blocked', readonly object[]>> & {
  readonly observed?: object;
  readonly unmanaged?: string;
  readonly more?: object;
};
function bill({ ips, observed = new Map(), entries, operations, more = {}, ...given }: Given) {
  const { bindings = [], intents = [], claims = [], history } = given;
  const { warnings = [], blocked = [], unmanaged = 'block' } = given;
  const plan = { operations, warnings, blocked, observed_at: '2026-11-01T00:00:00Z' };
  return billOf({
    id: 4711,
    known: { now: 0, bindings, intents, claims, ...(history && { history }) },
    ...(ips && { world: { ips, observed } }),
    ...(entries && { offer: { desired: { resources: entries, settings: { unmanaged } } } }),
    ...(operations && { plan }),
    ...more,
  } as unknown as ProjectFacts);
}
const byOperator = { is: 'ignored', by: 'operator' };
const a = bound('ips.a', 'ip', '51');
const w = bound('servers.w', 'server', '7');
const planned = (verb: string, target?: string) => ({ key: 'servers.w', kind: 'server', verb, target });

describe('src/view/bill.ts: an address', () => {
  const one = (given: Given) => {
    const [view] = bill({ ips: [ip(51)], ...given }).addresses ?? [];
    return view && [view.use, view.key, view.server, view.since].join(' ');
  };
  const asked = { key: 'ips.a', kind: 'ip' };
  const adopting = [{ ...asked, verb: 'adopt', target: '51' }];
  const gone = (more: object = {}) =>
    intent('servers.old', 'server', {
      verb: 'delete',
      phase: 'closed',
      outcome: 'done',
      closedAt: 9_000,
      preimage: { addresses: ['a51'] },
      ...more,
    });
  test.each<[string, Given, string]>([
    ['an entry shows', { entries: [asked], observed: new Map([['ips.a', { id: '51' }]]) }, 'idle ips.a  '],
    ['the plan adopts', { operations: adopting }, 'idle ips.a  '],
    ['the plan deletes', { operations: [{ ...asked, verb: 'delete', target: '51' }] }, 'idle   '],
    ['the operator ignores', { claims: [onAddress(byOperator)] }, 'ignored   '],
    [
      'a server has, and a key is bound to',
      { ips: [ip(51, 7)], bindings: [w, a] },
      `attached ips.a servers.w ${at(1_000)}`,
    ],
    ['a deleted server had', { history: [gone()] }, `idle   ${at(9_000)}`],
    ['a deleted server had, and a key has', { history: [gone()], bindings: [a] }, `idle ips.a  ${at(9_000)}`],
    ['a refused deletion had', { history: [gone({ outcome: 'refused' })] }, 'idle   '],
    ['an update had', { history: [gone({ verb: 'update' })] }, 'idle   '],
    ['a server without a record had', { history: [gone({ preimage: {} })] }, 'idle   '],
    ['this process has seen idle', { more: { idleSince: new Map([[51, 8_000]]) } }, `idle   ${at(8_000)}`],
  ])('that %s', (_name, given, expected) => {
    expect(one(given)).toBe(expected);
  });

  test('is counted by its use, with its price', () => {
    const given: Given = {
      ips: [ip(51), ip(52), ip(53, 7)],
      intents: [intent('ips.b', 'ip', { ...lost, preimage: { ips: ['51', '53'] } })],
      bindings: [a],
    };
    const prices = { address: '2.5', currency: 'EUR' };
    const made = bill({ ...given, more: { prices } });
    expect(made.idle).toEqual([{ id: '51', what: 'address a51', key: 'ips.a', since: null }]);
    expect(made.unconfirmed).toEqual([{ id: '52', what: 'address a52', key: 'ips.b', since: null }]);
    const servers = made.addresses?.map(({ id, server_id }) => `${id} ${server_id}`);
    expect(servers).toEqual(['51 null', '52 null', '53 7']);
    const price = { currency: 'EUR', known: '2.50' };
    expect(made).toMatchObject({ address_price: price, idle_monthly: price });
    const unnamed = { currency: null, known: '1.00' };
    expect(bill({ ...given, more: { prices: { address: '1' } } }).address_price).toEqual(unnamed);
    for (const none of [{}, { prices: {} }]) expect(bill({ ...given, more: none }).address_price).toBeNull();
    const unread = { addresses: null, idle: null, idle_monthly: null, unconfirmed: null, unmanaged: null };
    expect(bill({ more: { prices } })).toMatchObject(unread);
    expect(bill({ ips: [], more: { prices } }).idle_monthly).toEqual({ currency: 'EUR', known: '0.00' });
  });
});

describe('src/view/bill.ts: the billed resources', () => {
  const backupOf7 = (id: string, holder: object) => claim('backup', id, holder, { parentId: '7' });
  const backups = ['b1', 'b2'].map((id) => backupOf7(id, { is: 'leftover', formerKey: 'servers.w' }));
  const created = intent('servers.w', 'server', answered('7'));
  const ignored = claim('server', '9', byOperator);
  const [own, other, address] = [
    `7: server 7 servers.w ${at(1_000)}`,
    '9: server 9 null null',
    '51: address a51 null null',
  ];
  const texts = (given: Given) =>
    bill(given).billed.map(({ id, what, key, since }) => `${id}: ${what} ${key} ${since}`);
  test.each<[string, Given, readonly string[]]>([
    [
      'a bound address, unread',
      { bindings: [bound('ips.a', 'ip', '51', { identity: { address: 'a51' } })] },
      [`51: address a51 ips.a ${at(1_000)}`],
    ],
    ['a bound address without its address', { bindings: [a] }, [`51: address 51 ips.a ${at(1_000)}`]],
    ['a creation that was answered', { intents: [created] }, [`7: server 7 servers.w ${at(2_000)}`]],
    [
      'one server of a creation that another key is bound to',
      { intents: [{ ...created, key: 'servers.v' }], bindings: [w] },
      [own],
    ],
    ['a creation without an answer', { intents: [intent('servers.w', 'server')] }, []],
    ['an update that was answered', { intents: [{ ...created, verb: 'update' }] }, []],
    [
      'an image',
      { intents: [intent('server_images.i', 'server_image', answered('7'))] },
      [`7: server image 7 server_images.i ${at(2_000)}`],
    ],
    ['an adoption', { operations: [planned('adopt', '7')] }, ['7: server 7 servers.w null']],
    ['an adoption by a bound key', { operations: [planned('adopt', '8')], bindings: [w] }, [own]],
    ['a deletion', { operations: [planned('delete', '7')] }, []],
    ['an adoption without an id', { operations: [planned('adopt')] }, []],
    ['a bound server of an address', { ips: [ip(51, 7)], bindings: [w] }, [own, address]],
    ['an ignored server', { claims: [ignored] }, [other]],
    ['an ignored address', { claims: [claim('ip', '9', byOperator)] }, ['9: address 9 null null']],
    [
      'left backups',
      { claims: backups },
      ['b1', 'b2'].map((id) => `${id}: backup ${id} of server 7 servers.w ${at(3_000)}`),
    ],
    [
      'a backup that was released with its server',
      { claims: [backupOf7('b1', { is: 'released', by: 'file', formerKey: 'servers.w.backup' })] },
      [`b1: backup b1 of server 7 null ${at(3_000)}`],
    ],
  ])('have %s', (_name, given, expected) => {
    expect(texts(given)).toEqual(expected);
  });

  const released = { code: 'released', key: 'servers.w' };
  test.each<[string, Given, boolean]>([
    ['whose binding ends, and that is gone', { warnings: [released], ips: [] }, false],
    ['that the project no longer has', { blocked: [{ ...released, code: 'not_found' }], ips: [] }, false],
    ['whose binding ends, unread', { warnings: [released] }, true],
    ['with another warning', { warnings: [{ ...released, code: 'drift' }], ips: [] }, true],
  ])('count a server %s', (_name, given, isBilled) => {
    expect(bill({ bindings: [w], operations: [], ...given }).billed.some(({ id }) => id === '7')).toBe(
      isBilled,
    );
  });

  test('without a state and without reads, nothing is known', () => {
    const facts = { id: 1, offer: { desired: { resources: [{ key: 'ips.a', kind: 'ip' }], settings: {} } } };
    const nothing = { addresses: null, billed: [], ignored: [] };
    expect(billOf(facts as unknown as ProjectFacts)).toMatchObject(nothing);
    const read = { ...facts, world: { ips: [ip(51)], observed: new Map() } };
    expect(billOf(read as unknown as ProjectFacts).addresses).toMatchObject([{ use: 'idle', since: null }]);
  });

  test('left backups are listed by their server', () => {
    expect(bill({ claims: backups }).left_backups).toEqual([
      { server_id: '7', key: 'servers.w', backups: ['b1', 'b2'], since: at(3_000) },
    ]);
  });

  test.each<[string, Intent, boolean]>([
    ['a purchase accepted without an id', intent('ips.a', 'ip', { phase: 'accepted', answer: {} }), true],
    ['a purchase that was answered', intent('ips.a', 'ip', answered('51')), false],
    ['a purchase that waits', intent('ips.a', 'ip', { phase: 'waiting' }), false],
    ['a network', intent('networks.n', 'network'), false],
    ['a deletion', intent('ips.a', 'ip', { verb: 'delete' }), false],
  ])('may include one more: %s', (_name, open, mayBe) => {
    expect(bill({ intents: [open] }).unconfirmed_creations).toEqual(mayBe ? [open.key] : []);
  });

  test.each<[string, Given, readonly string[] | null]>([
    [
      'a server and its addresses',
      { ips: [ip(51, 9), ip(52, 9), ip(53)] },
      ['server 9 a51,a52', 'ip 53 a53'],
    ],
    ['nothing that the spec ignores', { ips: [ip(51)], entries: [], unmanaged: 'ignore' }, []],
  ])('are unmanaged: %s', (_name, given, expected) => {
    const found = bill(given).unmanaged?.map(
      ({ kind, id, addresses }) => `${kind} ${id} ${addresses.join()}`,
    );
    expect(found ?? null).toEqual(expected);
  });

  test('list ignored resources separately', () => {
    expect(bill({ claims: [ignored], ips: [ip(51, 9)] }).ignored).toEqual([
      { kind: 'server', id: '9', addresses: ['a51'] },
    ]);
  });

  test('leaks are idle addresses without a key, unconfirmed addresses, and left backups', () => {
    const idle = [{ key: null }, { key: 'ips.a' }] as never;
    expect(leaksIn({ idle, unconfirmed: [{}, {}] as never, left_backups: [{}] as never })).toBe(4);
    const two = [{ key: null }, { key: null }, { key: 'ips.a' }] as never;
    expect(leaksIn({ idle: two, unconfirmed: null, left_backups: [] })).toBe(2);
    expect(leaksIn({ idle: null, unconfirmed: null, left_backups: [] })).toBe(0);
  });
});
