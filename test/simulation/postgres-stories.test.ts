import { describe, expect, test } from 'vitest';
import { playsAll } from '../support/drawn.ts';
import { postgresServer } from '../support/postgres.ts';
import { generateActionStory } from './action-stories.ts';
import { play } from './play.ts';
import { PostgresBoxes } from './postgres-boxes.ts';

describe('src/simulation: stories with edits and wrong commands, over PostgreSQL', () => {
  const server = postgresServer();
  const seeds = Array.from({ length: playsAll ? 8 : 3 }, (_, at) => at + 1);

  test.each(seeds)('seed %i breaks no rule', async (seed) => {
    const boxes = new PostgresBoxes(server.url(), `seed${seed}`);

    const { violation, changes } = await play(generateActionStory(seed), undefined, boxes);

    expect(violation).toBeUndefined();
    expect(changes).toBeGreaterThan(0);
  });
});
