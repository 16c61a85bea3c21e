import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { emulate, startDaemon } from './support.ts';

const canary = 'canary-5f3a9c-of-the-daemon';
const spec = `version: 1
project: { id: 4711 }
settings: { max_deletions: 0 }
isos:
  rescue: { url: "https://mirror.example.com/\${env:KEY}/rescue.iso" }
`;

describe('src/core/hidden-texts.ts: values from the environment in a daemon', () => {
  test('appear in no page, status, metric, notification, log line or file', async () => {
    const api = await emulate();
    const env = { KEY: canary, LOG_LEVEL: 'trace' };
    const daemon = await startDaemon(api, { spec, env, args: ['--allow-env', 'KEY'] });
    await daemon.until(({ resources }) => resources.some(({ key }) => key === 'isos.rescue'));
    daemon.write(spec.replace('rescue.iso', 'other.iso'));
    await daemon.until(({ condition }) => condition === 'blocked');
    await vi.waitFor(() => expect(daemon.notified).not.toEqual([]), 30_000);
    const shown: [string, string][] = [];
    for (const path of ['/', '/status', '/metrics'])
      shown.push([path, await (await fetch(`${daemon.url}${path}`)).text()]);
    shown.push(['log', JSON.stringify(daemon.log())], ['notifications', JSON.stringify(daemon.notified)]);
    await daemon.end();
    for (const name of readdirSync(daemon.folder, { recursive: true, encoding: 'utf8' }))
      if (statSync(join(daemon.folder, name)).isFile())
        shown.push([name, readFileSync(join(daemon.folder, name), 'latin1')]);
    expect(shown.map(([, text]) => text).join()).toContain(`$\{env:KEY}`);
    for (const [name, text] of shown) expect([name, text.includes('canary')]).toEqual([name, false]);
  });
});
