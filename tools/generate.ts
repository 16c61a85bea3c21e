import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generatedFiles } from './generated-files.ts';

// `npm run generate` writes the generated files. With --check it only reports whether the files are current.
const checkOnly = process.argv.includes('--check');

for (const [name, text] of generatedFiles()) {
  const path = fileURLToPath(new URL(`../${name}`, import.meta.url));
  if (read(path) === text) continue;
  if (checkOnly) {
    process.stderr.write(`${name} does not match the code: run \`npm run generate\`\n`);
    process.exitCode = 1;
    continue;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  process.stdout.write(`${name}\n`);
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
