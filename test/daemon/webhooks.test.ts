import { createHmac } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { type WebhookOptions, webhooks } from '../../src/daemon/http/webhooks.ts';
import { quiet } from '../support/project.ts';
import { virtualClock } from '../support/virtual-clock.ts';

const body = '{"ref":"refs/heads/main","after":"0123"}';
const hmac = (secret: string, text = body) => createHmac('sha256', secret).update(text).digest('hex');

let pushes = 0;
let results: string[] = [];
beforeEach(() => {
  pushes = 0;
  results = [];
});

function app(options: Partial<WebhookOptions> = {}) {
  return webhooks({
    secret: () => 'new-secret,old-secret',
    clock: virtualClock(),
    log: quiet,
    onPush: () => {
      pushes += 1;
    },
    onDelivery: (_forge, result) => results.push(result),
    ...options,
  });
}

const deliver = (to: ReturnType<typeof app>, forge: string, headers: Record<string, string>, text = body) =>
  to.request(`/hooks/${forge}`, { method: 'POST', body: text, headers });

type Headers = (secret: string) => Record<string, string>;

const signed = (name: string, prefix: string, more: Record<string, string>): Headers => {
  return (secret) => ({ [name]: `${prefix}${hmac(secret)}`, ...more });
};
const withSecret: Headers = (secret) => ({ 'X-Gitlab-Token': secret, 'X-Gitlab-Event': 'Push Hook' });

/** What each forge sends, with a secret. */
const genuine: readonly (readonly [string, Headers])[] = [
  [
    'github',
    signed('X-Hub-Signature-256', 'sha256=', { 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'a1' }),
  ],
  ['gitlab', (secret) => ({ ...withSecret(secret), 'Idempotency-Key': 'b1' })],
  ['gitea', signed('X-Gitea-Signature', '', { 'X-Gitea-Event': 'push', 'X-Gitea-Delivery': 'c1' })],
  ['gitea', signed('X-Forgejo-Signature', '', { 'X-Forgejo-Event': 'push', 'X-Forgejo-Delivery': 'd1' })],
  ['bitbucket', signed('X-Hub-Signature', 'sha256=', { 'X-Event-Key': 'repo:push', 'X-Request-UUID': 'e1' })],
];

describe('src/daemon/http/webhooks.ts', () => {
  test.each(genuine)('%s: accepts a genuine delivery once, with either secret', async (forge, headers) => {
    const to = app();
    expect((await deliver(to, forge, headers('new-secret'))).status).toBe(202);
    expect((await deliver(to, forge, headers('new-secret'))).status).toBe(202);
    expect([pushes, ...results]).toEqual([1, 'accepted', 'repeated']);
    expect((await deliver(app(), forge, headers('old-secret'))).status).toBe(202);
  });

  test.each(
    genuine,
  )('%s: refuses a forged delivery, another body, and missing headers', async (forge, headers) => {
    const to = app();
    expect((await deliver(to, forge, headers('guess'))).status).toBe(401);
    expect((await deliver(to, forge, {})).status).toBe(401);
    if (forge !== 'gitlab')
      expect((await deliver(to, forge, headers('new-secret'), `${body} `)).status).toBe(401);
    expect(pushes).toBe(0);
  });

  test('accepts the signature example of GitHub', async () => {
    const to = app({ secret: () => "It's a Secret to Everybody" });
    const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
    const { status } = await deliver(to, 'github', { 'X-Hub-Signature-256': signature }, 'Hello, World!');
    expect(status).toBe(202);
  });

  test('answers 404 for an unknown forge, and without a secret for every forge', async () => {
    expect((await deliver(app(), 'sourceforge', {})).status).toBe(404);
    expect((await deliver(app({ secret: undefined }), 'gitlab', { 'X-Gitlab-Token': '' })).status).toBe(404);
    expect((await app().request('/hooks/sourceforge')).status).toBe(404);
  });

  test('answers another method with 405 and the allowed method POST', async () => {
    const answer = await app().request('/hooks/github');
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('refuses a large body by its Content-Length without a read, or during the read', async () => {
    const announced = await deliver(app(), 'github', { 'content-length': String(1024 * 1024 + 1) });
    expect(announced.status).toBe(413);
    let read = 0;
    const endless = new ReadableStream({
      pull(controller) {
        read += 1;
        controller.enqueue(new Uint8Array(64 * 1024));
      },
    });
    const request = new Request('http://daemon/hooks/github', {
      method: 'POST',
      headers: { 'X-Hub-Signature-256': `sha256=${hmac('guess')}` },
      body: endless,
      duplex: 'half',
    } as RequestInit);
    expect((await app().request(request)).status).toBe(413);
    expect(read).toBeLessThan(25);
  });

  test('answers 429 to more than two genuine deliveries a second', async () => {
    const clock = virtualClock();
    const to = app({ clock });
    const statuses: number[] = [];
    for (let count = 0; count < 121; count += 1)
      statuses.push((await deliver(to, 'gitlab', { 'X-Gitlab-Token': 'new-secret' })).status);
    expect(statuses.filter((status) => status === 429)).toHaveLength(1);
    await clock.run(clock.sleep(60_000));
    expect((await deliver(to, 'gitlab', { 'X-Gitlab-Token': 'new-secret' })).status).toBe(202);
  });

  test('limits forged deliveries and their log lines, without an effect on genuine deliveries', async () => {
    const warnings: unknown[] = [];
    const log = { ...quiet, warn: (fields: object) => warnings.push(fields) };
    const to = app({ log });
    const forged: readonly (readonly [string, Record<string, string>])[] = [
      ['gitlab', { 'X-Gitlab-Token': 'x' }],
      ['github', { 'X-Hub-Signature-256': `sha256=${hmac('guess')}` }],
    ];
    const statuses: number[] = [];
    for (let count = 0; count < 300; count += 1) {
      const [forge, headers] = forged[count % 2] ?? ['', {}];
      statuses.push((await deliver(to, forge, headers)).status);
    }
    expect(statuses.filter((status) => status === 401)).toHaveLength(60);
    expect(statuses.at(-1)).toBe(429);
    expect(warnings).toHaveLength(60);
    for (const [forge, headers] of genuine.slice(0, 2)) {
      expect((await deliver(to, forge, headers('new-secret'))).status).toBe(202);
    }
    expect(pushes).toBe(2);
  });
});
