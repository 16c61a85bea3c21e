import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Operation } from '../../../src/core/plan.ts';
import { outside, run } from '../../../src/core/remedy.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { resolveOf, resolving } from '../../support/resolve.ts';
import { load, type Rig, rig } from '../../support/rig.ts';

const size = (cores: number) =>
  `server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}`;
const head = 'settings: {exclusive: true, unconfirmed_servers: ask, prune: true, max_deletions: 10}\n';
const file = (cores: number, more = '') =>
  `${head}servers:\n  web: {${size(cores)}, replace: {order: delete_first}}\n${more}`;
const another = `  other: {${size(1)}}\n`;
/** Nothing documented shows it. */
const isolated = `  db: {${size(1).replace(', public_ipv4: {new: true}', '')}}\n`;
const key = 'servers.web' as ResourceKey;

const project = ({ emulator }: Rig) => emulator.world.projects[0] ?? expect.fail('no project');
const stands = (played: Rig) => [
  project(played).servers.some(({ id }) => id === 2001),
  project(played).ips.some(({ id }) => id === 5001),
];
const deleted = (played: Rig) => played.writes().filter(({ method }) => method === 'DELETE');
const blocked = { key, verb: 'delete' };
/** The deletion of the address waits for the deletion of its server. */
const oldAddress = { verb: 'delete', code: 'dependency_blocked' };

async function made(): Promise<Rig> {
  const played = rig();
  await played.apply(file(1));
  return played;
}

/** Whether the next server that the file asks for was made is not known. */
async function loseAnswerOf(played: Rig, text: string): Promise<void> {
  played.emulator.setFaults([
    faultRule({ path: 'create_server', nth: 1 }, { do: 'reset', effect: 'done', stored: false }),
  ]);
  await played.apply(text);
  played.emulator.setFaults([]);
}

/** The project is in order again, and what was held is done. */
async function replacesOnceActive(played: Rig, text: string): Promise<void> {
  played.emulator.mutate({ do: 'set_standing', standing: 'active' });
  expect((await played.apply(text)).outcome).toBe('converged');
  expect(stands(played)).toEqual([false, false]);
}

