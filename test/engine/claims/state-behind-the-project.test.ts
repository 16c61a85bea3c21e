import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { resolveOf } from '../../support/resolve.ts';
import { load, type Rig, rig } from '../../support/rig.ts';
import { codes, count, head, project, size, state, web } from './one-server.ts';

const hour = 3_600_000;

/** The state as it is now, as a copy of its file would be. */
async function copied(played: Rig) {
  const copy = state(played, 'test');
  await copy.claimProject(4711);
  const [bindings, claims] = [await played.store.bindings(), await played.store.claims()];
  await copy.change(
    [
      ...bindings.map((binding) => ({ type: 'bind', binding }) as const),
      ...claims.map((claim) => ({ type: 'claim', claim }) as const),
    ],
    played.clock.now(),
  );
  return copy;
}

/** Another copy buys what the spec asks for while an operator thinks about the plan. */
async function boughtWhileAsked(played: ReturnType<typeof rig>, spec: ReturnType<typeof load>) {
  const laptop = await copied(played);
  const other = played.engine;
  played.restart(laptop);
  return played.clock.run(
    played.engine.apply(spec, {
      approve: async () => {
        await other.apply(spec, { approve: async () => true });
        // Longer than the keys are kept: the same purchase would be another one.
        await played.clock.sleep(25 * hour);
        return true;
      },
    }),
  );
}

describe('src/engine/claims: a state that is behind the project', () => {
  test('an old copy, put back after the keys have gone: nothing is bought twice, and it says whose', async () => {
    const played = rig();
    await played.apply(head);
    const old = await copied(played);
    const spec = `${head}${web}ips:\n  spare: {}\n`;
    await played.apply(spec);
    await played.clock.advance(25 * hour);
    played.restart(old);

    const report = await played.apply(spec);

    expect(count(played)).toEqual([1, 2]);
    expect(codes(report.plan)).toEqual({
      'ips.spare': 'unmanaged_resources',
      'servers.web': 'unmanaged_resources',
    });
    const [spare, server] = report.blocked;
    expect(resolveOf(server)).toContain('vdcsync adopt servers.web 2001');
    expect(resolveOf(spare), 'two would do').toContain(
      'vdcsync adopt ips.spare ID (if ips.spare already exists: ID is its id or the address)',
    );
    const adopt = (key: string, id: string) =>
      played.clock.run(played.engine.adopt(load(spec), key as ResourceKey, id));
    await adopt('servers.web', '2001');
    const free = project(played).ips.find(({ serverId }) => serverId === null);
    await adopt('ips.spare', String(free?.id));
    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(count(played)).toEqual([1, 2]);
    const { warnings, summary } = await played.plan(spec);
    expect([warnings, summary.unseen]).toEqual([[], 1]);
  });
});

describe('src/engine/intents/next-incarnation.ts: an old copy from before a replacement', () => {
  const spec = (image: string) => head + web.replace('ubuntu-24.04', image);
  async function replaced(): Promise<Rig> {
    const played = rig();
    await played.apply(spec('ubuntu-24.04'));
    const old = await copied(played);
    await played.apply(spec('debian-13'));
    played.restart(old);
    return played;
  }

  test('the key of the next incarnation shows the new server, and nobody is asked', async () => {
    const played = await replaced();

    const report = await played.apply(spec('debian-13'));

    expect([report.outcome, report.results.map(({ key, verb }) => `${verb} ${key}`)]).toEqual([
      'converged',
      ['adopt servers.web', 'adopt servers.web.public_ipv4'],
    ]);
    expect(project(played).servers.map(({ id }) => id)).toEqual([2002]);
  });

  test('the operator is asked once the key is too old', async () => {
    const played = await replaced();
    await played.clock.advance(25 * hour);

    const report = await played.apply(spec('debian-13'));

    expect(codes(report.plan)).toEqual({ 'servers.web': 'unmanaged_resources' });
    expect(count(played)).toEqual([1, 1]);
  });
});

describe('src/engine/claims: what another copy of the state buys', () => {
  test('while the plan waits for its approval is not bought again', async () => {
    const played = rig();
    await played.apply(head);

    const report = await boughtWhileAsked(played, load(head + web));

    expect(count(played)).toEqual([1, 1]);
    expect(codes(report.plan)).toMatchObject({ 'servers.web': 'unmanaged_resources' });
  });
});

describe('src/engine/claims: a lost state', () => {
  test('each entry is offered only what it can stand for, and nothing is offered twice', async () => {
    const played = rig();
    const spec = `${head}ips:\n  www: {}\nservers:\n  a: {${size}, public_ipv4: {ip: www}}\n  b: {${size}}\n`;
    await played.apply(spec);
    played.restart(state(played, 'another'));

    const { blocked } = await played.plan(spec);

    const [server] = project(played).servers.filter(({ name }) => name === 'a');
    expect(blocked.map((each) => [each.key, /vdcsync adopt \S+ \S+/.exec(resolveOf(each))?.[0]])).toEqual([
      ['ips.www', 'vdcsync adopt ips.www 5001'],
      ['servers.a', `vdcsync adopt servers.a ${server?.id}`],
      ['servers.b', 'vdcsync adopt servers.b ID'],
    ]);
    expect(resolveOf(blocked[0])).toContain(`is address ${project(played).ips[0]?.address} `);
    expect(blocked[2]?.reason).toContain('servers without a public address');
  });
});

describe('src/engine/run/recover.ts: a copy with an open creation whose entry has left the spec', () => {
  test('the next incarnation of its key is asked, and the server that was bought later is named', async () => {
    const played = rig();
    const bare = `${head}servers:\n  web: {${size}}\n`;
    await played.apply(head);
    const halt = new AbortController();
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'reset', effect: 'done' }),
    ]);
    void played.clock.sleep(5_000).then(() => halt.abort(new Error('halted')));
    await played.apply(bare, { halt: halt.signal });
    const copy = await copied(played);
    for (const intent of await played.store.openIntents()) await copy.beginIntent(intent);
    for (const spec of [bare, head, bare]) await played.apply(spec);
    expect(project(played).servers.map(({ id }) => id)).toEqual([2002]);
    played.restart(copy);

    const report = await played.apply(head);

    expect(report.plan.warnings).toMatchObject([
      { code: 'unmanaged_resources', message: expect.stringContaining('server 2002') },
    ]);
    const sent = played.writes().length;
    await played.apply(head);
    expect(played.writes()).toHaveLength(sent);
  });
});
