import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { type Planted, plantedBugs } from './planted.ts';

const root = join(import.meta.dirname, '../..');

/** Plants each mistake in a copy of the sources, alone, and plays seeds there until one is sure of it. */
export interface Verdict {
  readonly bug: Planted;
  /** The violation that gave it away; `undefined`: it went unnoticed. */
  readonly caught: string | undefined;
}

/** @throws Error where the patch no longer fits the source: it has to be written anew */
export function patched(bug: Planted, source: string): string {
  const places = source.split(bug.find).length - 1;
  if (places !== 1) throw new Error(`"${bug.name}" fits ${places} places of ${bug.file}`);
  return source.replace(bug.find, () => bug.replace);
}

export function sourceOf({ file }: Planted): string {
  return readFileSync(join(root, 'src', file), 'utf8');
}

/** @param choice further arguments of `npm run simulate`, for stories that seeds begin */
export async function hunt(bug: Planted, seeds: number, choice: readonly string[] = []): Promise<Verdict> {
  const chosen = bug.stories === undefined ? [] : [bug.stories];
  const stories = bug.stories === '--replaced' ? chosen : [...chosen, '--seeds', String(seeds), ...choice];
  return { bug, caught: await violation(bug.file, patched(bug, sourceOf(bug)), stories) };
}

/** The violation of a rule in stories with another text of one file of `src`, the first that is found. */
export async function violation(
  file: string,
  text: string,
  stories: readonly string[],
): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'vdcsync-planted-'));
  try {
    cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
    cpSync(join(root, 'test/simulation'), join(folder, 'test/simulation'), { recursive: true });
    cpSync(join(root, 'package.json'), join(folder, 'package.json'));
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'src', file), text);
    const said = await run(folder, [...stories, '--threads', '1', '--no-shrink']);
    return /^(((seed|guided) \d+|.+: replaced .+): (I\d+|bill|error) .*|.*no end after.*)$/m.exec(said)?.[0];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(folder: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(execPath, ['test/simulation/run.ts', ...args], { cwd: folder });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += String(data)));
    child.on('error', reject);
    child.on('close', () => resolve(said));
  });
}

if (import.meta.main) {
  const [seeds = '1600', only = '', ...choice] = process.argv.slice(2);
  if (!/^[1-9]\d*$/.test(seeds)) {
    console.error(`npm run simulate:planted -- [SEEDS [PART-OF-A-NAME [OPTION …]]]
SEEDS is the number of stories for each mistake, OPTION one of npm run simulate, such as --guided`);
    process.exit(2);
  }
  const left = plantedBugs.filter(({ name }) => name.includes(only));
  const total = left.length;
  let missed = 0;
  await Promise.all(
    Array.from({ length: availableParallelism() }, async () => {
      for (let bug = left.shift(); bug !== undefined; bug = left.shift()) {
        const { caught } = await hunt(bug, Number(seeds), choice);
        if (caught === undefined) missed += 1;
        console.log(
          `${caught === undefined ? 'MISSED' : 'caught'} ${bug.name}${caught === undefined ? '' : `: ${caught.slice(0, 140)}`}`,
        );
      }
    }),
  );
  console.log(`${total - missed} of ${total} planted bugs caught within ${seeds} seeds each`);
  if (missed > 0) process.exitCode = 1;
}
