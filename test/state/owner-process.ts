/**
 * Owns a state in a process of its own, until it is killed or its standard input ends.
 *
 *     node owner-process.ts PATH|URL hold|write
 *
 * Says `ready` once it has it. `write` then records one intent after the other, and says
 * the number of each when it is acknowledged.
 */
import { writeSync } from 'node:fs';
import { argv, stdin } from 'node:process';
import { setImmediate } from 'node:timers/promises';
import type { ResourceKey } from '../../src/core/keys.ts';
import { openPostgresState } from '../../src/state/postgres.ts';
import { isPostgresUrl } from '../../src/state/postgres-url.ts';
import { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { sampleBinding, sampleIntent } from '../conformance/state-samples.ts';

const [, , path = '', job = 'hold'] = argv;
const open = isPostgresUrl(path) ? openPostgresState : openSqliteState;
const state = await open(path, { mode: 'write', now: 1_700_000_000_000, lineage: 'child' });
writeSync(1, 'ready\n');

let ended = false;
stdin.on('end', () => {
  ended = true;
});
stdin.resume();

for (let count = 1; !ended; count += 1) {
  await setImmediate();
  if (job !== 'write') continue;
  const key = `networks.n${count}` as ResourceKey;
  await state.beginIntent(sampleIntent(`i${count}`, key));
  await state.closeIntent(
    `i${count}`,
    { outcome: 'done', text: '' },
    [{ type: 'bind', binding: sampleBinding(key, { id: key }) }],
    count,
  );
  writeSync(1, `${count}\n`);
}
await state.close();
writeSync(1, 'closed\n');
