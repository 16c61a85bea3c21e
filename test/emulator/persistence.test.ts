import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createEmulator } from '../../src/emulator/emulator.ts';
import { type ServeOptions, startEmulator } from '../../src/emulator/http-server.ts';
import { DataFileError } from '../../src/emulator/persistence.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { caller, NOON, sliderServer, stage } from './support.ts';

describe('src/emulator/persistence.ts', () => {
  let folder = '';
  let dataFile = '';
  let clock = virtualClock(NOON);

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'emulator-'));
    dataFile = join(folder, 'deep', 'world.json');
    clock = virtualClock(NOON);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  async function run(
    options: ServeOptions,
    work: (running: Awaited<ReturnType<typeof startEmulator>>) => Promise<void>,
  ) {
    const running = await startEmulator({ dataFile, clock, ...options });
    try {
      await work(running);
    } finally {
      await running.close();
    }
  }

  test('the world, tokens, keys and running tasks survive a restart', async () => {
    let tokens = {};
    await run({ seed: 7 }, async ({ projects, emulator }) => {
      tokens = projects[0]?.tokens ?? {};
      const call = caller(emulator);
      await call('POST', '/ips', {}, { key: 'key-00001' });
      await call('POST', '/servers', await sliderServer(call, { public_ipv4: { new: true } }));
    });
    await clock.advance(45_000);
    await run({ seed: 8 }, async ({ projects, emulator }) => {
      expect(projects[0]?.tokens).toEqual(tokens);
      expect(emulator.world.projects[0]?.servers).toMatchObject([{ status: 'active', power: true }]);
      const again = await caller(emulator)('POST', '/ips', {}, { key: 'key-00001' });
      expect(again.headers['idempotency-replayed']).toBe('true');
      expect(emulator.world.projects[0]?.ips).toHaveLength(2);
    });
  });

  test('the file contains a write before its answer is sent, and no temporary file remains', async () => {
    await run({}, async ({ baseUrl, projects }) => {
      const headers = { authorization: `Bearer ${projects[0]?.tokens.readWrite}` };
      const answer = await fetch(`${baseUrl}/ips`, { method: 'POST', headers });
      expect(answer.status).toBe(201);
      expect(JSON.parse(readFileSync(dataFile, 'utf8')).projects[0].ips).toHaveLength(1);
      expect(existsSync(`${dataFile}.tmp`)).toBe(false);
    });
  });

  test('a change of speed does not set the clock back', async () => {
    let before = 0;
    await run({ speed: 100 }, async ({ emulator }) => {
      await clock.advance(60_000);
      before = emulator.now();
    });
    await run({ speed: 1 }, async ({ emulator }) => {
      expect(emulator.now()).toBe(before);
      await clock.advance(1000);
      expect(emulator.now()).toBe(before + 1000);
    });
  });

  test.each([
    ['cut off', (text: string) => text.slice(0, text.length / 2)],
    ['empty', () => ''],
    ['foreign', () => '{"hello": "world"}'],
    ['of another version', (text: string) => text.replace('"version":1', '"version":2')],
  ])('refuses a file that is %s and does not change it', async (_, damage) => {
    await run({}, async () => {});
    const damaged = damage(readFileSync(dataFile, 'utf8'));
    writeFileSync(dataFile, damaged);
    await expect(startEmulator({ dataFile, clock })).rejects.toThrow(DataFileError);
    expect(readFileSync(dataFile, 'utf8')).toBe(damaged);
  });

  test('refuses a file of another project', async () => {
    await run({ projectId: 9 }, async ({ projects }) => expect(projects[0]?.id).toBe(9));
    await expect(startEmulator({ dataFile, clock, projectId: 10 })).rejects.toThrow(
      /holds project 9, not 10/,
    );
  });
});

describe('src/emulator/persistence.ts: determinism', () => {
  async function play(seed: string) {
    const { call, clock, emulator } = stage({ seed, faults: [] });
    const answers = [];
    for (const [method, path, body] of [
      ['POST', '/networks', { name: 'backend', cidr: '10.20.0.0/24' }],
      ['POST', '/servers', await sliderServer(call, { public_ipv4: { new: true } })],
      ['POST', '/servers/2001/backups', undefined],
      ['GET', '/nonsense', undefined],
      ['GET', '/networks', undefined],
    ] as const) {
      answers.push(await call(method, path, body));
      await clock.advance(20_000);
    }
    return JSON.stringify([answers, emulator.world, emulator.requests]);
  }

  test('the same seed and requests give the same bytes, and another seed gives other bytes', async () => {
    const one = await play('one');
    expect(await play('one')).toBe(one);
    expect(await play('two')).not.toBe(one);
  });

  test('a restored snapshot continues as the original does', async () => {
    const { call, clock, emulator } = stage();
    await call('POST', '/ips', {});
    const saved = emulator.snapshot();
    const tail = async () => [
      await call('POST', '/networks', { name: 'x', cidr: '10.1.0.0/24' }),
      await call('GET', '/ips'),
    ];
    const first = await tail();
    emulator.restore(saved);
    expect(await tail()).toEqual(first);
    const other = createEmulator({ clock, world: saved });
    expect(other.snapshot()).toEqual(saved);
  });

  test('without a seed, the injected random source generates the seed', () => {
    const tokens = (value: number) =>
      createEmulator({ clock: virtualClock(NOON), random: { next: () => value } }).tokens();
    expect(tokens(0.25)).toEqual(tokens(0.25));
    expect(tokens(0.25)).not.toEqual(tokens(0.75));
  });
});
