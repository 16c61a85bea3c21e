import { expect, test } from 'vitest';
import { StateError } from '../../src/core/errors.ts';
import type { IntentOutcome, StateChange, StateStore } from '../../src/core/state.ts';
import { replay } from '../simulation/replay.ts';
import { later, sampleBinding, sampleIntent, web } from './state-samples.ts';

/** How the suite gets at stores of one sort. */
export interface StateHarness {
  /** A new and empty state, for writing. Born at 1 with the lineage `born`. */
  create(): Promise<StateStore>;
  /** Closes the store and opens the same state again. */
  reopen(store: StateStore): Promise<StateStore>;
  /** A state, empty or not, opened for reading only. */
  readOnly(): Promise<StateStore>;
  /** Runs after every test. */
  cleanUp(): Promise<void>;
}

/** Stores that outlive their process, each at a place of its own. */
export function harnessOf(
  newPlace: () => string,
  openAt: (place: string, options: OpenOptions) => Promise<StateStore>,
): StateHarness {
  const places = new Map<StateStore, string>();
  const open = async (place: string, mode: OpenOptions['mode']) => {
    const store = await openAt(place, { mode, now: 1, lineage: 'born' });
    places.set(store, place);
    return store;
  };
  return {
    create: () => open(newPlace(), 'write'),
    async reopen(store) {
      await store.close();
      return open(places.get(store) ?? '', 'write');
    },
    async readOnly() {
      const place = newPlace();
      const store = await open(place, 'write');
      await store.claimProject(4711);
      await store.change([{ type: 'bind', binding: sampleBinding(web) }], 5);
      await store.beginIntent(sampleIntent('a', web));
      await store.close();
      return open(place, 'read');
    },
    async cleanUp() {
      for (const store of places.keys()) await store.close();
      places.clear();
    },
  };
}

interface OpenOptions {
  readonly mode: 'write' | 'read';
  readonly now: number;
  readonly lineage: string;
}

/** A test of a new and empty state. */
export const storeTest = (create: StateHarness['create']) => test.extend('store', () => create());
export type StoreTest = ReturnType<typeof storeTest>;

/** Ends an intent, done and without further changes unless told otherwise. */
export function close(
  store: StateStore,
  id: string,
  {
    outcome = 'done',
    text = '',
    changes = [],
    at = later,
  }: { outcome?: IntentOutcome; text?: string; changes?: readonly StateChange[]; at?: number } = {},
): Promise<void> {
  return store.closeIntent(id, { outcome, text }, changes, at);
}

/** All that can be seen of a store, to tell that a rejected call left no trace. */
export async function seen(store: StateStore): Promise<unknown> {
  const everything = { limit: Number.POSITIVE_INFINITY };
  return {
    info: await store.info(),
    bindings: await store.bindings(),
    claims: await store.claims(),
    open: await store.openIntents(),
    intents: await store.intents(everything),
    journal: await store.journal(everything),
  };
}

/** The call is rejected with this message, and leaves no trace. */
export async function expectRejected(
  store: StateStore,
  call: () => Promise<unknown>,
  message: RegExp,
): Promise<void> {
  const before = await seen(store);
  const error = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StateError);
  expect((error as StateError).message).toMatch(message);
  expect(await seen(store)).toEqual(before);
}

/** The journal, replayed, is the state. */
export async function expectReplayed(store: StateStore): Promise<void> {
  const everything = { limit: Number.POSITIVE_INFINITY };
  const {
    bindings: bound,
    claims,
    openIntents,
    intents: all,
    incarnations,
  } = replay(await store.journal(everything));
  expect([...bound.values()].sort((a, b) => (a.key < b.key ? -1 : 1))).toEqual(await store.bindings());
  expect([...claims].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, claim]) => claim)).toEqual(
    await store.claims(),
  );
  expect(openIntents).toEqual(await store.openIntents());
  expect([...all.values()].reverse()).toEqual(await store.intents(everything));
  for (const [key, gone] of incarnations) expect(await store.incarnation(key)).toBe(gone);
}
