import { describe, expect, test } from 'vitest';
import { type FaultAction, faultRule } from '../../../src/emulator/faults.ts';
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
interface Row {
  readonly action: FaultAction;
  readonly follows: string;
  /** Of a creation, whose key is asked. */
  readonly created?: string;
  readonly but?: Readonly<Record<string, string>>;
  /** The spec says that an operator decides about what no read shows. */
  readonly asks?: true;
}

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

const rows: Readonly<Record<string, Row>> = {
  'no connection': { action: { do: 'refuse' }, follows: 'aa' },
  'a reset before the effect': {
    action: { do: 'reset' },
    follows: 'aa',
    created: 'a??b',
    but: freshKeys,
  },
  'a reset after the effect': {
    action: { do: 'reset', effect: 'done' },
    follows: 'a',
    created: 'a?a',
    but: unseen('aa'),
  },
  'a reset after the effect, its answer not stored': {
    action: { do: 'reset', effect: 'done', stored: false },
    follows: 'a',
    created: 'a??',
    but: { ...unshown('a??'), ...unseen('aa') },
    asks: true,
  },
  'an effect that comes late': {
    action: { do: 'late', ms: 45_000 },
    follows: 'a',
    created: 'a?a',
    but: unseen('aa'),
  },
  'an effect that comes after the second look': {
    action: { do: 'late', ms: 200_000 },
    follows: 'aa',
    created: 'a????????a',
    but: { ...freshKeys, ...deletions('aaaa'), 'resize a server': 'aaa' },
  },
  'an effect that comes after the second look, under a key that is free until then': {
    action: { do: 'late', ms: 200_000, holdsKey: false },
    follows: 'aa',
    created: 'a??b',
    but: freshKeys,
  },
  'an answer after the time-out': {
    action: { do: 'slow', ms: 40_000 },
    follows: 'a',
    created: 'a?a',
    but: unseen('aa'),
  },
  'a truncated answer': { action: { do: 'truncate' }, follows: 'a', created: 'a?a', but: unseen('aa') },
  "a proxy's page before the effect": {
    action: { do: 'html' },
    follows: 'aa',
    created: 'a??b',
    but: freshKeys,
  },
  "a proxy's page after the effect": {
    action: { do: 'html', effect: 'done' },
    follows: 'a',
    created: 'a?a',
    but: unseen('aa'),
  },
  'a redirect': { action: { do: 'redirect' }, follows: 'aa', created: 'a??b', but: freshKeys },
  'a malformed 2xx': { action: { do: 'malformed' }, follows: 'a', created: 'aa', but: unseen('aa') },
  'a 2xx without a task': { action: { do: 'omit_task' }, follows: 'a' },
  '500 without effect': {
    action: { do: 'answer', status: 500 },
    follows: 'ab',
    created: 'a??b',
    but: unshown('a??b'),
  },
  '500 with effect': {
    action: { do: 'answer', status: 500, effect: 'done' },
    follows: 'a',
    created: 'a??',
    but: { ...unshown('a??'), ...unseen('ab') },
  },
  '503 without effect': {
    action: { do: 'answer', status: 503 },
    follows: 'ab',
    created: 'a??b',
    but: unshown('a??b'),
  },
  '502 with effect': {
    action: { do: 'answer', status: 502, effect: 'done' },
    follows: 'a',
    created: 'a??',
    but: { ...unshown('a??'), ...unseen('ab') },
  },
  '504 without effect': {
    action: { do: 'answer', status: 504 },
    follows: 'ab',
    created: 'a??b',
    but: unshown('a??b'),
  },
  '409 with Retry-After': {
    action: { do: 'answer', status: 409, code: 'server_busy', retryAfter: 3 },
    follows: 'aa',
  },
  '409 of an unknown code': { action: { do: 'answer', status: 409, code: 'odd' }, follows: 'aa' },
  '429': { action: { do: 'answer', status: 429, retryAfter: 20 }, follows: 'aa' },
  'a stored 429': { action: { do: 'stored_429', retryAfter: 20 }, follows: 'aab' },
  '402': { action: { do: 'answer', status: 402, code: 'unpaid', stored: true }, follows: 'ab unpaid' },
  '403': {
    action: { do: 'answer', status: 403, code: 'insufficient_scope', stored: true },
    follows: 'ab insufficient_scope',
  },
  '401': {
    action: { do: 'answer', status: 401, code: 'unauthorized', stored: true },
    follows: 'ab unauthorized',
  },
  '404': {
    action: { do: 'answer', status: 404, code: 'odd_not_found', stored: true },
    follows: 'ab odd_not_found',
    but: { ...deletions('ab not_found') },
  },
  '405': {
    action: { do: 'answer', status: 405, code: 'not_allowed', stored: true },
    follows: 'ab not_allowed',
  },
  '415': { action: { do: 'answer', status: 415, code: 'no_json', stored: true }, follows: 'ab no_json' },
  '422': {
    action: { do: 'answer', status: 422, code: 'invalid_request', stored: true },
    follows: 'ab invalid_request',
    // It may be the refusal of a reused key, which is not replayed.
    created: 'aab invalid_request',
  },
  'a failed task that left nothing': {
    action: { do: 'task', outcome: 'fail', leaves: 'nothing' },
    follows: 'ab',
    but: { ...taskless, 'take a server image': 'ab task_failed', 'add an ISO': 'abc tainted' },
  },
  'a failed task that left a part': {
    action: { do: 'task', outcome: 'fail', leaves: 'partial' },
    follows: 'ab',
    but: {
      ...taskless,
      'take a server image': 'ab task_failed',
      'add an ISO': 'abc tainted',
    },
  },
  'a failed task that left everything': {
    action: { do: 'task', outcome: 'fail', leaves: 'everything' },
    follows: 'a tainted',
    but: {
      ...taskless,
      ...deletions('a'),
      'take a server image': 'a task_failed',
      'add an ISO': 'abc tainted',
    },
  },
  'a forgotten task': { action: { do: 'task', outcome: 'forgotten' }, follows: 'a' },
  'no capacity': {
    action: { do: 'no_gpu_capacity' },
    follows: 'a',
    but: { 'create a GPU server without an address': 'ab' },
  },
  'unknown fields and statuses': {
    action: { do: 'decorate', fields: { colour: 'red' }, status: 'odd' },
    follows: 'a',
  },
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
  played.emulator.setFaults([faultRule({ path: scene.operation, nth: 1 }, action)]);
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
  test.each(drawn(rowsOf(name)))('%s: settled as the table says, and bought once', async (_row, row) => {
    const asks = 'exclusive: true, unconfirmed_servers: ask';
    const spec = row.asks ? scene.spec.replace('exclusive: true', asks) : scene.spec;
    const played = await play({ ...scene, spec }, row.action);

    const usual = creations.has(name) ? (row.created ?? row.follows) : row.follows;
    expect(played.follows, played.told).toBe(row.but?.[name] ?? usual);
    expect(played.reports.at(-1)?.outcome, played.told).toBe('converged');
    await expectInvariants(played);
    await expectAccounted(played, played.told);
    expectFixedPoint(await played.plan(scene.spec));
  });

  test.skipIf(name in taskless)('a stuck task: told, waited for, and never sent again', async () => {
    const { played, key } = await prepare(scene);
    played.emulator.setFaults([
      faultRule({ path: scene.operation, nth: 1 }, { do: 'task', outcome: 'stuck' }),
    ]);
    const from = played.writes().length;

    const reports = [await played.apply(scene.spec), await played.apply(scene.spec)];

    const codes = reports.map(({ blocked }) => blocked.find((each) => each.key === key)?.code);
    expect(codes).toEqual(['stuck', 'stuck']);
    expect(played.writes().length - from).toBe(1);
    await expectInvariants(played);
    await expectAccounted(played, JSON.stringify([reports, await played.store.openIntents()]));
  });
});
