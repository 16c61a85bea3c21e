import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inject } from 'vitest';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    builtCommand: string;
  }
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const builds = join(root, 'node_modules/.cache/built');
const hourMs = 3_600_000;

/**
 * The built command, as the package contains it, which tests start as a process. It needs half the processor time of
 * the sources to start, and a daemon a third.
 */
export function builtCommand(): string {
  return inject('builtCommand');
}

/** Runs once before the tests. */
export default function setup(project: TestProject): void {
  project.provide('builtCommand', join(build(), 'dist/cli/main.cjs'));
}

/** The folder of a build of the sources as they are now. Other runs may be using the builds of other sources. */
function build(): string {
  const folder = join(builds, sourcesDigest());
  if (existsSync(folder)) return folder;
  removeOldBuilds();
  const own = `${folder}.${process.pid}`;
  const args = ['--config', '--dir', join(own, 'dist/cli')];
  execFileSync(process.execPath, [join(root, 'node_modules/rolldown/bin/cli.mjs'), ...args], {
    ...{ cwd: root, stdio: ['ignore', 'ignore', 'inherit'] },
  });
  copyFileSync(join(root, 'package.json'), join(own, 'package.json'));
  // Programs that define specs import the package. The package builds these modules one by one, and no test needs that.
  const library = pathToFileURL(join(root, 'src/index.ts')).href;
  writeFileSync(join(own, 'dist/index.js'), `export * from '${library}';\n`);
  try {
    renameSync(own, folder);
  } catch (error) {
    // Another run has built the same sources.
    if (!existsSync(folder)) throw error;
    rmSync(own, { recursive: true });
  }
  return folder;
}

function sourcesDigest(): string {
  const files = [
    'package.json',
    'package-lock.json',
    'rolldown.config.ts',
    ...globSync('src/**/*.ts', { cwd: root }),
  ];
  const digest = createHash('sha256');
  for (const file of files.sort()) {
    const { size, mtimeMs } = statSync(join(root, file));
    digest.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return digest.digest('hex').slice(0, 16);
}

function removeOldBuilds(): void {
  mkdirSync(builds, { recursive: true });
  for (const folder of globSync(`${builds}/*`))
    if (Date.now() - statSync(folder).mtimeMs > hourMs) rmSync(folder, { recursive: true, force: true });
}
