import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { folderWith, inProcess } from '../cli/run.ts';
import { findBrowser, launchBrowser } from '../daemon/browser.ts';
import { emulate, startDaemon } from '../daemon/support.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const shop = readFileSync(join(root, 'examples/shop.yaml'), 'utf8');
/** `npm run pictures` sets it. */
const isWriting = process.env.WRITE_PICTURES === '1';
const executable = findBrowser();

/** `npm run pictures` draws the pictures of the README again; the tests compare them with the program of today. */
describe('docs/pictures', () => {
  test('plan.svg shows the plan of examples/shop.yaml', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const { stdout } = await inProcess(['plan', '--emulator', '--format', 'svg'], { cwd });
    await expect(stdout).toMatchFileSnapshot(join(root, 'docs/pictures/plan.svg'));
  });

  test.runIf(executable !== undefined)(
    'status-page.png has the headings and the style of the page',
    async () => {
      const browser = await launchBrowser(executable ?? '');
      try {
        const api = await emulate({ seed: 'pictures' });
        const daemon = await startDaemon(api, { spec: shop });
        await daemon.until(({ converged }) => converged);
        daemon.write(shop.replace('cores: 4', 'cores: 8'));
        await daemon.until(({ condition }) => condition === 'blocked');
        const page = await browser.newPage({ viewport: { width: 1000, height: 820 }, colorScheme: 'light' });
        await page.goto(daemon.url);
        await page.waitForSelector('text=blocked');
        if (isWriting) await page.screenshot({ path: join(root, 'docs/pictures/status-page.png') });
        const headings = await page.locator('h1, h2, .badge, th').allInnerTexts();
        const style = createHash('sha256').update(await page.locator('style').first().innerHTML());
        const shown = headings.map((each) => each.replace(/\d+ (s|min|ms)\b/g, '… $1'));
        const text = [`style ${style.digest('hex').slice(0, 12)}`, ...shown, ''].join('\n');
        await expect(text).toMatchFileSnapshot(join(root, 'test/pictures/status-page.txt'));
      } finally {
        await browser.close();
      }
    },
  );
});
