import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Binding, Intent } from '../../../src/core/state.ts';
import {
  answeredWithServer,
  hasUnidentified,
  identified,
  settled,
  unidentified,
} from '../../../src/engine/claims/unidentified.ts';
import { bound } from '../../plan/support.ts';
import { asRun, intentOf } from '../intents/stub-run.ts';

const key = (name: string) => name as ResourceKey;
const holderOf = (name: string, isSettled = false) => ({
  ...{ is: 'unidentified', key: name, incarnation: '1' },
  ...(isSettled && { settled: true }),
});
const object = (name: string) => ({ kind: 'project', id: name }) as const;

function knowing({
  of = ['servers.a'],
  found = [],
  bindings = [],
  line = ['servers.a'],
  isSettled = false,
  entries = ['servers.a'],
  past = [],
  open = [],
}: {
  readonly of?: readonly string[];
  readonly found?: readonly string[];
  readonly bindings?: readonly Binding[];
  readonly line?: readonly string[];
  readonly isSettled?: boolean;
  readonly entries?: readonly string[];
  readonly past?: readonly Intent[];
  readonly open?: readonly Pick<Intent, 'key' | 'incarnation'>[];
} = {}) {
  const claims = [
    ...of.map((name) => [`project ${name}`, { ...object(name), holder: holderOf(name, isSettled) }]),
    ...found.map((id) => [`server ${id}`, { kind: 'server', id, holder: { is: 'found', key: 'servers.a' } }]),
  ] as const;
  return asRun({
    bindings: new Map(bindings.map((each) => [each.key, each])),
    claims: new Map(claims as never),
    intents: new Map(open.map((each) => [each.key, each])),
    desired: { projectId: 4711 },
    lines: () => ({ of: ({ key: own }: { key: string }) => new Set([own, ...line]) }),
    world: { subjects: new Map(entries.map((each) => [each, { desired: { key: each } }])) },
    deps: {
      clock: { now: () => 7 },
      store: {
        intents: async ({ key: of }: { key: string }) => past.filter((each) => each.key === of),
        incarnation: async () => 0,
      },
    },
  } as never);
}

describe('src/engine/claims/unidentified.ts', () => {
  const write = (name: string, incarnation: string) => ({ key: key(name), incarnation });
  test.each([
    ['servers.b', '2', { incarnation: '2' }],
    ['servers.a', '1', { incarnation: '1' }],
    ['servers.a', '2', {}],
  ])('a used key of %s, incarnation %s, is recorded', (name, incarnation, of) => {
    expect(unidentified(knowing(), write(name, incarnation))).toEqual({
      type: 'claim',
      claim: {
        ...object(name),
        ...{ identity: {}, at: 7, holder: { is: 'unidentified', key: name, ...of } },
      },
    });
  });

  test('the decision of the operator lasts', () => {
    const run = knowing();
    expect(['servers.a', 'servers.b'].map((each) => hasUnidentified(run, key(each)))).toEqual([true, false]);
    const claim = { ...object('servers.a'), holder: holderOf('servers.a', true) };
    expect(settled(run, new Set([key('servers.a')]))).toEqual([{ type: 'claim', claim }]);
    expect(settled(run, new Set([key('servers.b')]))).toEqual([]);
    const known = knowing({ isSettled: true });
    expect(settled(known, new Set([key('servers.a')]))).toEqual([]);
    const again = (incarnation: string) => unidentified(known, write('servers.a', incarnation));
    expect(again('1')).toMatchObject({ claim: { holder: claim.holder } });
    expect(again('2')).toMatchObject({ claim: { holder: { is: 'unidentified', key: 'servers.a' } } });
  });

  const own = bound('servers.a', 'server', '2');
  test.each<[string, Binding, Parameters<typeof knowing>[0], readonly string[]]>([
    ['of the entry', own, {}, ['servers.a']],
    ['of an earlier key', own, { of: ['servers.b'], line: ['servers.b'] }, ['servers.b']],
    ['of an entry that has left the spec', own, { entries: [], line: [] }, ['servers.a']],
    ['of another entry', own, { of: ['servers.b'] }, []],
    ['beside a found one', own, { of: [], found: ['9'] }, []],
    ['that was found', own, { found: ['2'] }, []],
    ['that is bound', own, { bindings: [bound('servers.c', 'server', '2')] }, []],
    ['of another kind', bound('networks.a', 'network', '2'), { of: ['networks.a'] }, []],
    ['in answer to a question about it', own, { open: [write('servers.a', '1')] }, ['servers.a']],
    ['in answer to a question about a later one', own, { open: [write('servers.a', '2')] }, []],
  ])('an adoption names the unidentified server: %s', (_name, binding, given, ended) => {
    expect(identified(knowing(given), binding)).toEqual(
      ended.map((each) => ({ type: 'claim', claim: { ...object(each), holder: holderOf(each, true) } })),
    );
  });

  const past = { key: 'servers.a', kind: 'server', phase: 'closed', outcome: 'void' };
  const creation = (more: object, scope?: string) => intentOf({ ...past, ...more }, scope);
  const third = { incarnation: '2' };
  const second = (outcome: string) => ({ incarnation: '1', outcome });
  test.each<[string, object, readonly object[], boolean]>([
    ['after a conflict', {}, [{ outcome: 'void' }], true],
    ['after an unknown one', {}, [], true],
    ['after a deletion alone', {}, [{ verb: 'delete', outcome: 'done' }], true],
    ['after one that this state has had', {}, [{ outcome: 'done' }], false],
    ['after one that is gone', {}, [{ outcome: 'absent' }, { outcome: 'void' }], false],
    ['after one whose key is forgotten', {}, [{ outcome: 'absent', because: 'unused' }], true],
    ['the first one', { incarnation: '0' }, [], false],
    ['after a conflict and one that is gone', third, [second('absent'), { outcome: 'void' }], true],
    ['after two that are gone', third, [second('absent'), { outcome: 'absent' }], false],
    ['after a conflict and one that this state has had', third, [second('done'), { outcome: 'void' }], false],
    ['a network', { kind: 'network' }, [], false],
  ])('a found server may have replaced another one: %s', async (_name, more, earlier, may) => {
    const later = creation({ incarnation: '2', outcome: 'done' });
    const run = knowing({ of: [], past: [later, ...earlier.map((each) => creation(each))] });
    const changes = await answeredWithServer(run, creation({ incarnation: '1', ...more }));
    expect(changes).toEqual(may ? [unidentified(run, write('servers.a', '0'))] : []);
  });

  test('a found server may have replaced one that this state has had in another scope', async () => {
    const run = knowing({ of: [], past: [creation({ outcome: 'done' }, 'other')] });
    expect(await answeredWithServer(run, creation({ incarnation: '1' }))).toHaveLength(1);
  });

  test.each([
    ['of its incarnation', '1', true],
    ['of another one', '2', false],
  ])('the answer of a key identifies the server %s', async (_name, incarnation, is) => {
    const run = knowing({
      past: [
        creation({ incarnation: '0', outcome: 'done' }),
        creation({ incarnation: '1', outcome: 'absent' }),
      ],
    });
    expect(await answeredWithServer(run, creation({ incarnation }))).toEqual(
      is
        ? [{ type: 'unclaim', object: object('servers.a'), reason: 'its idempotency key was answered' }]
        : [],
    );
  });
});
