import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/http-server.ts';
import { programEnv } from '../support/program-env.ts';
import { folderWith, oneNetwork } from './run.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/library.md'), 'utf8');

/** The programs of the page: blocks with the same file name belong together. */
function programs(): Map<string, string> {
  const files = new Map<string, string>();
  for (const [, indent = '', name = '', body = ''] of page.matchAll(
    /^( *)```ts\n *\/\/ file: (\S+)\n([\s\S]*?)^ *```/gm,
  )) {
    const lines = body.split('\n').map((line) => line.slice(indent.length));
    files.set(name, (files.get(name) ?? '') + lines.join('\n'));
  }
  return files;
}

/** Runs a program of the page with the sources in place of the package. */
async function run(name: string, cwd: string, env: Record<string, string>): Promise<string> {
  const source = (programs().get(name) ?? '').replaceAll("'vdcsync'", `'${join(root, 'src/index.ts')}'`);
  writeFileSync(join(cwd, name), source);
  const { stdout } = await promisify(execFile)(process.execPath, [join(cwd, name)], {
    cwd,
    env: { ...programEnv(), ...env },
  });
  return stdout;
}

describe('docs/library.md', () => {
  test('its programs plan and apply', async () => {
    const { baseUrl, projects, emulator, close } = await startEmulator({
      durations: { create_network: [0, 1] },
    });
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    const printed = await run('plan.mts', cwd, {
      VDC_BASE_URL: baseUrl,
      VDC_TOKEN: projects[0]?.tokens.readWrite ?? '',
    });
    const names = emulator.world.projects[0]?.networks.map(({ name }) => name);
    await close();

    expect(printed).toBe('1 to create, 0 blocked\nconverged\n');
    expect(names).toContain('backend');
    expect(await run('emulator.mts', cwd, {})).toBe('true 4711\n');
  });

  test('each error class that it explains is exported', async () => {
    const library = await import('../../src/index.ts');
    const named = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !(name in library))).toEqual([]);
  });
});
