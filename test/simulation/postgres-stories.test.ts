import { describe, expect, test } from 'vitest';
import { play } from '../../src/simulation/scenario.ts';
import { playsAll } from '../support/drawn.ts';
import { postgresServer } from '../support/postgres.ts';
import { generateActionStory } from './action-stories.ts';
import { PostgresBoxes } from './postgres-boxes.ts';

describe('src/simulation: stories with edits, over PostgreSQL', () => {
  const server = postgresServer();
  const seeds = Array.from({ length: playsAll ? 40 : 4 }, (_, at) => at + 1);

  test.each(seeds)('seed %i breaks no rule, and gives the trace that it gives over SQLite', async (seed) => {
    const story = generateActionStory(seed);
    const { violation, trace } = await play(story, undefined, new PostgresBoxes(server.url(), `seed${seed}`));

    expect(violation).toBeUndefined();
    expect(trace).toEqual((await play({ ...story, state: 'memory' })).trace);
  });
});
