import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** A browser on this machine; `undefined` where there is none, which with REQUIRE_PROGRAMS is an error. */
export function findBrowser(): string | undefined {
  const found = [process.env.CHROMIUM_PATH ?? '', ...places].find((path) => path !== '' && existsSync(path));
  if (found === undefined && process.env.REQUIRE_PROGRAMS !== undefined) {
    throw new Error('The status page is tested in a real browser: install chromium, or set CHROMIUM_PATH.');
  }
  if (found === undefined)
    process.stderr.write('The status page is not tested in a browser: install chromium.\n');
  return found;
}

/** Without a sandbox, which containers do not allow, and without anything that calls home. */
export function launchBrowser(executablePath: string): Promise<Browser> {
  const args = [
    ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
    ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  ];
  return chromium.launch({ executablePath, args });
}
