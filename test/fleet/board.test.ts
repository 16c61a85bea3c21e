import { describe, expect, onTestFinished, test } from 'vitest';
import { Board, type Publications } from '../../src/daemon/fleet/board.ts';
import type { SpecText } from '../../src/daemon/sources/source.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { openPublications } from '../../src/state/postgres-publications.ts';
import { postgresServer } from '../support/postgres.ts';
import { specOf } from './rig.ts';

const server = postgresServer();

const textOf = (id: number, more = ''): SpecText => {
  const name = `specs/${id}.yaml`;
  return { name, sources: [{ file: name, text: specOf(id, more) }] };
};
const holdersOf = (ids: readonly number[]) => Object.fromEntries(ids.map((id) => [id, `specs/${id}.yaml`]));
const commit = { id: 'c1', ref: 'main', fullRef: 'refs/heads/main', subject: 'first', at: 1 };

/** A replica's view of the board of one fleet; `taken`: how many specs each reading took from the database. */
function replicaOf(state: string) {
  const taken: number[] = [];
  const board = new Board({
    open: async (mode) => {
      const store = await openPublications(`${server.url()}?state=${state}`, { mode, now: 1, lineage: 'l' });
      if (store === undefined) return undefined;
      const counted: Publications = {
        isOwned: () => store.isOwned(),
        publication: () => store.publication(),
        version: () => store.version(),
        waiting: () => store.waiting(),
        publish: (specs, head, waiting) => store.publish(specs, head, waiting),
        close: () => store.close(),
        published: async (after, upTo) => {
          const found = await store.published(after, upTo);
          taken.push(found.length);
          return found;
        },
      };
      return counted;
    },
    assignments: async () => [],
    clock: systemClock,
  });
  onTestFinished(() => board.close());
  return { board, taken };
}

describe('src/daemon/fleet/board.ts', () => {
  test('an edit of one spec costs each replica that spec, and all others stay the values that they were', async () => {
    const [one, two] = [replicaOf('many'), replicaOf('many')];
    const ids = Array.from({ length: 2_000 }, (_, index) => index + 1);
    const texts = ids.map((id) => textOf(id));
    expect(await two.board.snapshot()).toBe(undefined);
    await one.board.lead();
    expect(await one.board.published()).toBe(undefined);
    expect(await one.board.publish({ specs: texts, commit, holders: holdersOf(ids) })).toBe(true);
    const before = await two.board.snapshot();
    expect(before).toEqual({ specs: texts, commit, holders: holdersOf(ids), rollouts: [] });
    expect(await two.board.hasMoved()).toBe(false);

    const edited = texts.with(4, textOf(5, '  extra: { cidr: 10.21.0.0/24 }\n'));
    expect(await one.board.publish({ specs: edited, commit, holders: holdersOf(ids) })).toBe(true);

    expect(await two.board.hasMoved()).toBe(true);
    const after = await two.board.snapshot();
    expect(two.taken).toEqual([2_000, 1]);
    expect(after?.specs).toEqual(edited);
    expect(after?.specs.filter((spec, index) => spec !== before?.specs[index])).toHaveLength(1);
  });

  test('a new commit alone, a spec that goes and a project that moves are news, and the same again is none', async () => {
    const [one, two] = [replicaOf('few'), replicaOf('few')];
    await one.board.lead();
    await one.board.published();
    const specs = [textOf(1), textOf(2)];
    await one.board.publish({ specs, commit, holders: holdersOf([1, 2]) });
    expect(await one.board.publish({ specs, commit, holders: holdersOf([1, 2]) })).toBe(false);
    expect(
      await one.board.publish({ specs, commit: { ...commit, id: 'c2' }, holders: holdersOf([1, 2]) }),
    ).toBe(true);
    await two.board.snapshot();
    expect(await one.board.publish({ specs: [textOf(2)], holders: { 2: 'specs/2.yaml' } })).toBe(true);
    expect(await two.board.snapshot()).toEqual({
      specs: [textOf(2)],
      holders: { 2: 'specs/2.yaml' },
      rollouts: [],
    });
    expect(two.taken).toEqual([2, 1]);
  });

  test('whoever leads next goes on from what was published, and one that leads no more publishes nothing', async () => {
    const [one, two] = [replicaOf('next'), replicaOf('next')];
    await one.board.lead();
    await one.board.published();
    await one.board.publish({ specs: [textOf(1)], commit, holders: holdersOf([1]) });
    await expect(two.board.lead()).rejects.toThrow(/in use/);
    await one.board.yieldLead();
    await expect(one.board.publish({ specs: [], holders: {} })).rejects.toThrow(/is no longer the leader/);
    await two.board.lead();
    expect(await two.board.published()).toEqual({
      specs: [textOf(1)],
      commit,
      holders: holdersOf([1]),
      rollouts: [],
      waiting: [],
    });
    expect(await two.board.publish({ specs: [textOf(1)], commit, holders: holdersOf([1]) })).toBe(false);
  });
});
