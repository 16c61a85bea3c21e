import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { generatedFiles } from '../../tools/generated-files.ts';
import { manPages } from '../../tools/man.ts';
import { cliPage } from '../../tools/pages.ts';

describe('tools/generated-files.ts', () => {
  test.each([...generatedFiles()])('%s matches the code: npm run generate', (name, text) => {
    expect(readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')).toBe(text);
  });

  test('each command has a manual page with its flags, and no text becomes a roff request', () => {
    const pages = manPages();
    const main = pages.get('vdcsync.1') ?? '';
    for (const section of cliPage().split(/^## /m).slice(1)) {
      const name = /^([a-z-]+)( |$)/m.exec(section)?.[1] ?? '';
      const page = pages.get(`vdcsync-${name}.1`);
      if (page === undefined) continue;
      expect(main).toContain(`vdcsync\\-${name.replaceAll('-', '\\-')}(1)`);
      for (const [, flag = ''] of section.matchAll(/^- `(-[^`]+)`/gm)) {
        expect(page).toContain(`.B ${flag.replaceAll('-', '\\-')}\n`);
      }
    }
    expect(pages.size).toBeGreaterThan(20);
    const requests = [...pages.values()].flatMap((page) => page.match(/^[.'].*$/gm) ?? []);
    expect(requests.filter((each) => !/^\.(\\"|TH|SH|SS|B|I|RI|TP|nf|fi)( |$)/.test(each))).toEqual([]);
  });
});
