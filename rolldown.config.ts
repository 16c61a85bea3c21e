import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, type Plugin } from 'rolldown';

/**
 * The command and the thread that reads specs, with all that they import. CommonJS, because Node loads its own modules
 * much faster for it: for an `import` it evaluates every property of `node:process` and `node:util`.
 */
export default defineConfig({
  input: { main: 'src/cli/main.ts', 'spec-worker': 'src/daemon/sources/spec-worker.ts' },
  platform: 'node',
  // pg tries this one, and does without it.
  external: ['pg-native'],
  output: {
    dir: 'dist/cli',
    format: 'cjs',
    cleanDir: true,
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name]-[hash].cjs',
  },
  plugins: [licences()],
});

/** The licences of the packages that the files hold, as most of them ask for. */
function licences(): Plugin {
  return {
    name: 'licences',
    generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap((each) => (each.type === 'chunk' ? each.moduleIds : []));
      const folders = new Set(
        modules.flatMap((id) => id.match(/^.*\/node_modules\/(@[^/]+\/)?[^/]+/)?.[0] ?? []),
      );
      const texts = [...folders].map(licence).sort();
      this.emitFile({ type: 'asset', fileName: 'LICENSES.txt', source: texts.join('\n\n') });
    },
  };
}

function licence(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const [file] = globSync('{LICEN[SC]E,licen[sc]e}{,.*}', { cwd: folder });
  const text =
    file !== undefined && existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8') : '';
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
}
