import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { generatedFiles } from '../../src/cli/reference/json-schemas.ts';
import { manPage } from '../../src/cli/reference/man.ts';
import { cliPage } from '../../src/cli/reference/pages.ts';

describe('generated files', () => {
  test.each([...generatedFiles()])('%s is what the code says: npm run generate', (name, text) => {
    expect(readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')).toBe(text);
  });

  test('the manual page names every command and flag, and no text of it is taken for a request', () => {
    const page = manPage();
    for (const [, name] of cliPage().matchAll(/^## ([a-z]+)/gm)) expect(page).toContain(`vdcsync ${name}`);
    for (const [, flag = ''] of cliPage().matchAll(/^\| `(-[^`]+)`/gm)) {
      expect(page).toContain(`.B ${flag.replaceAll('-', '\\-')}\n`);
    }
    const requests = page.match(/^[.'].*$/gm) ?? [];
    expect(requests.filter((each) => !/^\.(\\"|TH|SH|SS|B|RI|TP|PP|RS|RE|nf|fi)( |$)/.test(each))).toEqual(
      [],
    );
  });
});
