import { describe, expect, test } from 'vitest';
import type { FaultAction } from '../../../src/emulator/faults.ts';
import { drawn } from '../../support/drawn.ts';
import {
  expectAccounted,
  expectFixedPoint,
  expectInvariants,
  isProbe,
  isSpare,
} from '../../support/invariants.ts';
import { applyWithHelp } from '../../support/operator.ts';
import { prepare, type Scene, scenes } from './scenes.ts';

/**
 * One outcome of the first send, and what follows: a letter for each send, another one for another key, `?` for each
 * probe, then the code under which an operator was asked, if one was.
 */
type Row = readonly [
  action: FaultAction,
  follows: string,
  /** Of a creation, whose key is asked. */
  created?: string | undefined,
  but?: Readonly<Record<string, string>>,
  /** The spec says that an operator decides about what no read shows. */
  asks?: 'asks',
];

const creations: ReadonlySet<string> = new Set([
  'create a network',
  'allocate an address',
  'add an ISO',
  'create a slider server',
  'create a plan server',
  'create a GPU server without an address',
  'add a card',
  'take a backup',
  'take a server image',
]);
/** No read shows a server without an address, nor an image: the operator decides where only a read could tell. */
const unshown = (keys: string) => ({
  'create a GPU server without an address': `${keys} outcome_unknown`,
  'take a server image': `${keys} outcome_unknown`,
});
/** A replayed PUT would report success and apply nothing. */
const freshKeys = {
  'put a firewall': 'ab',
  'change a backup policy': 'ab',
  'insert an ISO': 'ab',
  'eject an ISO': 'ab',
};
/** No read shows the effect, so it is done once more: it is the same. */
const unseen = (resize: string) => ({
  'insert an ISO': 'ab',
  'eject an ISO': 'ab',
  'resize a server': resize,
});
const deletions = (then: string) => ({
  'delete a server': then,
  'release an address': then,
  'delete an ISO': then,
  'delete a network': then,
  'delete a backup': then,
  'remove a card': then,
});
const taskless = {
  'allocate an address': 'a',
  'put a firewall': 'a',
  'take a backup': 'a',
  'release an address': 'a',
  'delete an ISO': 'a',
  'insert an ISO': 'a',
  'eject an ISO': 'a',
  'delete a backup': 'a',
  'change a backup policy': 'a',
  'resize a server': 'a',
};

const answered = (status: number, more: object = {}) => ({ do: 'answer', status, ...more }) as FaultAction;
const stored = (status: number, code: string) => answered(status, { code, stored: true });
const failing = (leaves: 'nothing' | 'partial' | 'everything'): FaultAction => ({
  ...{ do: 'task', outcome: 'fail', leaves },
});
const unstored = { do: 'reset', effect: 'done', stored: false } as const;
const mended = { ...taskless, 'take a server image': 'ab task_failed', 'add an ISO': 'abc tainted' };
const left = {
  ...{ ...taskless, ...deletions('a') },
  ...{ 'take a server image': 'a task_failed', 'add an ISO': 'abc tainted' },
};
const slowly = { ...freshKeys, ...deletions('aaaa'), 'resize a server': 'aaa' };
const [afterReset, afterError] = [unseen('aa'), { ...unshown('a??'), ...unseen('ab') }];

