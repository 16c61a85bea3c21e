import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Row } from './table.ts';

const rounds = 7;
const root = fileURLToPath(new URL('..', import.meta.url));

/** The built command's whole-process time, against a node that does nothing, in turns. */
export async function startup(): Promise<Row[]> {
  const bare = () => run(['-e', '0']);
  const validate = () => run(['dist/cli/main.cjs', 'validate', '-f', 'examples/shop.yaml']);
  const plan = () =>
    run([
      'dist/cli/main.cjs',
      'plan',
      '--emulator',
      '--state',
      'coverage/none/state.db',
      '-f',
      'examples/shop.yaml',
    ]);
  return [
    { figure: '`vdcsync validate` / `node -e 0`', value: ratio(validate, bare), aim: '≤ 4' },
    { figure: '`vdcsync plan --emulator` / `node -e 0`', value: ratio(plan, bare), aim: '≤ 6' },
  ];
}

function ratio(one: () => number, other: () => number): number {
  const ratios = Array.from({ length: rounds }, () => one() / other());
  return ratios.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0;
}

function run(args: readonly string[]): number {
  const start = process.hrtime.bigint();
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
  return Number(process.hrtime.bigint() - start) / 1e6;
}
