import { type LiveObject, objectName } from '../core/claims.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { StateChange } from '../core/state.ts';
import type { Row } from './queries.ts';
import { refuseSecondHolder } from './refusals.ts';

/** One statement about a state: `$1` is its id. */
type Run = (sql: string, ...values: readonly (string | number | null)[]) => Promise<readonly Row[]>;

/**
 * Makes one change of bindings or claims. Part of a transaction.
 *
 * @throws StateError if the object would have two holders.
 */
export async function applyChange(run: Run, change: StateChange): Promise<void> {
  switch (change.type) {
    case 'bind':
      await run(release, change.binding.key);
      return hold(run, change.binding, change.binding.key);
    case 'release':
      await run(release, change.key);
      return change.gone ? nextIncarnation(run, change.key) : undefined;
    case 'next_incarnation':
      return nextIncarnation(run, change.key);
    case 'claim':
      await run(unclaim, objectName(change.claim));
      return hold(run, change.claim, null);
    case 'unclaim':
      await run(unclaim, objectName(change.object));
      return;
    case 'proof':
      return;
  }
}

async function hold(run: Run, body: LiveObject, key: ResourceKey | null): Promise<void> {
  const object = objectName(body);
  const [holder] = await run('SELECT key FROM vdcsync.claims WHERE state_id = $1 AND object = $2', object);
  if (holder !== undefined) refuseSecondHolder(object, holder.key as ResourceKey | null);
  await run(
    'INSERT INTO vdcsync.claims (state_id, object, key, body) VALUES ($1, $2, $3, $4)',
    ...[object, key, JSON.stringify(body)],
  );
}

async function nextIncarnation(run: Run, key: ResourceKey): Promise<void> {
  await run(
    `INSERT INTO vdcsync.incarnations AS known VALUES ($1, $2, 1)
     ON CONFLICT (state_id, key) DO UPDATE SET gone = known.gone + 1`,
    key,
  );
}

const release = 'DELETE FROM vdcsync.claims WHERE state_id = $1 AND key = $2';
const unclaim = 'DELETE FROM vdcsync.claims WHERE state_id = $1 AND object = $2 AND key IS NULL';
