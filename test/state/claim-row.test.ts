import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import type { Claim } from '../../src/core/claims.ts';
import { StateError } from '../../src/core/errors.ts';
import { openSqliteState } from '../../src/state/sqlite.ts';
import { newStatePath } from './folders.ts';

const refused = { scope: 'spending', kind: 'ip', verb: 'create', code: 'payment_required' } as const;
const paused: Claim = {
  ...{ kind: 'project', id: 'paused spending', identity: {}, at: 5 },
  holder: { is: 'paused', ...refused, reason: 'not paid', token: 'a' },
};

/** The claims of a state whose claim was changed by hand. */
async function claimsAfter(sql: string): Promise<readonly Claim[]> {
  const path = newStatePath();
  const options = { now: 1, lineage: 'test' } as const;
  const written = await openSqliteState(path, { ...options, mode: 'write' });
  await written.change([{ type: 'claim', claim: paused }], 5);
  await written.close();
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
  const read = await openSqliteState(path, { ...options, mode: 'read' });
  return read.claims().finally(() => read.close());
}

describe('src/state/claim-row.ts', () => {
  test('a claim is read as it was recorded', async () => {
    expect(await claimsAfter('SELECT 1')).toEqual([paused]);
  });

  test.each([
    ['lacks its holder', `UPDATE claims SET body = json_remove(body, '$.holder')`],
    ['has an unknown holder', `UPDATE claims SET body = json_set(body, '$.holder.is', 'friend')`],
    ['lacks the class of the refused writes', `UPDATE claims SET body = json_remove(body, '$.holder.scope')`],
    ['lacks the token', `UPDATE claims SET body = json_remove(body, '$.holder.token')`],
  ])('a claim that %s is a StateError that names its object', async (_what, sql) => {
    const damaged = claimsAfter(sql);
    await expect(damaged).rejects.toThrow(StateError);
    await expect(damaged).rejects.toThrow(/damaged: the claim on project paused spending/);
  });
});
