import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { renderPage } from '../../src/daemon/http/page.ts';
import { pageStates } from '../support/page-states.ts';
import { findBrowser, launchBrowser } from './browser.ts';

// `npm run screenshots [-- FOLDER [STATE …]]`: pictures of the status page in each state that an operator meets, on a
// phone and on a desktop, in light and dark. They are made to be looked at; a folder that is not given is a new one.
const options = { help: { type: 'boolean', short: 'h' } } as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
if (values.help) {
  process.stdout.write(
    `Usage: npm run screenshots [-- FOLDER [STATE …]]\nStates: ${Object.keys(pageStates).join(', ')}\n`,
  );
  process.exit();
}
const [folder = mkdtempSync(join(tmpdir(), 'vdcsync-screenshots-')), ...wanted] = positionals;
const states = wanted.length === 0 ? Object.keys(pageStates) : wanted;

const screens = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } } as const;

const executable = findBrowser();
if (executable === undefined) throw new Error('No browser found: install chromium, or set CHROMIUM_PATH.');
mkdirSync(folder, { recursive: true });
const browser = await launchBrowser(executable);
for (const state of states) {
  const input = await pageStates[state]?.();
  if (input === undefined) throw new Error(`No state ${state}: ${Object.keys(pageStates).join(', ')}`);
  const text = String(await renderPage(input, 'screenshot'));
  for (const [screen, viewport] of Object.entries(screens)) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await browser.newPage({
        viewport,
        colorScheme,
        deviceScaleFactor: screen === 'phone' ? 2 : 1,
      });
      await page.setContent(text);
      const path = join(folder, `${state}-${screen}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true });
      await page.close();
    }
  }
}
await browser.close();
process.stdout.write(`${folder}\n`);
