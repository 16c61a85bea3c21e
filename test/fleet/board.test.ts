import { describe, expect, onTestFinished, test } from 'vitest';
import { Board } from '../../src/daemon/fleet/board.ts';
import type { SpecText } from '../../src/daemon/sources/source.ts';
import { systemClock } from '../../src/platform/system.ts';
import { openPublications } from '../../src/state/postgres-publications.ts';
import { postgresServer } from '../support/postgres.ts';
import { specOf } from './rig.ts';

const server = postgresServer();

const textOf = (id: number, more = ''): SpecText => {
  const name = `specs/${id}.yaml`;
  return { name, sources: [{ file: name, text: specOf(id, more) }] };
};
const holdersOf = (ids: readonly number[]) => Object.fromEntries(ids.map((id) => [id, `specs/${id}.yaml`]));
const commit = { id: 'c1', ref: 'main', fullRef: 'refs/heads/main', subject: 'first', author: '', at: 1 };

/** A replica's view of the board of one fleet; `taken`: how many specs each reading took from the database. */
function replicaOf(state: string) {
  const taken: number[] = [];
  const board = new Board({
    open: async (mode) => {
      const store = await openPublications(`${server.url()}?state=${state}`, { mode, now: 1, lineage: 'l' });
      if (store === undefined) return undefined;
      const published = store.published.bind(store);
      store.published = async (after, upTo) => {
        const found = await published(after, upTo);
        taken.push(found.length);
        return found;
      };
      return store;
    },
    assignments: async () => [],
    clock: systemClock,
  });
  onTestFinished(() => board.close());
  return { board, taken };
}

describe('src/daemon/fleet/board.ts', () => {
  test('a replica reads only the spec of the project whose turn it has', async () => {
    const [one, two] = [replicaOf('many'), replicaOf('many')];
    const ids = Array.from({ length: 2_000 }, (_, index) => index + 1);
    const texts = ids.map((id) => textOf(id));
    expect(await two.board.refresh()).toBe(false);
    expect(await two.board.spec(5)).toBe(undefined);
    await one.board.lead();
    expect(await one.board.published()).toBe(undefined);
    expect(await one.board.publish({ specs: texts, commit, holders: holdersOf(ids) })).toBe(true);
    expect([await two.board.refresh(), two.board.commit]).toEqual([true, commit]);
    expect(await two.board.projects()).toEqual(ids);
    const before = await two.board.spec(5);
    expect([before?.spec, before?.commit]).toEqual([texts[4], commit]);

    const edited = texts.with(4, textOf(5, '  extra: { cidr: 10.21.0.0/24 }\n'));
    expect(await one.board.publish({ specs: edited, commit, holders: holdersOf(ids) })).toBe(true);

    const versions = new Map([4, 5].map((id) => [id, before?.version ?? 0]));
    expect(await two.board.changed(versions)).toEqual([5]);
    expect((await two.board.spec(5))?.spec).toEqual(edited[4]);
    expect(two.taken).toEqual([]);
  });

  test('publishes a new commit, a removed spec and a moved project, and nothing without a change', async () => {
    const [one, two] = [replicaOf('few'), replicaOf('few')];
    await one.board.lead();
    await one.board.published();
    const specs = [textOf(1), textOf(2)];
    await one.board.publish({ specs, commit, holders: holdersOf([1, 2]) });
    expect(await one.board.publish({ specs, commit, holders: holdersOf([1, 2]) })).toBe(false);
    expect(
      await one.board.publish({ specs, commit: { ...commit, id: 'c2' }, holders: holdersOf([1, 2]) }),
    ).toBe(true);
    await two.board.refresh();
    expect(two.board.commit?.id).toBe('c2');
    expect(await one.board.publish({ specs: [textOf(2)], holders: { 2: 'specs/2.yaml' } })).toBe(true);
    expect([await two.board.spec(1), await two.board.projects()]).toEqual([undefined, [2]]);
  });

  test('requests a reconciliation for each changed spec, also by the next leader', async () => {
    const [one, two] = [replicaOf('asked'), replicaOf('asked')];
    await one.board.lead();
    await one.board.published();
    await one.board.publish({ specs: [textOf(1), textOf(2)], commit, holders: holdersOf([1, 2]) });
    expect((await one.board.unasked()).projects).toEqual([1, 2]);
    await one.board.yieldLead();
    await two.board.lead();
    await two.board.published();
    const { projects, done } = await two.board.unasked();
    expect(projects).toEqual([1, 2]);
    await done();
    expect((await two.board.unasked()).projects).toEqual([]);
    const edited = [textOf(1), textOf(2, '  extra: { cidr: 10.21.0.0/24 }\n')];
    await two.board.publish({ specs: edited, commit, holders: holdersOf([1, 2]) });
    expect((await two.board.unasked()).projects).toEqual([2]);
  });

  test('the next leader continues from the published specs, and a former leader publishes nothing', async () => {
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
