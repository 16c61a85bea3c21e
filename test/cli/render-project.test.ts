import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { folderWith, vdcsync } from './run.ts';

const example = readFileSync(new URL('../../examples/forty-servers.ts', import.meta.url), 'utf8');
const rendered = async (program: string, name = 'project.ts') => {
  const cwd = folderWith({ [name]: program });
  return { cwd, ...(await vdcsync(['render', name, '--out', 'vdcsync.yaml'], { cwd })) };
};

describe('src/cli/commands/render.ts', () => {
  test('renders 40 servers from 15 lines as a valid spec', async () => {
    expect(example.trim().split('\n').length).toBeLessThanOrEqual(15);
    const { cwd, code, stderr } = await rendered(example);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { stdout } = await vdcsync(['plan', '--emulator', '--format', 'json'], { cwd });
    const keys = (JSON.parse(stdout) as { operations: { key: string }[] }).operations.map(({ key }) => key);
    expect(keys.filter((key) => /^servers\.web-\d\d$/.test(key))).toHaveLength(40);
    const { code: again } = await vdcsync(['validate'], { cwd });
    expect(again).toBe(0);
  });

  test('renders YAML without aliases, and the same YAML each time', async () => {
    const program = `const rule = {direction: 'in', action: 'accept'};
      const web = {server_type: 3, image: 'x', plan_id: 1, public_ipv4: {new: true as const}, firewall: {enabled: true, rules: [rule, rule]}};
      export default async () => ({version: 1, project: {id: 1}, servers: {a: web, b: web}, settings: undefined});`;
    const first = await rendered(program);
    const text = readFileSync(join(first.cwd, 'vdcsync.yaml'), 'utf8');
    expect(text).not.toMatch(/[&*]a\d/);
    expect(parse(text).servers.b.firewall.rules).toHaveLength(2);
    expect(readFileSync(join((await rendered(program)).cwd, 'vdcsync.yaml'), 'utf8')).toBe(text);
  });

  test('reports the errors of an invalid project, and replaces no spec', async () => {
    const spec = "{version: 1, project: {id: 1}, networks: {a: {cidrr: '10.0.0.0/24'}}}";
    const { cwd, code, stderr } = await rendered(`export default ${spec}`);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^project\.ts \(rendered\):\d+:\d+: unknown field `cidrr`/),
    ]);
    expect(existsSync(join(cwd, 'vdcsync.yaml'))).toBe(false);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the spec's own syntax
    const unset = "{version: 1, project: {id: 1}, networks: {a: {cidr: '${env:NOT_SET_HERE}'}}}";
    expect((await rendered(`export default ${unset}`)).code).toBe(0);
  });

  test.each([
    ['a function', 'export default {project: {id: () => 1}}', 'project.id is a function'],
    ['a date', 'export default {settings: {suspend: new Date(0)}}', 'settings.suspend is a Date'],
    ['no default export', 'export const project = {}', 'export default defineProject'],
    ['an error', 'throw new RangeError("no such region")', 'RangeError: no such region'],
    ['TypeScript that Node cannot strip', 'enum A { b }\nexport default {}', 'project.ts does not run'],
  ])('refuses a program with %s, and writes nothing', async (_what, program, text) => {
    const { cwd, code, stderr } = await rendered(program);
    expect(code).toBe(1);
    expect(stderr).toContain(text);
    expect(existsSync(join(cwd, 'vdcsync.yaml'))).toBe(false);
  });

  test('no other command runs a program', async () => {
    const cwd = folderWith({
      'project.ts': `import { writeFileSync } from 'node:fs'; writeFileSync('ran', ''); export default {};`,
    });
    for (const command of ['validate', 'plan', 'apply', 'rehearse']) {
      const args = [command, '-f', 'project.ts', ...(command === 'validate' ? [] : ['--emulator'])];
      const yes = command === 'apply' ? ['--yes'] : [];
      const { code, stderr } = await vdcsync([...args, ...yes], { cwd });
      expect(code).toBe(1);
      expect(stderr).toContain('vdcsync render project.ts');
    }
    expect(existsSync(join(cwd, 'ran'))).toBe(false);
  });
});
