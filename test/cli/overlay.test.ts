import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fileSource } from '../../src/daemon/sources/file-source.ts';
import { systemClock } from '../../src/platform/system.ts';
import { quiet } from '../support/project.ts';
import { folderWith, oneNetwork } from './run.ts';
import { emulated } from './workspace.ts';

const overlay = 'networks: {backend: {cidr: 10.99.0.0/24}}\n';
const files = { 'vdcsync.yaml': oneNetwork, 'prod.yaml': overlay };

describe('src/spec: --overlay', () => {
  test('plan and apply use the overlay, and the next plan is empty', async () => {
    const place = emulated(oneNetwork, { 'prod.yaml': overlay });
    const [operation] = (await place.json('plan --overlay prod.yaml')).operations;
    expect(operation.changes).toContainEqual({ path: 'cidr', from: null, to: '10.99.0.0/24' });
    await place.out('apply --yes --overlay prod.yaml');
    expect((await place.json('plan --overlay prod.yaml')).operations).toEqual([]);
    expect((await place.json('plan')).operations).not.toEqual([]);
  });

  test('validate names both files on standard error', async () => {
    const place = emulated(oneNetwork, { 'prod.yaml': 'networks: {backend: {cdir: 1}}\n' });
    const told = await place.refused(1, 'validate --overlay prod.yaml');
    expect(told).toMatch(/^prod\.yaml:1:22: .*vdcsync\.yaml:\d+:\d+/);
  });

  test.each([
    ['standard input as the overlay', 'validate --overlay -'],
    ['the spec itself as the overlay', 'validate -f vdcsync.yaml --overlay vdcsync.yaml'],
  ])('refuses %s', async (_what, words) => {
    expect(await emulated(oneNetwork).refused(64, words)).not.toBe('');
  });

  test('rehearse runs the spec with the overlay and its defaults', async () => {
    const servers =
      'defaults: {servers: {server_type: plans-1, plan_id: 52, image: debian-13}}\nservers: {a: {}}\n';
    const place = emulated(oneNetwork, { 'prod.yaml': servers });
    const { stdout } = await place.run('rehearse --overlay prod.yaml --trials 1 --format json');
    const { operations } = JSON.parse(stdout) as { operations: { id: string }[] };
    expect(operations.map(({ id }) => id)).toContain('create:servers.a');
  });
});

describe('src/daemon/sources/file-source.ts', () => {
  test('marks an overlay as an overlay, and watches its file', async () => {
    const cwd = folderWith(files);
    const stop = new AbortController();
    const source = fileSource({
      files: [
        { path: join(cwd, 'vdcsync.yaml'), name: 'vdcsync.yaml' },
        { path: join(cwd, 'prod.yaml'), name: 'prod.yaml', overlay: true },
      ],
      ...{ folder: false, clock: systemClock, log: quiet, rereadMs: 60_000 },
    });
    let hints = 0;
    const watching = source.watch(() => void hints++, stop.signal).catch(() => undefined);
    onTestFinished(async () => {
      stop.abort();
      await watching;
    });
    await expect.poll(() => hints).toBe(1);
    writeFileSync(join(cwd, 'prod.yaml'), 'networks: {}\n');
    await expect.poll(() => hints).toBe(2);
    const { specs } = await source.read(stop.signal);
    expect(specs).toEqual([
      {
        name: 'vdcsync.yaml, prod.yaml',
        sources: [
          { file: 'vdcsync.yaml', text: oneNetwork },
          { file: 'prod.yaml', text: 'networks: {}\n', overlay: true },
        ],
      },
    ]);
    expect(existsSync(join(cwd, '.vdcsync'))).toBe(false);
  });
});