describe('src/engine/intents/replacement.ts: nothing is deleted of a replacement that cannot be made again', () => {
  test('while the project is suspended', async () => {
    const played = await made();
    played.emulator.mutate({ do: 'set_standing', standing: 'suspended' });

    const report = await played.apply(file(2));

    expect(report.blocked).toMatchObject([{ ...blocked, verb: 'update', code: 'project_not_active' }]);
    expect((await played.plan(file(2))).blocked).toEqual(report.blocked);
    expect(deleted(played)).toEqual([]);

    await replacesOnceActive(played, file(2));
  });

  test('after a 402, until an operator says that it is over', async () => {
    const played = await made();
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    await played.apply(file(1, another));
    played.restart();

    const report = await played.apply(file(2));

    expect(report.blocked).toMatchObject([
      oldAddress,
      {
        ...blocked,
        code: 'payment_required',
        remedies: resolving(expect.stringContaining('resolve servers.web --retry')),
      },
    ]);
    const planned = (await played.plan(file(2))).blocked;
    const named = (all: typeof planned) => all.map(({ key: of, code }) => `${code} ${of}`).sort();
    expect(named(planned)).toEqual(named(report.blocked));
    expect(resolveOf(planned.find((each) => each.key === key))).toContain('resolve servers.web --retry');
    expect(deleted(played)).toEqual([]);

    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    const resolution = { type: 'retry' } as const;
    await played.clock.run(played.engine.resolve(load(file(2)), key, resolution));
    expect((await played.apply(file(2))).outcome).toBe('converged');
    expect(stands(played)).toEqual([false, false]);
  });

  test('after a 403 to the creation of another one', async () => {
    const played = await made();
    const { readWrite } = played.emulator.tokens();
    played.emulator.mutate({ do: 'refuse_operations', token: readWrite, operations: ['create_server'] });
    await played.apply(file(1, another));
    played.restart();

    const report = await played.apply(file(2));

    expect(report.blocked).toMatchObject([oldAddress, { ...blocked, code: 'insufficient_privileges' }]);
    expect(stands(played)).toEqual([true, true]);
  });

  const claiming = (ips: string, address: string) =>
    `${head}ips: {${ips}}\nservers:\n  web: {${size(1).replace('{new: true}', address)}, replace: {order: delete_first}}\n`;

  test.each([
    [
      'one that has left the spec',
      claiming('x: {}', '{ip: x}'),
      claiming('x: {}, q: {}', '{ip: x}'),
      claiming('q: {}', '{reuse: true}'),
    ],
  ])('after a 403 to a release, where an address has to go first: %s', async (_which, before, more, text) => {
    const played = rig();
    await played.apply(before);
    await played.apply(more);
    const token = played.emulator.tokens().readWrite;
    played.emulator.mutate({ do: 'refuse_operations', token, operations: ['release_ip'] });
    await played.apply(before);
    played.restart();

    const plan = await played.plan(text);
    const report = await played.apply(text);

    const way = `vdcsync resolve ${key} --retry; then vdcsync apply`;
    const held = { code: 'insufficient_privileges', remedies: resolving(expect.stringContaining(way)) };
    expect(plan.blocked).toContainEqual(expect.objectContaining({ verb: 'delete', ...held }));
    expect(report.blocked).toContainEqual(expect.objectContaining({ ...blocked, ...held }));
    expect(project(played).servers.some(({ id }) => id === 2001)).toBe(true);

    played.emulator.mutate({ do: 'refuse_operations', token, operations: [] });
    await played.clock.run(played.engine.resolve(load(text), key, { type: 'retry' }));
    expect((await played.apply(text)).outcome).toBe('converged');
  });

  test('after a 402 in the same run', async () => {
    const played = await made();
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });

    const report = await played.apply(`${file(2, another)}ips:\n  first: {}\n`);

    expect(report.blocked).toContainEqual(expect.objectContaining({ ...blocked, code: 'payment_required' }));
    expect(deleted(played)).toEqual([]);
    expect(stands(played)).toEqual([true, true]);
  });

  test('after a 402 while the deletion waits, until an operator says so, once', async () => {
    const played = await made();
    const busy = (retryAfter: number) =>
      ({ do: 'answer', status: 409, code: 'server_busy', retryAfter }) as const;
    played.emulator.setFaults([
      faultRule({ path: 'allocate_ip', nth: 1 }, busy(10)),
      faultRule({ path: 'delete_server', nth: 1 }, busy(60)),
    ]);
    const text = `${file(2)}ips:\n  first: {}\n`;
    void played.clock
      .sleep(5_000)
      .then(() => played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' }));

    const report = await played.apply(text);

    const told = report.blocked.find((each) => each.key === key) ?? expect.fail();
    expect(told).toMatchObject({ code: 'payment_required', verb: 'delete' });
    expect(resolveOf(told)).toContain(`vdcsync resolve ${key} --retry; then vdcsync apply`);
    expect(stands(played)).toEqual([true, true]);
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    await played.clock.run(played.engine.resolve(load(file(2)), key, { type: 'retry' }));
    expect((await played.apply(file(2))).outcome).toBe('converged');
  });

  test('while the address that it gives back would be free beside the one that is claimed', async () => {
    const played = rig();
    const text = (address: string) =>
      `settings: {unmanaged: ignore, prune: true}\nips: {named: {}}\nservers:\n  web: {${size(1).replace('{new: true}', address)}, replace: {order: delete_first}}\n`;
    played.emulator.mutate({ do: 'add_ip' });
    await played.apply(text('{reuse: true}').replace('ips: {named: {}}\n', ''));

    const report = await played.apply(text('{ip: named}'));

    expect(report.blocked).toMatchObject([
      { key: 'ips.named', code: 'dependency_blocked' },
      { key, verb: 'update', code: 'address_not_the_only_free_one' },
    ]);
    expect(deleted(played)).toEqual([]);
    expect(stands(played)).toEqual([true, true]);
    expect((await played.apply(text('{reuse: true}'))).outcome).toBe('converged');
  });

  test('the purchase of another server waits while its firewall is refused with the same entry', async () => {
    const played = rig();
    const named = (...names: readonly string[]) =>
      `${head}servers:\n${names.map((name) => `  ${name}: {${size(1)}, firewall: {enabled: true, policy_in: sideways}}\n`).join('')}`;
    await played.apply(named('web'));

    const plan = await played.plan(named('web', 'other'));
    const report = await played.apply(named('web', 'other'));

    const held = { key: 'servers.other', verb: 'create', code: 'dependency_blocked' };
    expect(plan.blocked).toContainEqual(expect.objectContaining(held));
    expect(report.blocked).toContainEqual(expect.objectContaining(held));
    expect(stands(played)).toEqual([true, true]);
    expect(played.emulator.world.projects[0]?.servers).toHaveLength(1);
    expect((await played.apply(named('web', 'other').replaceAll('sideways', 'drop'))).outcome).toBe(
      'converged',
    );
  });

  test('a refusal stops the purchases that the same run has not begun', async () => {
    const played = rig();
    const names = Array.from({ length: 45 }, (_, at) => `s${at}`);
    const servers = names.map(
      (name) => `  ${name}: {${size(1)}, firewall: {enabled: true, policy_in: sideways}}\n`,
    );

    const report = await played.apply(`${head}servers:\n${servers.join('')}`);

    expect(report.outcome).toBe('blocked');
    expect(played.emulator.world.projects[0]?.servers.length).toBeLessThan(names.length / 2);
  });

  const walled = (cores: number, more = '') =>
    `${head}servers:\n  web: {${size(cores)}, replace: {order: delete_first}, firewall: {enabled: true, policy_in: drop, rules: [{direction: in, action: accept, protocol: tcp, destination_port: "22"${more}}]}}\n`;

  test('while its firewall is refused as the spec has it, until that is corrected', async () => {
    const played = rig();
    await played.apply(walled(1));
    await played.apply(walled(1, ', source: 10.0.0.0/8'));
    played.restart();

    const plan = await played.plan(walled(2, ', source: 10.0.0.0/8'));
    const report = await played.apply(walled(2, ', source: 10.0.0.0/8'));

    const held = { key, verb: 'update', code: 'dependency_blocked' };
    expect(plan.blocked).toContainEqual(
      expect.objectContaining({ ...held, remedies: resolving(`resolve ${key}.firewall first`) }),
    );
    expect(report.blocked).toContainEqual(expect.objectContaining(held));
    expect(stands(played)).toEqual([true, true]);
    expect((await played.apply(walled(2))).outcome).toBe('converged');
    expect(stands(played)).toEqual([false, false]);
  });

  test('after a 403 to a change of its firewall', async () => {
    const played = rig();
    await played.apply(walled(1));
    const token = played.emulator.tokens().readWrite;
    played.emulator.mutate({ do: 'refuse_operations', token, operations: ['replace_firewall'] });
    await played.apply(walled(1).replace('"22"', '"22,80"'));
    played.restart();

    const plan = await played.plan(walled(2));
    const report = await played.apply(walled(2));

    const way = `vdcsync resolve ${key} --retry; then vdcsync apply`;
    const held = { code: 'insufficient_privileges', remedies: resolving(expect.stringContaining(way)) };
    expect(plan.blocked).toContainEqual(expect.objectContaining({ key: `${key}.firewall`, ...held }));
    expect(plan.blocked).toContainEqual(
      expect.objectContaining({ key, remedies: resolving(`resolve ${key}.firewall first`) }),
    );
    expect(report.blocked).toContainEqual(expect.objectContaining({ ...blocked, ...held }));
    expect(stands(played)).toEqual([true, true]);
    played.emulator.mutate({ do: 'refuse_operations', token, operations: [] });
    await played.clock.run(played.engine.resolve(load(walled(2)), key, { type: 'retry' }));
    expect((await played.apply(walled(2))).outcome).toBe('converged');
  });

  test('while it is not known whether another server was made, and it takes whatever address is free', async () => {
    const played = await made();
    await loseAnswerOf(played, file(1, isolated));
    played.restart();

    const report = await played.apply(file(2, isolated).replace('{new: true}', '{reuse: true}'));

    const { remedies } = report.blocked.find(({ code }) => code === 'unresolved_create') ?? expect.fail();
    expect(report.blocked).toContainEqual(
      expect.objectContaining({ ...blocked, verb: 'update', code: 'unresolved_create' }),
    );
    expect(remedies).toEqual([outside('resolve servers.db first', { next: [run('apply')] })]);
    expect(stands(played)).toEqual([true, true]);
  });
});

