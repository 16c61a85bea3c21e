import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Daemon } from '../../src/daemon/daemon.ts';
import { createApp } from '../../src/daemon/http/app.ts';
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
let browser: Browser;

describe.runIf(executable !== undefined)('src/daemon/http/page.ts: states in a browser', () => {
  beforeAll(async () => {
    browser = await launchBrowser(executable ?? '');
  });
  afterAll(() => browser.close());

  test.each(
    drawn(Object.keys(pageStates)),
  )('on a phone, %s: nothing leaves the screen, and no name in a key is cut', async (state) => {
    const page = await phone();
    await page.setContent(await pageOf(state));
    for (const each of await page.locator('details').all())
      await each.evaluate((details) => details.setAttribute('open', ''));
    const width = await page.locator('html').evaluate((root) => root.scrollWidth);
    const cut = await page
      .locator('.key > span')
      .evaluateAll((all) => all.filter((each) => each.getBoundingClientRect().height > 30).map(String));
    expect({ width, cut }).toEqual({ width: 390, cut: [] });
    await page.close();
  });

  test('the tab carries the state: a sign and a word in the title, a colour and a shape in the icon', async () => {
    const page = await phone();
    const tabs: Record<string, { title: string; icon: string | null }> = {};
    for (const state of Object.keys(pageStates)) {
      await page.setContent(await pageOf(state));
      tabs[state] = { title: await page.title(), icon: await page.locator('#icon').getAttribute('href') };
    }
    expect(Object.values(tabs).map(({ title }) => title)).toEqual([
      '✓ converged · shop',
      '◌ converging · shop',
      '▲ drifting · shop',
      '▲ awaiting approval · shop',
      '● blocked · shop',
      '● exposed · shop',
      '▲ billed and idle · shop',
      '● spec broken · shop',
      '● unauthorized · project 4711',
      '● 5 of 1000 need attention · vdcsync',
    ]);
    expect(new Set(Object.values(tabs).map(({ icon }) => icon)).size).toBe(4);
    await page.close();
  });

  test('an exposed server and money that leaks come first, then what is blocked, then everything else', async () => {
    const page = await phone();
    await page.setContent(await pageOf('exposed'));
    const ids = await page.locator('section').evaluateAll((all) => all.map(({ id }) => id));
    // The panel of dangers has the whole of these entries, so that nothing is read twice.
    expect(ids.slice(0, 3)).toEqual(['danger', 'idle', 'resources']);
    const danger = page.locator('#danger > ul > li, #idle > ul > li');
    const texts = await danger.evaluateAll((all) => all.map((each) => each.textContent ?? ''));
    expect(texts.map((text) => /exposed|billed and idle/.exec(text)?.[0])).toEqual([
      ...['exposed', 'exposed'],
      ...['billed and idle', 'billed and idle'],
    ]);
    expect(texts[0]).toMatch(/servers\.web-1 \(203\.0\.113\.10\) exposed for /);
    expect(texts[2]).toContain('3.20 EUR a month');

    await page.setContent(await pageOf('blocked'));
    const entry = page.locator('#blocked > ul > li').first();
    expect(await entry.textContent()).toMatch(/blocked for \d+ min/);
    expect(await entry.locator('time').first().getAttribute('title')).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/,
    );
    expect(await page.locator('#bill .sum').textContent()).toContain('125.20 EUR');
    await page.close();
  });

  test('a broken spec is as loud as a blocked write, and names the commit', async () => {
    const page = await phone();
    await page.setContent(await pageOf('broken'));
    const first = page.locator('section').first();
    expect(await first.getAttribute('id')).toBe('broken');
    expect(await first.getAttribute('class')).toContain('alarm');
    expect(await first.textContent()).toMatch(/b81f0c2e55d1.*vdcsync\.yaml:14:5/s);
    await page.close();
  });

  test('the header has the age of each of its words, and of the last refresh', async () => {
    const page = await phone();
    const headers: Record<string, string> = {};
    for (const state of ['exposed', 'leaking', 'broken']) {
      await page.setContent(await pageOf(state));
      headers[state] = (await page.locator('header').innerText()).replace(/\s+/g, ' ');
      expect(await page.locator('.fresh').innerText()).toMatch(/^Project last read: \d+ (s|min) ago/);
    }
    expect(headers).toEqual({
      exposed: expect.stringMatching(/^shop exposed for (1 h 59 min|2 h) blocked for 1 h 57 min$/),
      leaking: expect.stringMatching(/^shop billed and idle for (3 d|2 d 23 h).* converged for .* d/),
      broken: expect.stringMatching(/^shop spec broken for 40 min converged for /),
    });
    await page.close();
  });

  test('every danger and alarm says what to do', async () => {
    const page = await phone();
    for (const state of ['blocked', 'exposed', 'leaking', 'broken', 'unauthorized']) {
      await page.setContent(await pageOf(state));
      const items = page.locator('#danger > ul > li, #blocked > ul > li, #idle > ul > li, #broken, #error');
      const without = await items.evaluateAll((all) =>
        all
          .filter((each) => each.querySelector('.way, a[href="#blocked"]') === null)
          .map((each) => each.textContent)
          .filter((text) => !text.includes('No action is needed yet')),
      );
      expect([state, await items.count(), without]).toEqual([
        state,
        expect.toSatisfy((count: number) => count > 0),
        [],
      ]);
    }
    // The id of the address that is found is in the command.
    await page.setContent(await pageOf('blocked'));
    expect(await page.locator('#waits .command').allTextContents()).toContainEqual(
      expect.stringContaining('vdcsync resolve ips.mail --adopt 5003'),
    );
    await page.close();
  });

  test('without a refresh, no number is shown that only a refresh can give', async () => {
    const page = await phone();
    await page.setContent(await pageOf('unauthorized'));
    expect(await page.locator('.fresh').innerText()).toContain('Not read since vdcsync started');
    expect(await page.locator('#bill').innerText()).not.toContain('address');
    expect(await page.locator('#resources summary').innerText()).toBe('12 not read since vdcsync started');
    await page.close();
  });

  test('while the project converges, a bought address counts, and no resource is without a word', async () => {
    const page = await phone();
    await page.setContent(await pageOf('converging'));
    expect(await page.locator('#bill').innerText()).toContain('1 address, unmanaged ones included');
    expect(await page.locator('#resources').innerText()).not.toContain('no id');
    await page.close();
  });

  test('an operation in progress is not pending too', async () => {
    const page = await phone();
    await page.setContent(await pageOf('converging'));
    const began = await page.locator('#in-flight strong').allTextContents();
    expect(began).toHaveLength(5);
    expect(await page.locator('.chips').innerText()).toMatch(/5 in progress\s+4 pending/);
    const pending = await page.locator('#differences strong').allTextContents();
    expect(pending).toHaveLength(4);
    expect(pending.filter((each) => began.includes(each))).toEqual([]);
    await page.close();
  });

  test('a plan that waits for approval shows its fields, its impact and its cost, each once', async () => {
    const page = await phone();
    await page.setContent(await pageOf('approval'));
    const text = (await page.locator('#approval').innerText()).replace(/\s+/g, ' ');
    expect(text).toMatch(
      /update servers\. ?web-1\. ?firewall rules\[0\]\.destination_port: "?22,443"? → "?443"?/,
    );
    expect(text).toMatch(
      /delete servers\. ?web-2 id 2002, 203\.0\.113\.11 Impact: all data on its disks is lost/,
    );
    expect(text).toMatch(/Cost: −[\d.]+ EUR a month/);
    expect(text).toMatch(/203\.0\.113\.11 Undo: with another address\. After delete servers\. ?web-2/);
    expect(await page.locator('#differences').count()).toBe(0);
    await page.close();
  });

  test('drift shows both values of each changed field', async () => {
    const page = await phone();
    await page.setContent(await pageOf('drifting'));
    expect(await page.locator('.chips').innerText()).toContain('1 not corrected');
    expect(await page.locator('#differences li code').allTextContents()).toEqual([
      expect.stringMatching(/^rules\[0\]\.destination_port: "?22,443"? → "?443"?$/),
    ]);
    await page.close();
  });

  test('what is not converged stands above, and what is converged is folded', async () => {
    const page = await phone();
    await page.setContent(await pageOf('blocked'));
    const rows = page.locator('#resources > ul > li');
    expect(await rows.evaluateAll((all) => all.map((each) => each.textContent ?? ''))).toSatisfy(
      (texts: string[]) => texts.every((text) => !text.includes('converged')),
    );
    expect(await page.locator('#converged').getAttribute('open')).toBeNull();
    expect(await page.locator('#converged li').count()).toBe(7);
    await page.close();
  });

  test('a command is copied as a whole, and what the reader has opened stays open', async () => {
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
    changes.tell();
    await renewed;
    await page.waitForSelector('.copy:text-is("Copy")');
    expect(await page.locator('#converged').getAttribute('open')).not.toBeNull();
    // So that the next Tab continues from there.
    expect(await page.evaluate('document.activeElement.textContent')).toBe('7 converged');
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('of 1,000 projects the unhealthy come first; the others are found by name and by state', async () => {
    const { url } = await serve([], thousand());
    const page = await phone();
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

  test('without scripts the search of the overview works as well', async () => {
    const { url } = await serve([], thousand());
    const page = await browser.newPage({ javaScriptEnabled: false });
    await page.goto(url);
    await page.locator('#q').fill('4421');
    await page.locator('form button').click();
    expect(await page.locator('.projects strong').allTextContents()).toEqual(['billing-421']);
    expect(await page.locator('.copy:visible').count()).toBe(0);
    await page.close();
  });
});

async function phone(): Promise<Page> {
  return browser.newPage({ viewport: { width: 390, height: 844 } });
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
    ...{
      changes,
      version: '0',
      token: undefined,
      webhookSecret: undefined,
      approveToken: undefined,
      loopback: true,
    },
  });
  const server = await startServer(app, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  return { url: `http://127.0.0.1:${server.port}`, changes };
}

function summaryOf({ id, condition, conditionSince }: ProjectFacts): ProjectSummary {
  return {
    id: id ?? 0,
    name: 'shop',
    condition: condition ?? 'starting',
    since: conditionSince,
    now: 0,
    reconciledAt: undefined,
    blocked: 0,
    exposed: false,
    leaking: false,
    broken: false,
  };
}
