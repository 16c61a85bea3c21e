import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Transport } from '../../../src/core/transport.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { around, load, type Rig, rig } from '../../support/rig.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const head = 'settings: {prune: true, max_deletions: 10}\n';
const server = (name: string, more = '') => `  ${name}: {${size}, public_ipv4: {new: true}${more}}\n`;
const web = `${head}servers:\n${server('web')}`;

const project = ({ emulator }: Rig) => emulator.world.projects[0] ?? expect.fail('no project');
const ids = async ({ store }: Rig) =>
  Object.fromEntries((await store.bindings()).map(({ key, id }) => [key, id]));

/** A rig whose POSTs are tampered with, each by what is put first in the list. */
function tampered() {
  const next: ((post: () => ReturnType<Transport['send']>) => ReturnType<Transport['send']>)[] = [];
  const played = rig({
    emulator: { readings: { reuseIds: true } },
    wrap: around(async (request, send) => {
      const tamper = request.method === 'POST' ? next.shift() : undefined;
      const post = () => send();
      return tamper === undefined ? post() : tamper(post);
    }),
  });
  return { played, next };
}

/** Ends the run right behind the write that is sent next. */
async function cutShort(
  { played, next }: ReturnType<typeof tampered>,
  spec: string,
  answer: 'lost' | 'read',
) {
  const halt = new AbortController();
  next.push(async (post) => {
    const answered = await post();
    halt.abort(new Error('killed'));
    if (answer === 'lost') throw new Error('never');
    return answered;
  });
  await played.apply(spec, { halt: halt.signal }).catch(() => undefined);
  played.restart();
}

describe("src/engine/intents/bound-by.ts: what a creation made is gone, and its id another key's", () => {
  const ignoring = head.replace('{', '{unmanaged: ignore, ');
  /** The server is deleted while its task is under way, its address stays, and the next one has its id. */
  async function superseded(spec: string, meanwhile = (_played: Rig) => {}) {
    const { played, next } = tampered();
    next.push(
      (post) => post(),
      (post) => {
        const { mutate, world } = played.emulator;
        mutate({ do: 'delete_server', id: 2001 });
        meanwhile(played);
        world.nextId.server = 2001;
        return post();
      },
    );
    return { played, report: await played.apply(spec) };
  }

  test('the address that came with it is released before it is made again', async () => {
    const both = `${ignoring}servers:\n${server('a')}${server('b')}`;
    const { played } = await superseded(both);

    expect(await ids(played)).toMatchObject({ 'servers.b': '2001', 'servers.a.public_ipv4': '5001' });
    expect((await played.apply(both)).outcome).toBe('converged');
    expect(
      project(played)
        .ips.map(({ id }) => String(id))
        .sort(),
    ).toEqual(
      [(await ids(played))['servers.a.public_ipv4'], (await ids(played))['servers.b.public_ipv4']].sort(),
    );
  });
});

describe("src/engine/intents/bound-by.ts: an operator's word and what is under way", () => {
  test("what an open creation was answered with is not another key's", async () => {
    const cut = tampered();
    const { played } = cut;
    const b = `${head}servers:\n  b: {${size}}\n`;
    await cutShort(cut, b, 'read');
    const both = `${b}  web: {${size}}\n`;

    const adopted = played.clock.run(played.engine.adopt(load(both), 'servers.web' as ResourceKey, '2001'));

    await expect(adopted).rejects.toThrow('2001 was created for servers.b');
    expect((await played.apply(both)).outcome).toBe('converged');
    expect(await ids(played)).toEqual({ 'servers.b': '2001', 'servers.web': '2002' });
  });

  test.each([
    undefined,
    faultRule({ path: 'list_ips' }, { do: 'truncate_list', keep: 0 }),
  ])('what a failed task left is adopted for another key with the address that it holds', async (fault) => {
    const played = rig({ emulator: { readings: { failedTaskLeaves: 'everything' } } });
    played.emulator.mutate({ do: 'fail_next_task' });
    await played.apply(web);
    const both = `${web}  shop: {${size}, public_ipv4: {new: true}}\n`;
    if (fault !== undefined) played.emulator.setFaults([fault]);

    await played.clock.run(played.engine.adopt(load(both), 'servers.shop' as ResourceKey, '2001'));
    played.emulator.setFaults([]);

    expect((await played.apply(both)).outcome).toBe('converged');
    const bound = (await played.store.bindings()).map(({ key, id }) => `${key} ${id}`).sort();
    expect(bound).toEqual([
      'servers.shop 2001',
      'servers.shop.public_ipv4 5001',
      'servers.web 2002',
      'servers.web.public_ipv4 5002',
    ]);
  });
});
