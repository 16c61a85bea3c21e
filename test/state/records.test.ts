import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Claim } from '../../src/core/claims.ts';
import { StateError } from '../../src/core/errors.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { StateStore } from '../../src/core/state.ts';
import { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { sampleBinding, sampleIntent } from '../conformance/state-samples.ts';
import { newStatePath } from './folders.ts';

const refused = { scope: 'spending', kind: 'ip', verb: 'create', code: 'payment_required' } as const;
const paused: Claim = {
  ...{ kind: 'project', id: 'paused spending', identity: {}, at: 5 },
  holder: { is: 'paused', ...refused, reason: 'not paid', token: 'a' },
};

const web = 'servers.web' as ResourceKey;
const at = { now: 1, lineage: 'test' } as const;

/** A state with a claim, a binding, an open intent and a closed one, changed by hand and opened again. */
async function stateAfter(sql: string): Promise<StateStore> {
  const path = newStatePath();
  const written = await openSqliteState(path, { ...at, mode: 'write' });
  await written.change([{ type: 'claim', claim: paused }], 5);
  await written.change([{ type: 'bind', binding: sampleBinding(web) }], 5);
  await written.beginIntent(sampleIntent('closed', web));
  await written.closeIntent('closed', { outcome: 'done', text: '' }, [], 6);
  await written.beginIntent(sampleIntent('open', web));
  await written.close();
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
  const read = await openSqliteState(path, { ...at, mode: 'read' });
  onTestFinished(() => read.close());
  return read;
}

describe('src/state/records.ts', () => {
  test('records are read as written', async () => {
    const state = await stateAfter('SELECT 1');
    expect(await state.claims()).toEqual([paused]);
    expect(await state.bindings()).toEqual([sampleBinding(web)]);
    expect(await state.openIntents()).toEqual([sampleIntent('open', web)]);
    expect((await state.intents({ limit: 9 })).map(({ id, phase }) => [id, phase])).toEqual([
      ['open', 'sending'],
      ['closed', 'closed'],
    ]);
  });

  test('keeps a field of a later version', async () => {
    const state = await stateAfter(`UPDATE intents SET body = json_set(body, '$.later', 1)`);
    expect(await state.openIntents()).toEqual([{ ...sampleIntent('open', web), later: 1 }]);
  });

  const claims = { read: (store: StateStore) => store.claims(), called: 'claim on project paused spending' };
  const bindings = { read: (store: StateStore) => store.bindings(), called: `binding of ${web}` };
  const open = { read: (store: StateStore) => store.openIntents(), called: 'write open' };
  const past = { read: (store: StateStore) => store.intents({ key: web, limit: 9 }), called: 'write closed' };
  const ofClaim = (change: string) => `UPDATE claims SET body = ${change} WHERE key IS NULL`;
  const ofBinding = (change: string) => `UPDATE claims SET body = ${change} WHERE key IS NOT NULL`;
  const ofIntent = (id: string, change: string) => `UPDATE intents SET body = ${change} WHERE id = '${id}'`;

  test.each([
    ['a claim lacks its holder', claims, ofClaim(`json_remove(body, '$.holder')`)],
    ['a claim has an unknown holder', claims, ofClaim(`json_set(body, '$.holder.is', 'friend')`)],
    ['a claim lacks the refused class', claims, ofClaim(`json_remove(body, '$.holder.scope')`)],
    ['a claim lacks the token', claims, ofClaim(`json_remove(body, '$.holder.token')`)],
    ['a binding lacks its id', bindings, ofBinding(`json_remove(body, '$.id')`)],
    ['a binding lacks its protection', bindings, ofBinding(`json_remove(body, '$.protect')`)],
    ['a binding has another identity', bindings, ofBinding(`json_set(body, '$.identity', 'web')`)],
    ['an open write lacks its key', open, ofIntent('open', `json_remove(body, '$.idempotencyKey')`)],
    ['an open write has an unknown phase', open, ofIntent('open', `json_set(body, '$.phase', 'asleep')`)],
    [
      'an unconfirmed write lacks its question',
      open,
      ofIntent('open', `json_set(body, '$.phase', 'unknown', '$.unconfirmed', json('{"why": "lost"}'))`),
    ],
    ['an accepted write lacks its answer', open, ofIntent('open', `json_set(body, '$.phase', 'accepted')`)],
    ['a closed write has another outcome', past, ofIntent('closed', `json_set(body, '$.outcome', 'fine')`)],
  ] as const)('if %s, refuses the state and names the record', async (_what, { read, called }, sql) => {
    const damaged = read(await stateAfter(sql));
    await expect(damaged).rejects.toThrow(StateError);
    await expect(damaged).rejects.toThrow(`damaged: the ${called} cannot be read`);
  });
});
