import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import type { Json } from '../../src/core/json.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { IntentOutcome, IntentPatch, StateChange, StateStore } from '../../src/core/state.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { expectReplayed, type StateHarness, seen } from './state-checks.ts';
import { sampleAnswer, sampleBinding, sampleClaim, sampleIntent } from './state-samples.ts';

type Step = (store: StateStore) => Promise<unknown>;
type Move = { readonly name: string; readonly run: Step } | { readonly name: 'reopen' };

const keys = ['servers.a', 'servers.a.firewall', 'networks.b'] as ResourceKey[];
const key = fc.constantFrom(...keys);
const id = fc.constantFrom('1', '2', '3', '4', '5', '6');
const time = fc.double({ min: 0, max: 100, noNaN: true });
const noteName = fc.constantFrom('a', 'b');
const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>;

const change: fc.Arbitrary<StateChange> = fc.oneof(
  fc
    .record({ key, id, applied: json, boundAt: time })
    .map((some): StateChange => ({ type: 'bind', binding: sampleBinding(some.key, some) })),
  fc
    .record({ key, gone: fc.boolean() })
    .map((some): StateChange => ({ type: 'release', reason: 'because', ...some })),
  key.map((some): StateChange => ({ type: 'next_incarnation', key: some })),
  id.map((some): StateChange => ({ type: 'claim', claim: sampleClaim(some) })),
  id.map((some): StateChange => ({ type: 'unclaim', object: sampleClaim(some), reason: 'because' })),
);
const changes = fc.array(change, { maxLength: 3 });

/** A record in its form, with any further field. */
const more = <Form extends object>(form: Form) => json.map((further) => ({ ...form, further }));
const unconfirmed = more({ why: 'lost', question: { stage: 'asking', probes: 1 } });
const blocked = more({ code: 'stuck', reason: 'because', candidates: [] });

const patch = fc.record(
  {
    stage: fc.oneof(
      fc.record({ phase: fc.constantFrom('sending', 'waiting') }),
      fc.record({ phase: fc.constant('unknown'), unconfirmed, notSeenAt: time }),
      fc.record({ phase: fc.constant('accepted'), answer: more(sampleAnswer) }),
      fc.record({ phase: fc.constant('blocked'), blocked, unconfirmed }),
    ),
    sends: fc.nat(5),
    detail: fc.string(),
  },
  { requiredKeys: [] },
) as unknown as fc.Arbitrary<IntentPatch>;
const outcome = fc.constantFrom<IntentOutcome>('done', 'refused', 'absent', 'failed', 'abandoned', 'void');

const move: fc.Arbitrary<Move> = fc.oneof(
  step('claim', fc.tuple(fc.constantFrom(1, 1, 2)), (store, [project]) => store.claimProject(project)),
  step('serve', fc.tuple(fc.constantFrom('api', 'api', 'local')), (store, [service]) =>
    store.claimService(service),
  ),
  { weight: 8, arbitrary: step('change', fc.tuple(changes, time), (store, args) => store.change(...args)) },
  step('begin', fc.tuple(id, key, fc.nat(3), time), (store, [some, of, attempt, createdAt]) =>
    store.beginIntent(sampleIntent(some, of, { attempt, createdAt })),
  ),
  step('update', fc.tuple(id, patch, time, fc.option(json, { nil: undefined })), (store, args) =>
    store.updateIntent(...args),
  ),
  step('close', fc.tuple(id, outcome, fc.string(), changes, time), (store, [some, how, text, made, at]) =>
    store.closeIntent(some, { outcome: how, text }, made, at),
  ),
  step('prune', fc.tuple(time), (store, [before]) => store.prune(before)),
  step('note', fc.tuple(noteName, json), (store, args) => store.putNote(...args)),
  fc.constant<Move>({ name: 'reopen' }),
);

function step<T extends unknown[]>(
  name: string,
  args: fc.Arbitrary<T>,
  run: (store: StateStore, args: T) => Promise<unknown>,
): fc.Arbitrary<Move> {
  return args.map((some) => ({ name: `${name} ${JSON.stringify(some)}`, run: (store) => run(store, some) }));
}

/** What a step gave, rejections in words. */
async function answer(store: StateStore, run: Step): Promise<unknown> {
  return run(store).catch((error: unknown) => String(error));
}

async function everything(store: StateStore): Promise<unknown> {
  return {
    seen: await seen(store),
    ofKeys: await Promise.all(
      keys.map(async (each) => [
        await store.incarnation(each),
        await store.lastAttempt(each, 'create', '0'),
        await store.intents({ key: each, limit: 2 }),
        await store.journal({ key: each, limit: 3 }),
      ]),
    ),
    notes: [await store.note('a'), await store.note('b')],
  };
}

/** A store that outlives its process behaves like one in memory, closed and opened again at any point. */
export function stateEquivalence(name: string, harness: StateHarness, numRuns: number): void {
  describe(`state conformance: memory and ${name}`, () => {
    afterEach(() => harness.cleanUp());

    test('give the same answers to any sequence of calls, and the journals replay to the same state', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(move, { maxLength: 40 }), async (moves) => {
          const memory = memoryState({ createdAt: 1, lineage: 'born' });
          let store = await harness.create();
          try {
            for (const each of moves) {
              if ('run' in each)
                expect(await answer(store, each.run)).toEqual(await answer(memory, each.run));
              else store = await harness.reopen(store);
            }
            await expectReplayed(memory);
            expect(await everything(store)).toEqual(await everything(memory));
            await expectReplayed(store);
          } finally {
            await store.close();
          }
        }),
        { numRuns },
      );
    }, 120_000);
  });
}