describe('src/engine/intents/replacement.ts: nothing is given away before what takes its place can be made', () => {
  const cleared = (played: Rig) => played.emulator.mutate({ do: 'delete_server', id: 2001 });
  const address = `${key}.public_ipv4`;

  test('the address of a server that somebody deleted, while the project is suspended', async () => {
    const played = await made();
    cleared(played);
    played.emulator.mutate({ do: 'set_standing', standing: 'suspended' });

    const report = await played.apply(file(1));

    expect(report.blocked).toContainEqual(expect.objectContaining({ key, code: 'project_not_active' }));
    expect(deleted(played)).toEqual([]);
    await replacesOnceActive(played, file(1));
  });

  test('nor after a 402, until an operator says that it is over', async () => {
    const played = await made();
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    await played.apply(file(1, another));
    cleared(played);
    played.restart();

    const plan = await played.plan(file(1));
    const report = await played.apply(file(1));

    expect(plan.blocked).toContainEqual(
      expect.objectContaining({
        key,
        remedies: resolving(expect.stringContaining(`resolve ${key} --retry`)),
      }),
    );
    expect(report.blocked).toContainEqual(
      expect.objectContaining({
        key: address,
        code: 'payment_required',
        remedies: resolving(expect.stringContaining(`resolve ${address} --retry`)),
      }),
    );
    expect(deleted(played)).toEqual([]);
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    const resolution = { type: 'retry' } as const;
    await played.clock.run(played.engine.resolve(load(file(1)), address as ResourceKey, resolution));
    expect((await played.apply(file(1))).outcome).toBe('converged');
  });

  test('a server with an address of its own does not wait for another one that is unconfirmed', async () => {
    const played = await made();
    await loseAnswerOf(played, file(1, isolated));
    cleared(played);
    played.restart();

    const report = await played.apply(file(1, isolated));

    expect(report.blocked.map((each) => each.key)).toEqual(['servers.db']);
    expect(report.results.find((each) => each.key === key)?.outcome).toBe('done');
  });

  const claims = `${head}ips:\n  fix: {}\nservers:\n  web: {${size(1).replace('{new: true}', '{ip: fix}')}, replace: allowed}\n`;

  test('a server, and its address, that need an address which is left for later', async () => {
    const played = await made();
    const isPaused = (operation: Operation) => operation.key === 'ips.fix';

    await played.apply(claims, { repeating: { ...played.repeating(), isPaused } });

    expect(played.writes().slice(1)).toEqual([]);
    expect(stands(played)).toEqual([true, true]);
    expect((await played.apply(claims)).outcome).toBe('converged');
  });

  test('a server, and its address, that need an address which cannot be had', async () => {
    const played = await made();
    const { readWrite } = played.emulator.tokens();
    played.emulator.mutate({ do: 'refuse_operations', token: readWrite, operations: ['allocate_ip'] });

    const report = await played.apply(claims);

    expect(report.blocked).toContainEqual(expect.objectContaining({ key: 'ips.fix' }));
    expect(deleted(played)).toEqual([]);
    expect(stands(played)).toEqual([true, true]);
  });
});

describe('src/engine/intents/replacement.ts: a process that runs again and again', () => {
  test('holds nothing by itself that an operator has lifted in the state', async () => {
    const played = await made();
    const repeating = played.repeating();
    const twoAddresses = `${file(2)}ips:\n  one: {}\n`;
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    await played.apply(`${file(1)}ips:\n  one: {}\n`, { repeating });
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    expect((await played.apply(twoAddresses, { repeating })).outcome).toBe('blocked');

    await played.clock.run(played.engine.resolve(load(twoAddresses), key, { type: 'retry' }));
    const report = await played.apply(twoAddresses, { repeating });

    expect(report.outcome).toBe('converged');
    expect(stands(played)).toEqual([false, false]);
  });
});
