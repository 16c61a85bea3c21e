import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const cruiser = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs');
const planted = mkdtempSync(join(tmpdir(), 'vdcsync-layers-'));
afterAll(() => rmSync(planted, { recursive: true, force: true }));

interface Cruise {
  readonly summary: { readonly violations: readonly { readonly rule: { readonly name: string } }[] };
}

/** One forbidden import a line: the rule, who, whom. */
const violations = [
  ['core-imports', 'core/canary.ts', 'plan/canary.ts'],
  ['plan-imports', 'plan/canary.ts', 'api/client.ts'],
  ['queue-imports', 'queue/canary.ts', 'state/canary.ts'],
  ['state-imports', 'state/canary.ts', 'engine/canary.ts'],
  ['api-imports', 'api/client.ts', 'emulator/canary.ts'],
  ['reconcilers-imports', 'reconcilers/ip.ts', 'api/client.ts'],
  ['platform-imports', 'platform/canary.ts', 'plan/canary.ts'],
  ['spec-imports', 'spec/canary.ts', 'state/canary.ts'],
  ['engine-imports', 'engine/canary.ts', 'api/client.ts'],
  ['engine-shared-imports', 'engine/canary.ts', 'engine/claims/canary.ts'],
  ['engine-claims-imports', 'engine/claims/canary.ts', 'engine/intents/canary.ts'],
  ['engine-intents-imports', 'engine/intents/canary.ts', 'engine/run/canary.ts'],
  ['engine-run-imports', 'engine/run/canary.ts', 'engine/operator/canary.ts'],
  ['engine-operator-imports', 'engine/operator/canary.ts', 'engine/engine.ts'],
  ['emulator-imports', 'emulator/canary.ts', 'reconcilers/ip.ts'],
  ['simulation-imports', 'simulation/canary.ts', 'daemon/canary.ts'],
  ['view-imports', 'view/canary.ts', 'daemon/canary.ts'],
  ['daemon-imports', 'daemon/canary.ts', 'api/client.ts'],
  ['no-sibling-kinds', 'reconcilers/network.ts', 'reconcilers/ip.ts'],
  ['nobody-imports-the-cli', 'daemon/canary.ts', 'cli/main.ts'],
] as const;

describe('src', () => {
  test('reports each planted violation of the layers', async () => {
    const imports = new Map<string, string>([
      ['cli/main.ts', ''],
      ['engine/engine.ts', ''],
    ]);
    for (const [, from, to] of violations) {
      const line = `import { name as from${imports.size} } from './${relative(dirname(from), to)}';\nexport const x${imports.size} = from${imports.size};\n`;
      imports.set(from, `${imports.get(from) ?? 'export const name = 1;\n'}${line}`);
    }
    for (const [file, text] of imports) {
      const path = join(planted, 'src', file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text || 'export const name = 1;\n');
    }
    for (const file of ['.dependency-cruiser.cjs', 'tsconfig.json', 'package.json']) {
      copyFileSync(join(root, file), join(planted, file));
    }
    const args = [cruiser, 'src', '--config', '.dependency-cruiser.cjs', '--output-type', 'json'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: planted });
    const { summary } = JSON.parse(stdout) as Cruise;
    const reported = new Set(summary.violations.map(({ rule }) => rule.name));
    expect([...reported]).toEqual(expect.arrayContaining(violations.map(([rule]) => rule)));
  });
});
