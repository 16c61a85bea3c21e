import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { filesIn } from './texts.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const docs = filesIn('docs', /\.md$/);
const pages = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', ...docs];
const text = (page: string) => readFileSync(join(root, page), 'utf8').replace(/^ *```[\s\S]*?^ *```/gm, '');

/** The anchors of a page, as GitHub and GitLab derive them from its headings. */
function anchorsOf(page: string): string[] {
  return [...text(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Every link to a file or an anchor of this repository: the path from the root, and the anchor. */
function linksOf(page: string): { link: string; file: string; anchor: string | undefined }[] {
  return [...text(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
    if (/^[a-z]+:/.test(link)) return [];
    const [path = '', anchor] = link.split('#');
    return [{ link, file: path === '' ? page : normalize(join(dirname(page), path)), anchor }];
  });
}

describe('docs', () => {
  test.each([
    ['all pages', docs, 30_000],
    ['the page about safety', ['docs/safety.md'], 1_500],
  ])('%s has a limited number of words', (_name, read, most) => {
    const words = read.flatMap((page) => readFileSync(join(root, page), 'utf8').match(/\S+/g) ?? []);
    expect(words.length).toBeLessThanOrEqual(most);
  });

  test.each(pages)('%s: each link leads to a file and an anchor that exist', (page) => {
    const broken = linksOf(page).filter(
      ({ file, anchor }) =>
        !existsSync(join(root, file)) || (anchor !== undefined && !anchorsOf(file).includes(anchor)),
    );
    expect(broken.map(({ link }) => link)).toEqual([]);
  });

  test('no page has two headings with one anchor', () => {
    const twice = pages.flatMap((page) => {
      const anchors = anchorsOf(page);
      return anchors
        .filter((each, index) => anchors.indexOf(each) !== index)
        .map((each) => `${page}#${each}`);
    });
    expect(twice.filter((each) => !each.startsWith('CHANGELOG.md'))).toEqual([]);
  });

  test('README.md links to docs/README.md, and docs/README.md links to every page', () => {
    expect(linksOf('README.md').map(({ file }) => file)).toContain('docs/README.md');
    const listed = linksOf('docs/README.md').map(({ file }) => file);
    expect(docs.filter((page) => page !== 'docs/README.md' && !listed.includes(page))).toEqual([]);
  });

  test('each link of the documentation leads to a file in the package', () => {
    const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] };
    const packed = [...files, 'README.md', 'LICENSE'];
    const leadsOut = [...docs, 'README.md'].flatMap((page) =>
      linksOf(page)
        .filter(({ file }) => !packed.some((path) => file === path || file.startsWith(`${path}/`)))
        .map(({ link }) => `${page}: ${link}`),
    );
    expect(leadsOut).toEqual([]);
  });

  test.each(pages)('%s: each source file that it names exists', (page) => {
    const sources = [...filesIn('src', /\.ts$/), ...filesIn('tools', /\.ts$/)];
    const tests = filesIn('test', /\.ts$/);
    const named = [...text(page).matchAll(/`([a-z][a-z0-9/-]*\.ts)`/g)].map(([, name = '']) => name);
    const exists = (name: string) =>
      existsSync(join(root, name)) || [...sources, ...tests].some((file) => file.endsWith(`/${name}`));
    expect(named.filter((name) => !exists(name))).toEqual([]);
  });

  test('docs/runbook.md has a section for each alert, and each rule links to its section', () => {
    const rules = 'examples/prometheus/vdcsync.rules.yaml';
    const anchors = anchorsOf('docs/runbook.md');
    const sections = text('docs/runbook.md').match(/^## Vdcsync\w+$/gm) ?? [];
    const given = existsSync(join(root, rules)) ? readFileSync(join(root, rules), 'utf8') : '';
    const alerts = [...given.matchAll(/alert: (\w+)/g)].map(([, name = '']) => name);
    expect(alerts.filter((name) => !anchors.includes(name.toLowerCase()))).toEqual([]);
    if (given !== '') expect(sections.map((each) => each.slice(3)).toSorted()).toEqual(alerts.toSorted());
    for (const [, anchor = ''] of given.matchAll(/runbook\.md#([\w-]+)/g)) expect(anchors).toContain(anchor);
  });
});
