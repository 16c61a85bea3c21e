import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { shop } from '../cli/run.ts';
import { findBrowser, launchBrowser } from './browser.ts';
import { emulate, startConverged, startDaemon } from './support.ts';

const executable = findBrowser();
let browser: Browser;

describe.runIf(executable !== undefined)('src/daemon/http/page.ts: the status page in a browser', () => {
  beforeAll(async () => {
    browser = await launchBrowser(executable ?? '');
  });
  afterAll(() => browser.close());

  test('shows a picture of the project, the bill and the waits, and updates itself', async () => {
    const { daemon } = await startConverged(shop.replace('web: {}', 'web: {}\n  spare: {}'));
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith(daemon.url) && !request.url().startsWith('data:'))
        complaints.push(request.url());
    });
    await page.goto(daemon.url);
    await page.waitForSelector('.badge:text-is("converged")');
    expect(await page.title()).toMatch(/^✓ converged · /);
    expect(await page.locator('svg .box').count()).toBe(4);
    expect(await page.locator('svg .link').count()).toBe(2);
    expect(await page.locator('#bill').innerText()).toMatch(
      /203\.0\.113\.\d+ is idle and billed\s+ips\.\s*spare/,
    );
    expect(await page.locator('#resources').textContent()).toContain('servers.web-1.firewall');
    expect(await page.locator('#journal').textContent()).toContain('create servers.web-1');

    daemon.write(
      `${shop}    replace: never\n`
        .replace('cores: 2', 'cores: 4')
        .replace('web: {}', 'web: {}\n  spare: {}'),
    );
    await page.waitForSelector('.badge:text-is("blocked")');
    expect(await page.title()).toMatch(/^● blocked · /);
    const blocked = page.locator('#blocked');
    expect(await blocked.innerText()).toContain('servers.web-1');
    const [first] = (await daemon.until(({ condition }) => condition === 'blocked')).blocked;
    const [way = ''] = first?.resolve.split(' | ') ?? [];
    const shown = await blocked.locator('.way').first().innerText();
    // The case of the remedy stands above it.
    const [, text, when] = /^(.*) \((.*)\)$/.exec(way.replaceAll('`', '')) ?? [];
    expect(shown.toLowerCase()).toBe(`${when}:\n→ ${text}.`.toLowerCase());
    expect(await blocked.locator('.command').count()).toBe(0);

    daemon.write('version: 1\nproject: {id: 4711}\nnetworks: {"<b>x</b>": {cidr: 1}}\n');
    await page.waitForSelector('text=The spec has been broken');
    expect(await page.locator('b').count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('with a token, the browser asks for a password, and shows the page only with the right password', async () => {
    const password = 'page-canary-of-some-length';
    const daemon = await startDaemon(await emulate(), { env: { VDCSYNC_HTTP_TOKEN: password }, spec: shop });
    for (const path of ['/', '/page', '/events', '/status', '/metrics']) {
      expect([path, (await fetch(`${daemon.url}${path}`)).status]).toEqual([path, 401]);
    }
    expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
    const headers = { authorization: `Bearer ${password}` };
    expect((await fetch(`${daemon.url}/status`, { headers })).status).toBe(200);
    const open = async (httpCredentials: { username: string; password: string } | undefined) => {
      const context = await browser.newContext(httpCredentials === undefined ? {} : { httpCredentials });
      const page = await context.newPage();
      // Without an operator to ask, Chromium gives the refusal as an error of its own.
      const status = await page.goto(daemon.url).then(
        (answer) => answer?.status(),
        (error: Error) => /ERR_INVALID_AUTH_CREDENTIALS/.exec(error.message)?.[0] ?? error.message,
      );
      return { page, status };
    };
    const known = await open({ username: 'any', password });
    expect(known.status).toBe(200);
    await known.page.waitForSelector('#live:text-is("live")');
    expect(await known.page.content()).not.toContain(password);
    const wrong = await open({ username: 'any', password: 'a-guess' });
    const none = await open(undefined);
    for (const { page, status } of [wrong, none]) {
      expect([401, 'ERR_INVALID_AUTH_CREDENTIALS']).toContain(status);
      // After the refusal, Chromium navigates to an error page, and has no content to give while it does.
      await expect.poll(() => page.content()).not.toContain('servers.web-1');
    }
    const [response] = (await once(get(daemon.url), 'response')) as [IncomingMessage];
    response.resume();
    expect(response.headersDistinct['www-authenticate']).toEqual([
      expect.stringMatching(/^Basic realm="[^"]*"/),
      expect.stringMatching(/^Bearer realm="[^"]*"$/),
    ]);
    for (const { page } of [known, wrong, none]) await page.context().close();
  });
});