const rows: Readonly<Record<string, Row>> = {
  'no connection': [{ do: 'refuse' }, 'aa'],
  'a reset before the effect': [{ do: 'reset' }, 'aa', 'a??b', freshKeys],
  'a reset after the effect': [{ do: 'reset', effect: 'done' }, 'a', 'a?a', afterReset],
  'a reset after the effect, its answer not stored': [
    unstored,
    'a',
    'a??',
    { ...unshown('a??'), ...afterReset },
    'asks',
  ],
  'an effect that comes late': [{ do: 'late', ms: 45_000 }, 'a', 'a?a', afterReset],
  'an effect that comes after the second look': [{ do: 'late', ms: 200_000 }, 'aa', 'a????????a', slowly],
  'an effect that comes after the second look, under a key that is free until then': [
    { do: 'late', ms: 200_000, holdsKey: false },
    'aa',
    'a??b',
    freshKeys,
  ],
  'an answer after the time-out': [{ do: 'slow', ms: 40_000 }, 'a', 'a?a', afterReset],
  'a truncated answer': [{ do: 'truncate' }, 'a', 'a?a', afterReset],
  "a proxy's page before the effect": [{ do: 'html' }, 'aa', 'a??b', freshKeys],
  "a proxy's page after the effect": [{ do: 'html', effect: 'done' }, 'a', 'a?a', afterReset],
  'a redirect': [{ do: 'redirect' }, 'aa', 'a??b', freshKeys],
  'a malformed 2xx': [{ do: 'malformed' }, 'a', 'aa', afterReset],
  'a 2xx without a task': [{ do: 'omit_task' }, 'a'],
  '500 without effect': [answered(500), 'ab', 'a??b', unshown('a??b')],
  '500 with effect': [answered(500, { effect: 'done' }), 'a', 'a??', afterError],
  '503 without effect': [answered(503), 'ab', 'a??b', unshown('a??b')],
  '502 with effect': [answered(502, { effect: 'done' }), 'a', 'a??', afterError],
  '504 without effect': [answered(504), 'ab', 'a??b', unshown('a??b')],
  '409 with Retry-After': [answered(409, { code: 'server_busy', retryAfter: 3 }), 'aa'],
  '409 of an unknown code': [answered(409, { code: 'odd' }), 'aa'],
  '429': [answered(429, { retryAfter: 20 }), 'aa'],
  'a stored 429': [{ do: 'stored_429', retryAfter: 20 }, 'aab'],
  '402': [stored(402, 'unpaid'), 'ab unpaid'],
  '403': [stored(403, 'insufficient_scope'), 'ab insufficient_scope'],
  '401': [stored(401, 'unauthorized'), 'ab unauthorized'],
  '404': [stored(404, 'odd_not_found'), 'ab odd_not_found', undefined, deletions('ab not_found')],
  '405': [stored(405, 'not_allowed'), 'ab not_allowed'],
  '415': [stored(415, 'no_json'), 'ab no_json'],
  // Of a creation, it may be the refusal of a reused key, which is not replayed.
  '422': [stored(422, 'invalid_request'), 'ab invalid_request', 'aab invalid_request'],
  'a failed task that left nothing': [failing('nothing'), 'ab', undefined, mended],
  'a failed task that left a part': [failing('partial'), 'ab', undefined, mended],
  'a failed task that left everything': [failing('everything'), 'a tainted', undefined, left],
  'a forgotten task': [{ do: 'task', outcome: 'forgotten' }, 'a'],
  'no capacity': [
    { do: 'no_gpu_capacity' },
    'a',
    undefined,
    { 'create a GPU server without an address': 'ab' },
  ],
  'unknown fields and statuses': [{ do: 'decorate', fields: { colour: 'red' }, status: 'odd' }, 'a'],
};

/** Rows that are settled alike: each operation meets one of them, in turn. */
const alike: readonly (readonly string[])[] = [
  ['402', '403', '401', '405', '415'],
  ['500 without effect', '503 without effect', '504 without effect'],
  ['500 with effect', '502 with effect'],
  ['a reset before the effect', "a proxy's page before the effect", 'a redirect'],
  [
    'a reset after the effect',
    'an effect that comes late',
    'an answer after the time-out',
    'a truncated answer',
    "a proxy's page after the effect",
  ],
  ['409 with Retry-After', '409 of an unknown code', '429'],
];

/** The rows that an operation meets: all of them, but of those that are settled alike only one. */
function rowsOf(operation: string): readonly (readonly [string, Row])[] {
  const turn = Object.keys(scenes).indexOf(operation);
  const others = alike.flatMap((names) => names.toSpliced(turn % names.length, 1));
  return Object.entries(rows).filter(([name]) => !others.includes(name));
}

/** Plays the scene, the first send of its operation coming out so; gives what was sent and said. */
async function play(scene: Scene, action: FaultAction) {
  const { played, key } = await prepare(scene);
  played.fail({ path: scene.operation, nth: 1 }, action);
  const from = played.writes().length;
  const { reports, helped } = await applyWithHelp(played, scene.spec);
  const intents = await played.store.intents({ key, limit: 100 });
  const letters = new Map<string, string>();
  for (const { key } of played.writes().slice(from)) {
    if (key !== undefined && intents.some(({ idempotencyKey }) => idempotencyKey === key))
      letters.set(key, letters.get(key) ?? 'abcdef'.charAt(letters.size));
  }
  const keys = played
    .writes()
    .slice(from)
    .map((each) => (isProbe(each) && !isSpare(each) ? '?' : (letters.get(each.key ?? '') ?? '')))
    .join('');
  const [asked] = reports.flatMap(({ blocked }) => blocked.filter((each) => each.key === key));
  const follows = asked === undefined ? keys : `${keys} ${asked.code}`;
  return { ...played, reports, told: JSON.stringify([reports, helped]), follows };
}

describe.each(Object.entries(scenes))('src/engine/intents/outcome.ts: %s', (name, scene) => {
  test.each(drawn(rowsOf(name)))('%s: settled as in the table, and bought once', async (_row, [
    action,
    follows,
    created = follows,
    but,
    isAsking,
  ]) => {
    const asks = 'exclusive: true, unconfirmed_servers: ask';
    const spec = isAsking ? scene.spec.replace('exclusive: true', asks) : scene.spec;
    const played = await play({ ...scene, spec }, action);

    expect(played.follows, played.told).toBe(but?.[name] ?? (creations.has(name) ? created : follows));
    expect(played.reports.at(-1)?.outcome, played.told).toBe('converged');
    await expectInvariants(played);
    await expectAccounted(played, played.told);
    expectFixedPoint(await played.plan(scene.spec));
  });
});
