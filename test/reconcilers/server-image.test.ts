import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { resolveText } from '../../src/core/remedy.ts';
import { billOf } from '../../src/view/bill.ts';
import { summaryLine } from '../../src/view/plan.ts';
import { expectInvariants } from '../support/invariants.ts';
import { profiled } from '../support/profiled.ts';
import { saidBy } from '../support/resolve.ts';
import { around, load, rig } from '../support/rig.ts';
import { codesOf, countOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const servers = `settings: {prune: true}\nservers: {one: {${sliders}, public_ipv4: {new: true}}, two: {${sliders}}}\n`;
const file = (image = '{server: one}') => `${servers}server_images: {golden: ${image}}\n`;

describe('src/reconcilers/server-image.ts', () => {
  test.each([
    'id',
    'bare',
  ] as const)('an image is taken once, after its server exists (answer: %s)', async (imageAnswer) => {
    const world = profiled({ emulator: { readings: { imageAnswer } } });
    const planned = await world.plan(file());
    expect(idsOf(planned)).toContain('create:server_images.golden');
    expect(planned.operations.at(-1)).toMatchObject({ risk: 'billed', needs: ['create:servers.one'] });
    expect((await world.apply(file())).outcome).toBe('converged');
    expect((await world.apply(file())).outcome).toBe('converged');

    const { images } = projectOf(world.emulator);
    expect(images.map(({ name }) => name)).toEqual(['golden']);
    const bound = (await world.store.bindings()).find(({ kind }) => kind === 'server_image');
    expect(bound?.id).toBe(imageAnswer === 'id' ? images[0]?.id : 'golden');
    await expectInvariants(world);
  });

  test('an image of a GPU package server is refused before anything is sent', async () => {
    const world = profiled();
    const gpu =
      'servers: {ai: {server_type: gpu-fixed, image: debian-13, gpu_package: l40s-1}}\nserver_images: {golden: {server: ai}}\n';
    expect(codesOf(await world.plan(gpu))).toEqual({ 'server_images.golden': 'server_type_not_supported' });
    await world.apply(gpu);
    expect(countOf(world.emulator, 'take_server_image')).toBe(0);
  });

  test('an image of a server that a new state adopted may exist, and is not taken without a decision', async () => {
    const world = profiled();
    await world.apply(file());
    world.loseState();
    const adopt = (key: string, id: string) =>
      world.clock.run(world.engine.adopt(load(file()), key as ResourceKey, id));
    const state = await world.store.bindings();
    for (const key of ['servers.one', 'servers.two'])
      await adopt(key, state.find((each) => each.key === key)?.id ?? '');

    for (let run = 0; run < 2; run++)
      expect(codesOf((await world.apply(file())).plan)).toEqual({
        'server_images.golden': 'image_taken_before',
      });
    const told = await adopt('server_images.golden', 'img-1');
    expect(saidBy(told)).toContain('cannot verify the id: no documented read shows server images');

    expect((await world.apply(file())).outcome).toBe('converged');
    expect(countOf(world.emulator, 'take_server_image')).toBe(1);
  });

  test('an unmanaged image is managed again by its former spec', async () => {
    const world = profiled();
    await world.apply(file());
    await world.apply(file('{id: img-1, managed: false}'));
    await world.apply(servers);

    expect((await world.apply(file())).outcome).toBe('converged');
    expect(countOf(world.emulator, 'take_server_image')).toBe(1);
    expect((await world.apply(file().replace('golden', 'silver'))).outcome).toBe('converged');
    expect(countOf(world.emulator, 'take_server_image')).toBe(2);
  });

  test('an image is managed again once adopted, or once its entry returns after a release', async () => {
    const world = profiled();
    const golden = 'server_images.golden' as ResourceKey;
    await world.apply(file());
    await world.apply(file('{id: img-1, managed: false}'));

    await world.clock.run(world.engine.adopt(load(file()), golden, 'img-1'));

    expect((await world.apply(file())).outcome).toBe('converged');
    expect(countOf(world.emulator, 'take_server_image')).toBe(1);
    await world.apply(servers);
    await world.clock.run(world.engine.forget(load(servers), golden));
    expect((await world.apply(file())).outcome).toBe('converged');
    expect(countOf(world.emulator, 'take_server_image')).toBe(1);
  });

  test('an edit during the creation of an image keeps the requested image and refuses another one', async () => {
    const killed = new AbortController();
    const world = profiled({
      wrap: around(async (request, send) => {
        const answer = await send();
        if (request.url.endsWith('/server-images')) killed.abort(new Error('killed'));
        return answer;
      }),
    });
    await world.apply(servers);
    await world.apply(file(), { halt: killed.signal });
    world.restart();

    const edited = await world.apply(file('{server: two}'));

    expect(codesOf(edited.plan)).toEqual({ 'server_images.golden': 'immutable' });
    expect((await world.apply(file())).outcome).toBe('converged');
  });

  test('without the operation, the plan warns, and nothing is sent', async () => {
    const world = rig();
    const report = await world.apply(file());
    expect(report.outcome).toBe('converged');
    expect(warningsOf(report.plan)).toEqual(['server_image_not_taken']);
    expect(summaryLine(report.plan)).toContain(
      'differs from the spec: see the warning of server_images.golden',
    );
    expect(countOf(world.emulator, 'take_server_image')).toBe(0);
  });

  test('another server or name of an image is refused as immutable', async () => {
    const world = profiled();
    await world.apply(file());
    for (const image of ['{server: two}', '{server: one, name: silver}']) {
      expect(codesOf(await world.plan(file(image)))).toEqual({ 'server_images.golden': 'immutable' });
    }
  });

  test.each([
    ['renamed', 'three: {', 'moved: {from: servers.one}, ', 'write `server: three`'],
    ['removed', undefined, '', 'write `id: img-1` and remove `server`'],
  ])('after the server of an image was %s, the remedy names the values of the spec', async (_, key, moved, way) => {
    const world = profiled();
    await world.apply(file());
    const one = `one: {${sliders}, public_ipv4: {new: true}}, `;
    const renamed = key === undefined ? '' : one.replace('one: {', `${key}${moved}`);
    const { blocked } = await world.plan(file('{server: two}').replace(one, renamed));
    const image = blocked.filter(({ key: each }) => each === 'server_images.golden');
    expect(image.map(({ remedies }) => resolveText(remedies))).toEqual([expect.stringContaining(way)]);
  });

  test('a released image stays in the list of billed resources', async () => {
    const world = profiled();
    await world.apply(file());
    const key = 'server_images.golden' as ResourceKey;
    await world.clock.run(world.engine.forget(load(servers), key));
    const released = (await world.store.claims()).filter(({ kind }) => kind === 'server_image');
    expect(released.map(({ holder }) => holder.is)).toEqual(['released']);
    const facts = { known: { bindings: [], intents: [], claims: released } };
    expect(billOf(facts as never).billed).toMatchObject([{ what: `server image ${released[0]?.id}` }]);
  });

  test('an image stays after its server is replaced, and after the image leaves the spec', async () => {
    const world = profiled();
    await world.apply(file());
    await world.apply(
      file().replace('{new: true}}', '{new: true}, replace: allowed}').replace('ubuntu-24.04', 'debian-13'),
    );
    expect(countOf(world.emulator, 'take_server_image')).toBe(1);
    const report = await world.apply(
      servers.replace('{new: true}}', '{new: true}, replace: allowed}').replace('ubuntu-24.04', 'debian-13'),
    );

    expect(report.outcome).toBe('converged');
    expect(projectOf(world.emulator).images).toHaveLength(1);
    expect(warningsOf(report.plan)).toContain('no_longer_declared');
  });

  test('a blocked destroy releases no image, which a later run would take again', async () => {
    const world = profiled();
    const guarded = file().replace('{new: true}}', '{new: true}, protect: true}');
    await world.apply(guarded);

    expect((await world.apply(guarded, { destroy: true })).outcome).toBe('blocked');

    expect((await world.apply(guarded)).outcome).toBe('converged');
    expect(countOf(world.emulator, 'take_server_image')).toBe(1);
  });

  test('an image that is bound by its name remains bound when another image has that name', async () => {
    const world = profiled({ emulator: { readings: { imageAnswer: 'bare' } } });
    await world.apply(`${servers}server_images: {a: {server: one, name: n}}\n`);
    const spec = `${servers}server_images: {a: {server: one, name: m}, b: {server: two, name: n}}\n`;

    const report = await world.apply(spec);

    expect(report.blocked).toMatchObject([{ key: 'server_images.a', code: 'immutable' }]);
    const bound = (await world.store.bindings()).filter(({ kind }) => kind === 'server_image');
    expect(bound.map(({ key }) => key)).toEqual(['server_images.a', 'server_images.b']);
    expect(projectOf(world.emulator).images).toHaveLength(2);
  });

  test('an image that was taken elsewhere is bound by its id', async () => {
    const world = profiled();
    expect((await world.apply(file('{id: img-77}'))).outcome).toBe('converged');
    expect(countOf(world.emulator, 'take_server_image')).toBe(0);
  });

  test('a suspended project blocks an image', async () => {
    const world = profiled();
    await world.apply(servers);
    world.emulator.mutate({ do: 'set_standing', standing: 'suspended' });
    const report = await world.apply(file());
    expect(report.blocked.map(({ code }) => code)).toEqual(['payment_required']);
    expect(projectOf(world.emulator).images).toEqual([]);
  });
});
