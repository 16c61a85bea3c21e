import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Daemon } from '../../src/daemon/daemon.ts';
import { createApp, unseen } from '../../src/daemon/http/app.ts';
import { Changes } from '../../src/daemon/http/changes.ts';
import type { Metrics } from '../../src/daemon/http/metrics.ts';
import { type PageInput, renderPage } from '../../src/daemon/http/page.ts';
import { startServer } from '../../src/daemon/http/server.ts';
import type { DaemonDeps } from '../../src/daemon/ports.ts';
import type { ProjectSummary } from '../../src/daemon/project/facts.ts';
import { systemClock } from '../../src/platform/system.ts';
import type { ProjectFacts } from '../../src/view/facts.ts';
import { drawn } from '../support/drawn.ts';
import { pageStates, thousand } from '../support/page-states.ts';
import { findBrowser, launchBrowser } from './browser.ts';

const executable = findBrowser();
const phone = { width: 390, height: 844 };
let browser: Browser;

describe('src/daemon/http/page.ts: golden texts', () => {
  // Written again by `ALL_CASES=1 npx vitest run test/daemon/page-states --update`.
  test.each(Object.keys(pageStates))('the page of a project or fleet: %s', async (state) => {
    await expect(`${textOf(await pageOf(state))}\n`).toMatchFileSnapshot(`./pages/${state}.txt`);
  });

  test('the tab has a separate icon for each of four degrees of urgency', async () => {
    const all = await Promise.all(Object.keys(pageStates).map(pageOf));
    const icons = all.map((page) => /<link[^>]* id="icon"[^>]*>/.exec(page)?.[0]);
    expect(icons).not.toContain(undefined);
    expect(new Set(icons).size).toBe(4);
  });
});

