import { describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/core/claims.ts';
import { digestOf } from '../../../src/core/json.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Binding, Intent } from '../../../src/core/state.ts';
import {
  answeredElsewhere,
  identityChanged,
  isAnother,
  makerOf,
  ownerOf,
  wasNamed,
} from '../../../src/engine/claims/claims.ts';
import {
  backupsBefore,
  deleted,
  exchanging,
  leftBackups,
  leftByDeletion,
  leftoverChanges,
  released,
  releasing,
  retiring,
} from '../../../src/engine/claims/release.ts';
import type { Run } from '../../../src/engine/run.ts';
import { bound } from '../../plan/support.ts';
import { intentOf } from '../intents/stub-run.ts';

const now = 5_000;
const key = (name: string) => name as ResourceKey;
const server = bound('servers.x', 'server', '1');
const firewall = bound('servers.x.firewall', 'firewall', '1', { parentId: '1' });
const address = bound('servers.x.public_ipv4', 'ip', '51', {
  parentId: '1',
  identity: { address: '203.0.113.1' },
});
const backup = bound('servers.x.backup', 'backup', 'b1', { parentId: '1' });

/** The part of a run that knows who holds an object. */
function knowing(
  bindings: readonly Binding[],
  {
    intents = [] as readonly object[],
    claims = [] as readonly object[],
    desired = {} as Record<string, object>,
    ips = [] as readonly object[],
    waiting = [] as readonly object[],
  } = {},
): Run {
  const byKey = new Map(bindings.map((each) => [each.key, each]));
  const run: unknown = {
    mode: {},
    moves: { waiting },
    bindings: byKey,
    intents: new Map(intents.map((each) => [(each as Intent).key, each])),
    claims: new Map(claims.map((each, at) => [String(at), each])),
    deps: { clock: { now: () => now } },
    world: {
      ips,
      ip: (id: string) => ips.find((each) => String((each as { id: number }).id) === id),
      ipsOf: (server: string) =>
        ips.filter((each) => String((each as { server_id: number }).server_id) === server),
      isUnbound: ({ id }: { id: number }) =>
        !bindings.some((each) => each.kind === 'ip' && each.id === String(id)),
      subjects: new Map(Object.entries(desired).map(([name, each]) => [name, { desired: each }])),
    },
  };
  return run as Run;
}
interface Shown {
  readonly type: string;
  readonly key?: string;
  readonly gone?: boolean;
  readonly binding?: Binding;
  readonly claim?: Claim;
}
const keys = (changes: readonly object[]) =>
  changes.map((each) => {
    const { type, key: name, binding, claim, gone } = each as Shown;
    return [type, name ?? binding?.key ?? claim?.id, ...(gone === undefined ? [] : [gone])].join(' ');
  });

describe('src/engine/claims/claims.ts', () => {
  const live = (name: string, kind: string, id: string, parentId?: string) =>
    ({ key: key(name), kind, id, parentId }) as Parameters<typeof ownerOf>[1];
  test.each([
    ['another key of the same server', live('servers.y', 'server', '1'), server],
    ['the same key', live('servers.x', 'server', '1'), undefined],
    ['another id', live('servers.y', 'server', '2'), undefined],
    ['another kind', live('networks.y', 'network', '1'), undefined],
    ['a part of the same server', live('servers.y.firewall', 'firewall', '1', '1'), firewall],
    ['a part of another server', live('servers.y.firewall', 'firewall', '1', '2'), undefined],
    ['an address, wherever it is', live('ips.a', 'ip', '51'), address],
  ])('the owner, seen from %s', (_name, seen, owner) => {
    expect(ownerOf(knowing([server, firewall, address]), seen)).toBe(owner);
  });

  test('a key that is bound to another resource at the same time owns nothing', () => {
    const run = knowing([server]);
    expect(ownerOf(run, live('servers.y', 'server', '1'), new Set([key('servers.x')]))).toBeUndefined();
  });

  const creation = (more: object = {}) => ({
    ...{
      key: 'servers.x',
      kind: 'server',
      verb: 'create',
      phase: 'accepted',
      answer: { id: '1', to: 'this_send' },
    },
    ...more,
  });
  test.each([
    ['the creation that was answered with it', creation(), true],
    ['an update', creation({ verb: 'update' }), false],
    ['a creation without an answer', creation({ phase: 'sending', answer: undefined }), false],
    ['a creation of another id', creation({ answer: { id: '2' } }), false],
  ])('the maker of a server: %s', (_name, intent, isIt) => {
    const made = makerOf(knowing([], { intents: [intent] }), live('servers.y', 'server', '1'));
    expect(made).toBe(isIt ? intent : undefined);
  });

  test.each([
    [{ address: 'a' }, { address: 'b' }, true],
    [{ address: 'a' }, { address: 'a' }, false],
    [{ address: 'a' }, {}, false],
    [{}, { address: 'a' }, false],
    [{ address: 'a', name: 'x' }, { address: 'a', name: 'y' }, true],
  ] as const)('%j and %j: another one: %s', (one, other, isIt) => {
    expect(isAnother({ identity: one }, { identity: other })).toBe(isIt);
  });

  test('an answer names the id only if it is fresh', () => {
    const answer = (more: object) => ({ id: '1', to: 'this_send', ...more }) as never;
    expect(wasNamed(answer({}), '1')).toBe(true);
    expect(wasNamed(answer({}), '2')).toBe(false);
    expect(wasNamed(answer({ to: 'unknown_send' }), '1')).toBe(false);
    expect(wasNamed(undefined, '1')).toBe(false);
    expect(identityChanged(knowing([]), key('servers.x'))).toBe(false);
  });
});

describe('src/engine/claims/claims.ts: a key that was answered with the resource of another entry', () => {
  const holder = bound('servers.b', 'server', '1', { formerKeys: ['servers.a', 'servers.z'] });
  const past = { key: 'servers.a', kind: 'server', phase: 'closed', because: 'found', outcome: 'void' };
  const creation = (more: object = {}, scope?: string) => intentOf({ ...past, ...more }, scope);
  const ignored = {
    ...{ kind: 'server', id: '1', identity: {}, at: 0 },
    holder: { is: 'ignored', by: 'operator', formerKeys: ['servers.a'] },
  };
  const asked = (
    past: readonly Intent[],
    {
      bindings = [holder],
      claims = [] as object[],
      desired = { 'servers.a': { managed: true } } as Record<string, object>,
      gone = 0,
    } = {},
  ) => {
    const run = { ...knowing(bindings, { desired }), claims: new Map(claims.map((each, at) => [at, each])) };
    const store = {
      intents: async ({ key: of }: { key: string }) => past.filter((each) => each.key === of),
      incarnation: async () => gone,
    };
    return { ...run, desired: { projectId: 4711 }, deps: { ...run.deps, store } } as unknown as Run;
  };

  const unmanaged = { 'servers.a': { managed: false } };
  test.each<[string, readonly Intent[], Parameters<typeof asked>[1], boolean]>([
    ['its last creation', [creation()], {}, true],
    ['no creation', [], {}, false],
    ['a creation of an earlier incarnation', [creation()], { gone: 1 }, false],
    [
      'a question that found a free resource, which another entry has now',
      [creation({ outcome: 'absent' })],
      {},
      true,
    ],
    ['a creation with another reason', [creation({ because: undefined })], {}, false],
    ['a deletion', [creation({ verb: 'delete' })], {}, false],
    ['a creation in another scope', [creation({}, 'x')], {}, false],
    ['an open creation', [creation({ phase: 'sending' })], {}, false],
    ['that of a bound entry', [creation()], { bindings: [holder, bound('servers.a', 'server', '2')] }, false],
    ['that of an entry that is not managed', [creation()], { desired: unmanaged }, false],
    ['the creation of an entry that has left', [creation()], { desired: {} }, false],
    ['an entry without a spec', [creation()], { desired: { 'servers.a': undefined as never } }, false],
    ['a key that no other entry has had', [creation()], { bindings: [server] }, false],
  ])('%s', async (_name, past, more, isAnswered) => {
    const answered = await answeredElsewhere(asked(past, more));
    expect([...answered]).toEqual(isAnswered ? [['servers.a', holder]] : []);
  });

  test('a resource that another entry has taken over is the answer of its earlier keys', async () => {
    const ofHolder = (recovered?: string) =>
      answeredElsewhere(asked([], { bindings: [{ ...holder, ...(recovered && { recovered }) } as never] }));
    expect([...(await ofHolder('taken')).keys()]).toEqual(['servers.a']);
    expect([...(await ofHolder('found')).keys()]).toEqual([]);
    expect([...(await ofHolder()).keys()]).toEqual([]);
  });

  test.each(['ignored', 'found', 'released'])('the answer of the keys that a claim names: %s', async (is) => {
    const claimed = { ...ignored, holder: { is, formerKeys: ['servers.a'] } };
    const answered = await answeredElsewhere(
      asked([creation()], { bindings: [], claims: [claimed as never] }),
    );
    expect([...answered]).toEqual(is === 'released' ? [] : [['servers.a', claimed]]);
  });
});

describe('src/engine/claims/release.ts', () => {
  test('the parts of a deleted server end with the server, and its address does not', () => {
    expect(keys(released(knowing([server, firewall, address]), key('servers.x'), 'gone'))).toEqual([
      'release servers.x true',
      'release servers.x.firewall false',
    ]);
  });

  test('a release claims every resource that is billed separately', () => {
    const changes = releasing(knowing([server, firewall, address]), key('servers.x'), 'operator', 'why');
    expect(keys(changes)).toEqual([
      'release servers.x false',
      'release servers.x.firewall false',
      'release servers.x.public_ipv4 false',
      'claim 1',
      'claim 51',
    ]);
    const holder = (of: ResourceKey) => ({ is: 'released', by: 'operator', formerKey: of });
    expect(changes[3]).toEqual({
      type: 'claim',
      claim: { kind: 'server', id: '1', identity: {}, holder: holder(server.key), at: now },
    });
    expect(changes[4]).toMatchObject({
      claim: { parentId: '1', identity: { address: '203.0.113.1' }, holder: holder(address.key) },
    });
    expect(releasing(knowing([]), key('servers.x'), 'file', 'why')).toHaveLength(1);
    const ips = [{ id: 51, address: '203.0.113.1', server_id: 1 }];
    const [, claim] = releasing(knowing([server], { ips }), key('servers.x'), 'file', 'why');
    expect(claim).toMatchObject({ claim: { kind: 'server', identity: { address: '203.0.113.1' } } });
  });

  test('a claim keeps the earlier keys and the recovery mark, and the address that reads show', () => {
    const doubted = bound('ips.a', 'ip', '51', {
      formerKeys: ['ips.b'],
      recovered: 'found',
      identity: { address: 'old' },
    });
    const run = knowing([doubted], { ips: [{ id: 51, address: 'new', server_id: null }] });
    expect(releasing(run, key('ips.a'), 'file', 'why')[1]).toMatchObject({
      claim: {
        identity: { address: 'new' },
        holder: { by: 'file', formerKeys: ['ips.b'], recovered: 'found' },
      },
    });
  });

  test('an object that was bound by mistake returns to its earlier key', () => {
    const exchanged = (formerKeys: readonly string[] | undefined) =>
      exchanging(
        knowing([bound('servers.x', 'server', '1', { formerKeys })]),
        key('servers.x'),
        'operator',
        '2',
      ).at(-1);
    expect(exchanged(['servers.a', 'servers.b'])).toMatchObject({
      claim: { holder: { formerKey: 'servers.b', formerKeys: ['servers.x', 'servers.a'] } },
    });
    expect(exchanged(undefined)).toMatchObject({ claim: { holder: { formerKey: 'servers.x' } } });
  });

  test.each([
    ['that the other server has', 2, ['servers.x.public_ipv4 2']],
    ['that is free', null, []],
    ['of a third server', 3, []],
  ])('an address %s, when the key is bound to another server', (_name, server_id, staying) => {
    const run = knowing([server, firewall, address], {
      ips: [
        { id: 51, address: '203.0.113.1', server_id },
        { id: 1, address: '', server_id: 2 },
      ],
    });
    const changes = exchanging(run, key('servers.x'), 'operator', '2');
    const binds = changes.flatMap((each) => (each.type === 'bind' ? [each.binding] : []));
    expect(binds.map((each) => `${each.key} ${each.parentId}`)).toEqual(staying);
  });

  test.each([
    ['without a server gets one', 2, ['bind servers.x.public_ipv4']],
    ['without a server gets one that has another address', 3, []],
    ['whose address no read shows gets one', undefined, []],
  ])('a key %s', (_name, server_id, expected) => {
    const ips = server_id === undefined ? [] : [{ id: 51, address: '203.0.113.1', server_id }];
    const changes = exchanging(knowing([address], { ips }), key('servers.x'), 'file', '2');
    expect(changes.map((each) => (each.type === 'bind' ? `bind ${each.binding.key}` : each))).toEqual(
      expected,
    );
  });

  test('a key that is bound to the server already exchanges nothing', () => {
    const ips = [{ id: 51, address: '203.0.113.1', server_id: 1 }];
    const run = knowing([server, address], { ips });
    expect(exchanging(run, key('servers.x'), 'file', '1')).toEqual([]);
  });

  test('a released resource keeps its known values, and has no field without a value', () => {
    const claimOf = (more: object) => {
      const binding = bound('servers.x', 'server', '1', more);
      const [change] = releasing(knowing([binding]), key('servers.x'), 'file', 'gone').slice(-1);
      return (change as { claim?: Claim }).claim;
    };
    const holder = { is: 'released', by: 'file', formerKey: 'servers.x' };
    const claim = { kind: 'server', id: '1', identity: {}, holder, at: now };
    expect(claimOf({ applied: undefined })).toStrictEqual(claim);
    const applied = { body: {} };
    expect(claimOf({ applied })).toStrictEqual({ ...claim, holder: { ...holder, applied } });
  });
});

describe('src/engine/claims/release.ts: a backup', () => {
  test('is the only part of a deleted server that remains claimed', () => {
    const run = knowing([server, firewall, backup]);
    const gone = { type: 'release', key: key('servers.x'), gone: true, reason: '' } as const;
    expect(keys(leftoverChanges(run, now, [gone]))).toEqual(['claim b1']);
    const holder = { is: 'leftover', formerKey: 'servers.x' };
    const claim = { kind: 'backup', id: 'b1', identity: {}, holder, at: 1 } as unknown as Claim;
    expect(leftBackups([claim])).toEqual([{ server: '', key: 'servers.x', backups: ['b1'], at: 1 }]);
  });
});

describe('src/engine/claims/release.ts', () => {
  test('a server retires with its parts, under a key of its own', () => {
    const changes = retiring(
      knowing([server, firewall], { desired: { 'servers.x': { value: {} } } }),
      server,
    );
    expect(keys(changes)).toEqual([
      'release servers.x false',
      'bind servers.x~1',
      'release servers.x.firewall false',
      'bind servers.x~1.firewall',
    ]);
    expect(changes[0]).toMatchObject({ reason: 'retires as servers.x~1' });
  });

  test.each([
    ['keep_ip', address, { value: { keep_ip: true } }, { keep: true, protect: false }],
    ['no keep_ip', address, { value: {} }, { keep: false, protect: false }],
    ['keep_ip, of another part', firewall, { value: { keep_ip: true } }, { keep: false }],
    ['protect', address, { value: {}, protect: true }, { protect: true }],
    ['no entry', { ...address, keep: true, protect: true }, undefined, { keep: true, protect: true }],
    ['lost protection', { ...address, protect: true }, { value: {}, protect: false }, { protect: false }],
  ])('a retiring part with %s', (_name, part, entry, kept) => {
    const run = knowing([server, part], { desired: entry === undefined ? {} : { 'servers.x': entry } });
    expect(retiring(run, server)[3]).toMatchObject({ binding: kept });
  });

  test('the address that the other server has got stays under the key', () => {
    const run = knowing([server, firewall, address]);
    const taken = [
      { ...server, id: '2' },
      { ...address, parentId: '2' },
    ];
    expect(keys(retiring(run, server, taken))).toEqual(
      [
        'release servers.x',
        'bind servers.x~1',
        'release servers.x.firewall',
        'bind servers.x~1.firewall',
      ].map((each) => expect.stringContaining(each)),
    );
    const others = [
      { ...address, id: '52' },
      { ...address, key: key('servers.y.public_ipv4') },
    ];
    expect(keys(retiring(run, server, others))).toHaveLength(6);
  });

  test('the earlier keys stay with the server that takes over', () => {
    const renamed = { ...server, formerKeys: [key('servers.old')] };
    const [, binding] = retiring(knowing([renamed]), renamed);
    expect(JSON.stringify(binding)).not.toContain('servers.old');
  });

  test('the address of a deleted server stays only until its new server exists', () => {
    const entry = (its: object | undefined) => ({ desired: { 'servers.x': its as never } });
    const managed = entry({ managed: true, value: {} });
    const all = [server, firewall, address];
    const ends = (bindings: readonly Binding[], given: Parameters<typeof knowing>[1], more: object = {}) =>
      keys(deleted(knowing(bindings, given), { key: key('servers.x'), ...more }, 'deleted'));
    const alone = ['release servers.x true', 'release servers.x.firewall false'];
    const withAddress = ['release servers.x.public_ipv4 false', 'bind servers.x~1.public_ipv4', ...alone];
    expect(ends(all, managed)).toEqual(withAddress);
    // The API gave the id out again, and the address of the earlier server still retires.
    const earlier = { ...address, key: key('servers.x~1.public_ipv4'), id: '50' };
    expect(ends([...all, earlier], managed)[1]).toBe(`bind servers.x~1-${address.id}.public_ipv4`);
    expect(ends(all, {})).toEqual(alone);
    expect(ends(all, managed, { basis: digestOf(null) })).toEqual(alone);
    expect(ends(all, managed, { basis: 'digest' })).toEqual(withAddress);
    const renamed = { ...managed, waiting: [{ keys: new Set(['servers.x']) }] };
    expect(ends(all, renamed, { basis: 'digest' })).toEqual(alone);
    for (const its of [{ managed: false, value: {} }, undefined])
      expect(ends(all, entry(its))).toEqual(alone);
    expect(ends([], managed)).toEqual(['release servers.x true']);
    expect(ends([address], managed).filter((each) => each.startsWith('bind'))).toEqual([]);
  });
});

describe('src/engine/claims/release.ts', () => {
  const gone = [{ type: 'release', key: key('servers.x'), gone: true, reason: '' }] as const;
  const claim = (is: string, id: string, parentId = '1', at = 9) =>
    ({
      kind: 'backup',
      id,
      parentId,
      identity: {},
      holder: { is, formerKey: 'servers.x' },
      at,
    }) as unknown as Claim;

  test('left backups are reported by server', () => {
    const claims = [
      claim('leftover', 'b1'),
      claim('released', 'b9'),
      claim('leftover', 'b2', '2'),
      claim('leftover', 'b3'),
    ];
    expect(leftBackups(claims)).toEqual([
      { server: '1', key: 'servers.x', at: 9, backups: ['b1', 'b3'] },
      { server: '2', key: 'servers.x', at: 9, backups: ['b2'] },
    ]);
  });

  const deletion = (backups: readonly string[] | undefined, more: object = {}) =>
    ({
      key: 'servers.x',
      kind: 'server',
      verb: 'delete',
      preimage: { backups },
      ...more,
    }) as unknown as Intent;
  test.each([
    ['its bound backup', [], undefined, ['claim b1']],
    ['a released backup', [claim('released', 'b2')], undefined, ['claim b2', 'claim b1']],
    ['a released backup of another server', [claim('released', 'b2', '2')], undefined, ['claim b1']],
    ['a backup that is left already', [claim('leftover', 'b2')], undefined, ['claim b1']],
    [
      'the backups that the deletion has read',
      [claim('released', 'b2')],
      deletion(['b3']),
      ['claim b3', 'claim b1', 'unclaim '],
    ],
    ['without a read', [claim('released', 'b2')], deletion(undefined), ['claim b2', 'claim b1']],
    ['the deletion of another server', [], deletion(['b3'], { key: 'servers.y' }), ['claim b1']],
  ] as const)('the left backups of a deleted server: %s', (_name, claims, of, expected) => {
    const run = knowing([server, backup], { claims });
    expect(keys(leftoverChanges(run, now, gone, of))).toEqual(expected);
    const stays = [{ ...gone[0], gone: false }];
    expect(leftoverChanges(run, now, stays, of)).toEqual([]);
  });

  test('only a server leaves backups', () => {
    const network = bound('networks.a', 'network', '3');
    const end = [{ ...gone[0], key: network.key }];
    expect(leftoverChanges(knowing([network]), now, end)).toEqual([]);
    expect(backupsBefore(deletion(undefined))).toEqual([]);
  });

  const ips = [{ id: 51, address: '203.0.113.1', server_id: null }];
  const write = deletion(['b1', 'b2'], { preimage: { backups: ['b1', 'b2'], addresses: ['203.0.113.1'] } });
  test.each([
    ['a deleted server', write, [], [], 2],
    ['its key is bound again', write, [server], [], 0],
    ['its key has an open write', write, [], [write], 0],
    ['an update', { ...write, verb: 'update' }, [], [], 0],
    ['the deletion of a network', { ...write, kind: 'network' }, [], [], 0],
    ['an address that is bound', write, [bound('ips.a', 'ip', '51')], [], 1],
    ['without backups', { ...write, preimage: { addresses: ['203.0.113.1'] } }, [], [], 1],
    ['without a read', { ...write, preimage: {} }, [], [], 0],
  ] as const)('the leftovers of an earlier run: %s', (_name, intent, bindings, intents, lines) => {
    const texts = leftByDeletion(knowing(bindings, { intents, ips }), intent as Intent);
    expect(texts).toHaveLength(lines);
    for (const text of texts) expect(text).toContain('stays billed');
  });
});
