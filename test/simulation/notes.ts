import type { Json } from '../../src/core/json.ts';
import type { StateStore } from '../../src/core/state.ts';
import { SqlStore } from '../../src/state/sql-store.ts';
import { createCoverage } from './coverage.ts';
import { generateStory } from './generator.ts';
import { play } from './play.ts';

/*
 * Plays seeds and prints the rule that each breaks. The notes whose names begin as `--notes` says are empty at the start of each run: a run reads
 * only the notes that it has written itself.
 */
const args = process.argv.slice(2);
const flagOf = (flag: string) => args[args.indexOf(flag) + 1] ?? '';
const [seeds, from] = [Number(flagOf('--seeds')), args.includes('--from') ? Number(flagOf('--from')) : 0];
const prefixes = flagOf('--notes').split(',');
const isEmptied = (name: string) => prefixes.some((each) => name.startsWith(each));
/** The notes that the current run of each state has written. */
const written = new WeakMap<StateStore, Set<string>>();

const store = SqlStore.prototype;
const { info, note, putNote } = store;
// Each run begins with this call.
store.info = function (this: SqlStore) {
  written.delete(this);
  return info.call(this);
};
store.note = async function (this: SqlStore, name: string) {
  const isEmpty = isEmptied(name) && written.get(this)?.has(name) !== true;
  return isEmpty ? undefined : note.call(this, name);
};
store.putNote = function (this: SqlStore, name: string, value: Json) {
  written.set(this, (written.get(this) ?? new Set()).add(name));
  return putNote.call(this, name, value);
};

for (let seed = from; seed < from + seeds; seed++) {
  const { violation } = await play(generateStory(seed), createCoverage());
  process.stdout.write(
    `${seed} ${violation === undefined ? 'sound' : `${violation.rule}: ${violation.message.split('\n')[0]}`}\n`,
  );
}
