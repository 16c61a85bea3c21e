import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { KindName } from '../../src/core/kind-facts.ts';
import { type Operation, operationId, type Verb } from '../../src/core/plan.ts';
import { closure, order } from '../../src/plan/order.ts';
import { inCircle } from '../../src/plan/waits.ts';
import { kinds } from '../../src/reconcilers/registry.ts';

const network = made('create', 'network', 'networks.n');
const remove = {
  ...made('delete', 'server', 'servers.a'),
  replacement: operationId('create', key('servers.a')),
};
const create = { ...made('create', 'server', 'servers.a', [remove.id, network.id]), replacement: remove.id };
const address = made('delete', 'ip', 'servers.a.public_ipv4', [remove.id]);
const card = made('create', 'network_interface', 'servers.a.network_interfaces.n', [create.id, network.id]);
const other = made('create', 'server', 'servers.b');
const all = [network, remove, address, create, card, other];

const ids = (found: ReadonlySet<string>) => all.flatMap(({ id }) => (found.has(id) ? [id] : []));

describe('src/plan/order.ts', () => {
  test.each([
    ['the dependents of a network, and the other half', network, [network, remove, address, create, card]],
    ['a deletion that makes room for an impossible creation', create, [remove, address, create, card]],
    ['only the operation, if no other operation needs it', card, [card]],
    ['no operation of another server', other, [other]],
  ])('a closure contains %s', (_what, seed, expected) => {
    expect(ids(closure(all, ({ id }) => id === seed.id))).toEqual(expected.map(({ id }) => id));
  });

  test('the requirements contain both halves of a replacement and their needs', () => {
    const found = closure(all, ({ id }) => id === card.id, 'requirements');
    expect(ids(found)).toEqual([network, remove, create, card].map(({ id }) => id));
  });

  test('operations that wait for each other stop only those that need them', () => {
    const idsOf = (operations: readonly Operation[]) => operations.map(({ id }) => id);
    const circle = { ...network, needs: [address.id] };
    const { operations, circular } = order([circle, remove, address, create, card, other], kinds, []);
    expect([operations.length, circular]).toEqual([6, []]);
    const closed = { ...remove, needs: [network.id] };
    const found = order([circle, closed, address, create, card, other], kinds, []);
    expect(idsOf(found.operations)).toEqual([other.id]);
    expect(idsOf(found.circular)).toEqual(idsOf([circle, closed, address, create, card]));
    expect(inCircle([circle, address])).toMatchObject([
      { key: 'networks.n', verb: 'create', reason: expect.stringContaining(`${circle.id}, ${address.id}`) },
      { key: 'servers.a.public_ipv4', verb: 'delete' },
    ]);
  });

  test('a closure contains no operation that the plan lacks', () => {
    expect(closure([card], () => true, 'requirements')).toEqual(new Set([card.id]));
  });
});

function key(text: string): ResourceKey {
  return text as ResourceKey;
}

function made(verb: Verb, kind: KindName, text: string, needs: Operation['needs'] = []): Operation {
  const rest = { changes: [], spend: 'none', risk: 'safe' } as const;
  return { id: operationId(verb, key(text)), key: key(text), kind, verb, needs, ...rest };
}
