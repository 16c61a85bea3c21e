import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { profileSchema } from '../../src/cli/settings/profile.ts';
import { codes, explanationOf } from '../../src/core/codes.ts';
import { undocumentedOperations } from '../../src/core/profile.ts';
import { folderWith, inProcess } from './run.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = [
  'docs/tutorial.md',
  ...readdirSync(join(root, 'docs/how-to')).map((name) => `docs/how-to/${name}`),
];

interface Block {
  readonly language: string;
  readonly lines: readonly string[];
}

function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(/^( *)```(\w+)\n([\s\S]*?)^ *```/gm)].map(
    ([, indent = '', language = '', body = '']) => ({
      language,
      lines: body.split('\n').map((line) => line.slice(indent.length)),
    }),
  );
}

/** Writes the files of a page and runs its commands, in the order of the page. Each line of output on the page must be printed. */
async function follow(page: string): Promise<{ readonly commands: number; readonly cwd: string }> {
  const cwd = folderWith();
  let commands = 0;
  for (const { language, lines } of blocksOf(page)) {
    const file = /^# file: (\S+)$/.exec(lines[0] ?? '')?.[1];
    if (language === 'yaml' && file !== undefined) {
      mkdirSync(dirname(join(cwd, file)), { recursive: true });
      writeFileSync(join(cwd, file), lines.slice(1).join('\n'));
    }
    if (language !== 'console') continue;
    let printed: readonly string[] = [];
    for (const line of lines) {
      const [, command = '', , exit = '0'] = /^\$ (.*?)( +# exits (\d+))?$/.exec(line) ?? [];
      if (command === '') {
        if (line !== '' && line !== '…') expect(printed, `${page}: the output of a command`).toContain(line);
        continue;
      }
      const [program, ...args] = command.trim().split(/ +/);
      if (program !== 'vdcsync') execFileSync(program ?? '', args, { cwd });
      else {
        const { stdout, ...ended } = await run(args, cwd);
        expect(ended, `${page}: ${command}`).toMatchObject({ code: Number(exit) });
        printed = stdout.split('\n');
      }
      commands += 1;
    }
  }
  return { commands, cwd };
}

async function run(args: readonly string[], cwd: string) {
  const { code, stderr, stdout } = await inProcess(args, { cwd });
  return { code, stdout, said: `${stderr}${stdout}`.slice(-400) };
}

describe('docs', () => {
  test.each(pages)('%s: every command works as the page shows', async (page) => {
    const { commands } = await follow(page);
    expect(commands > 0 || !readFileSync(join(root, page), 'utf8').includes('```console')).toBe(true);
  });

  test('the take-over guide adopts existing resources', async () => {
    const { cwd } = await follow('docs/how-to/take-over.md');
    const { stdout } = await inProcess(['status', '--emulator', '--format', 'json'], { cwd });
    const keys = (JSON.parse(stdout) as { resources: { key: string }[] }).resources.map(({ key }) => key);
    expect(keys).toEqual(expect.arrayContaining(['servers.server-2001', 'networks.backend']));
  });

  test('docs/how-to/undocumented.md explains every field of an API profile', () => {
    const page = readFileSync(join(root, 'docs/how-to/undocumented.md'), 'utf8');
    for (const field of Object.keys(profileSchema.shape)) expect(page).toMatch(new RegExp(`\\b${field}\\b`));
    for (const name of undocumentedOperations) expect(page).toContain(`\`${name}\``);
  });

  test('the spec reference lists unsupported YAML, and fields without a complete list of values', () => {
    const page = readFileSync(join(root, 'docs/reference/file.md'), 'utf8');
    for (const what of ['aliases', 'merge keys', 'tags', 'directives', '1 MiB', '32 levels'])
      expect(page).toContain(what);
    expect(page).toMatch(/`firewall\.policy_in`.*no complete list.*sent unchanged/);
  });

  test('every code that the program reports has an explanation, and no other code has one', () => {
    const source = ['src/reconcilers', 'src/plan', 'src/engine', 'src/daemon/project'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => readFileSync(join(root, folder, name), 'utf8')),
    );
    const given = new Set(
      source.flatMap((text) =>
        [
          ...text.matchAll(/\bcode: '([a-z_]+)'/g),
          ...text.matchAll(/\bblocked\(\s*'(?:create|update|delete|adopt)',\s*'([a-z_]+)'/g),
          ...text.matchAll(/\b(?:block|warn|offer)\(run, [\w.]+, '([a-z_]+)'/g),
          ...text.matchAll(/\bwait\(.*, '([a-z_]+)', /g),
        ].map(([, code = '']) => code),
      ),
    );
    expect([...given].filter((code) => explanationOf(code) === undefined)).toEqual([]);
    const all = source.join('\n');
    expect(Object.keys(codes).filter((code) => !all.includes(`'${code}'`))).toEqual([]);
  });
});