describe.runIf(executable !== undefined)('src/daemon/http/page.ts: states in a browser', () => {
  beforeAll(async () => {
    browser = await launchBrowser(executable ?? '');
  });
  afterAll(() => browser.close());

  test.each(
    drawn(Object.keys(pageStates)),
  )('on a phone and on a desktop, %s: nothing is outside the screen, and no name in a key is cut', async (state) => {
    for (const viewport of [phone, { width: 1280, height: 900 }]) {
      const page = await browser.newPage({ viewport });
      await page.setContent(await pageOf(state));
      for (const each of await page.locator('details').all())
        await each.evaluate((details) => details.setAttribute('open', ''));
      const width = await page.locator('html').evaluate((root) => root.scrollWidth);
      const cut = await page
        .locator('.key > span')
        .evaluateAll((all) => all.filter((each) => each.getBoundingClientRect().height > 30).map(String));
      expect({ width, cut }).toEqual({ width: viewport.width, cut: [] });
      await page.close();
    }
  });

  test('a command is copied completely, and opened sections stay open', async () => {
    const input = await pageStates.blocked?.();
    const { url, changes } = await serve([input?.facts]);
    const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    await page.goto(url);
    await page.waitForSelector('#live:text-is("live")');
    await page.locator('#blocked .copy').first().click();
    await page.waitForSelector('.copy:text-is("Copied")');
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('vdcsync forget servers.web-2');
    await page.locator('#converged summary').click();
    const renewed = page.waitForResponse((answer) => answer.url().endsWith('/page'));
    changes.changed();
    await renewed;
    await page.waitForSelector('.copy:text-is("Copy")');
    expect(await page.locator('#converged').getAttribute('open')).not.toBeNull();
    // So that the next Tab continues from there.
    expect(await page.evaluate('document.activeElement.textContent')).toBe('7 converged');
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('lists unhealthy projects of 1,000 first, and finds the others by name and by state', async () => {
    const { url } = await serve([], thousand());
    const page = await browser.newPage({ viewport: phone });
    await page.goto(url);
    await page.waitForSelector('#live:text-is("live")');
    const names = () => page.locator('.projects li strong').allTextContents();
    expect((await names()).slice(0, 4)).toEqual(['search-007', 'billing-421', 'analytics-339', 'search-837']);
    expect(await page.locator('.projects li').count()).toBe(14);
    expect(await page.locator('#projects .fresh').innerText()).toMatch(
      /^Oldest reconciliation: 5 min ago\s+1 not reconciled since vdcsync started$/,
    );
    // The age is that of the condition, and says so.
    expect(await page.locator('.projects li', { hasText: 'search-512' }).innerText()).toMatch(
      /billed and idle\s+· converged for 6 h 24 min/,
    );
    await page.locator('#q').pressSequentially('media-3');
    await page.waitForSelector('.projects strong:text-is("media-303")');
    expect((await names()).every((name) => name.startsWith('media-3'))).toBe(true);
    expect(await page.locator('#q').inputValue()).toBe('media-3');

    await page.goto(url);
    // The worse of the two blocked projects is found as well.
    await page.locator('.chip', { hasText: 'blocked' }).click();
    await page.waitForURL(/state=blocked/);
    expect(await names()).toEqual(['search-007', 'shop-505']);
    const time = page.locator('.projects time').first();
    await time.click();
    expect(await time.textContent()).toMatch(/^2026-01-01 .*UTC/);

    await page.goto(url);
    await page.locator('.chip', { hasText: 'suspended' }).click();
    await page.waitForURL(/state=suspended/);
    expect(await names()).toEqual(['search-422', 'shop-920']);
    await page.goto(`${url}/?state=converged`);
    expect(await page.locator('.projects li').count()).toBe(100);
    await page.close();
  });

  test('the search of the overview works without scripts', async () => {
    const { url } = await serve([], thousand());
    const page = await browser.newPage({ javaScriptEnabled: false });
    await page.goto(url);
    await page.locator('#q').fill('4421');
    await page.locator('form button').click();
    expect(await page.locator('.projects strong').allTextContents()).toEqual(['billing-421']);
    expect(await page.locator('.copy:visible').count()).toBe(0);
    expect(await page.locator('noscript meta[http-equiv=refresh]').count()).toBe(1);
    await page.close();
  });
});

/**
 * The visible text of a page, with the names of its sections. Without the sections that count requests and list the last
 * writes and reconciliations: each change of the engine changes their numbers.
 */
function textOf(page: string): string {
  return page
    .replace(/<(style|script|svg|noscript)\b[\s\S]*?<\/\1>/g, '')
    .replace(/<section\b[^>]*\bid="([^"]*)"[^>]*>/g, '\n\n[$1]\n')
    .replace(/<(li|h\d|p|summary|header|title|footer|details|div)\b[^>]*>/g, '\n')
    .replace(/<[^>]*>/g, ' ')
    .replace(/[ \t]+/g, ' ')
    .replace(/ ?\n ?/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/\n\[(budgets|reconciliations|journal)\]\n[\s\S]*?(?=\n\[|$)/g, '')
    .replaceAll('&quot;', '"')
    .trim();
}

const made = new Map<string, Promise<PageInput>>();

async function pageOf(state: string): Promise<string> {
  const make = pageStates[state];
  if (make === undefined) throw new Error(`no state ${state}`);
  const input = made.get(state) ?? make();
  made.set(state, input);
  return String(await renderPage(await input, 'test'));
}

/** The real app over HTTP, of a daemon with these projects. */
async function serve(facts: readonly (ProjectFacts | undefined)[], summaries?: readonly ProjectSummary[]) {
  const changes = new Changes(systemClock);
  const known = facts.flatMap((each) => (each === undefined ? [] : [each]));
  const projects = [
    ...known.map((each) => ({ id: each.id ?? 0, facts: async () => each, summary: () => summaryOf(each) })),
    ...(summaries ?? []).map((each) => ({ id: each.id, facts: async () => undefined, summary: () => each })),
  ];
  const state = { name: 'file', commit: undefined, readAt: 0, error: undefined, orphans: [] };
  const app = createApp({
    daemon: { projects: () => projects, specs: { state: () => state } } as unknown as Daemon,
    deps: { clock: systemClock, log: { error: () => {} } } as unknown as DaemonDeps,
    metrics: {} as Metrics,
    ...{ changes, version: '0', loopback: true },
    ...{ token: undefined, webhookSecret: undefined, approveToken: undefined },
  });
  const server = await startServer(app, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  return { url: `http://127.0.0.1:${server.port}`, changes };
}

function summaryOf({ id, condition = 'starting', conditionSince: since }: ProjectFacts): ProjectSummary {
  return { ...unseen(id ?? 0, 0), name: 'shop', condition, since };
}
