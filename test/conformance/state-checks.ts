import { expect } from 'vitest';
import { StateError } from '../../src/core/errors.ts';
import type { StateChange, StateStore } from '../../src/core/state.ts';
import { replay } from '../../src/state/replay.ts';

/** How the suite gets at stores of one sort. */
export interface StateHarness {
  /** A new and empty state, for writing. Born at 1 with the lineage `born`. */
  create(): Promise<StateStore>;
  /** Closes the store and opens the same state again; left out where it ends with its process. */
  reopen?(store: StateStore): Promise<StateStore>;
  /** A state, empty or not, opened for reading only. */
  readOnly(): Promise<StateStore>;
  /** Runs after every test. */
  cleanUp?(): Promise<void>;
}

/** For ends of intents that change nothing else. */
export const none: readonly StateChange[] = [];

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
