import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { documentedProfile } from '../../../src/core/profile.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { DEFAULT_PROFILE } from '../../../src/emulator/profile.ts';
import type { Readings } from '../../../src/emulator/readings.ts';
import { memoryState } from '../../../src/state/memory.ts';
import { settleByHand } from '../../support/operator.ts';
import { resolveOf, resolving } from '../../support/resolve.ts';
import { load, type Rig, type RigOptions, rig } from '../../support/rig.ts';

const head = 'settings: {exclusive: true, unmanaged: ignore}\n';
const server = (cores: number | string) =>
  `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}\n`;

const bare = (cores: number) =>
  server(cores).replace(', public_ipv4: {new: true}', '').replace(', unmanaged: ignore', '');

const billsOf = ({ emulator }: Rig) =>
  emulator.world.executions.filter(({ kind }) => kind === 'server').length;

/** One state bought the server; another one, which never heard of it, is given an edited file. */
async function bought(readings: Partial<Readings>, wrap?: RigOptions['wrap']) {
  const played = rig({ emulator: { readings }, ...(wrap === undefined ? {} : { wrap }) });
  const other = memoryState({ createdAt: played.clock.now(), lineage: 'other' });
  await played.apply(server(1));
  played.restart(other);
  const bills = () => billsOf(played);
  return { ...played, other, bills };
}

describe('src/engine/intents/next-incarnation.ts: a key that was used before this state knew it', () => {
  test.each([
    [422, 'idempotency_key_reused'],
    [422, 'invalid_request'],
    [422, 'conflicting_request'],
    [400, 'conflicting_request'],
  ] as const)('refused with %s %s: asked about, and not bought again when the entry is edited', async (status, code) => {
    const { apply, bills } = await bought({ reusedKeyStatus: status, reusedKeyCode: code });

    const [first] = (await apply(server(2))).blocked;
    const [then] = (await apply(server(4))).blocked;

    expect([first?.code, then?.code]).toEqual(['key_conflict', 'key_conflict']);
    expect(resolveOf(then)).toContain('vdcsync resolve servers.web --adopt');
    expect(resolveOf(then)).not.toContain('correct the entry');
    expect(bills()).toBe(1);
  });

  test('the key is asked again when the edit is reverted, and its server is found', async () => {
    const played = rig();
    await played.apply(bare(1));
    const other = memoryState({ createdAt: played.clock.now(), lineage: 'other' });
    played.restart(other);
    expect((await played.apply(bare(2))).blocked).toMatchObject([{ code: 'key_conflict' }]);

    const report = await played.apply(bare(1));

    expect([report.outcome, billsOf(played)]).toEqual(['converged', 1]);
    expect(await other.bindings()).toMatchObject([{ key: 'servers.web', id: '2001' }]);
  });

  test('the conflict stays when the API has forgotten the answer, and nothing is bought', async () => {
    const played = rig();
    await played.apply(bare(1));
    await played.clock.advance(20 * 3_600_000);
    played.restart(memoryState({ createdAt: played.clock.now(), lineage: 'other' }));
    await played.apply(bare(2));
    await played.clock.advance(5 * 3_600_000);

    expect((await played.apply(bare(1))).blocked).toMatchObject([{ code: 'key_conflict' }]);
    expect(billsOf(played)).toBe(1);
  });

  test('an operator who says that there is nothing has it bought', async () => {
    const played = rig({ emulator: { readings: { reusedKeyCode: 'invalid_request' } } });
    const other = memoryState({ createdAt: played.clock.now(), lineage: 'other' });
    await played.apply(server(1));
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    const second = { ...played, store: other, engine: played.restart(other) };
    await played.apply(server(2));

    await settleByHand(second, server(2));

    expect((await played.apply(server(2))).outcome).toBe('converged');
  });

  test('of a deletion by a state that was lost: the adopted resource is deleted under the next key', async () => {
    const played = rig();
    const [wanted, none] = ['settings: {prune: true}\nips: {web: {}}\n', 'settings: {prune: true}\n'];
    await played.apply(wanted);
    await played.apply(none);
    const other = memoryState({ createdAt: played.clock.now(), lineage: 'other' });
    const engine = played.restart(other);
    played.emulator.mutate({ do: 'add_ip' });
    const [made] = played.emulator.world.projects[0]?.ips ?? [];
    await played.clock.run(engine.adopt(load(wanted), 'ips.web' as ResourceKey, String(made?.id)));

    const { outcome, blocked } = await played.apply(none);

    expect({ outcome, blocked }).toEqual({ outcome: 'converged', blocked: [] });
    expect(played.emulator.world.projects[0]?.ips).toEqual([]);
  });

  test('a refusal that names no field, and is replayed, is one of the entry', async () => {
    const operations = { named_address: { body: { ip_id: '{ip_id}' } } };
    const profile = { ...documentedProfile, operations };
    const played = rig({ profile, emulator: { profile: { ...DEFAULT_PROFILE, operations } } });
    const spec = (address: string) =>
      `ips: {spare: {}, right: {server_type_id: 8}}
servers: {gpu: {server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: l40s-1, public_ipv4: {ip: ${address}}}}\n`;

    const { blocked, plan } = await played.apply(spec('spare'));
    const [refused] = blocked;
    await settleByHand(played, spec('spare'));
    const [again] = (await played.apply(spec('spare'))).blocked;

    expect(refused).toMatchObject({
      code: 'ip_not_usable',
      reason: expect.not.stringContaining('idempotency key'),
      remedies: resolving(expect.stringMatching(/^correct the entry at vdcsync\.yaml:/)),
    });
    expect(plan.warnings).toMatchObject([
      { code: 'address_pool_unchecked', message: expect.stringContaining('`server_type_id: 8`') },
    ]);
    expect(again).toEqual(refused);
    expect((await played.apply(spec('right'))).outcome).toBe('converged');
  });

  test('refused with a 409 of unknown code: not bought again when the entry is edited', async () => {
    const { apply, bills } = await bought({ reusedKeyStatus: 409, reusedKeyCode: 'conflicting_request' });
    await apply(server(2));

    const [edited] = (await apply(server(4))).blocked;

    expect(edited?.code).toBe('key_conflict');
    expect(resolveOf(edited)).toContain('vdcsync resolve servers.web --adopt');
    expect(bills()).toBe(1);
  });

  test('refused with a 409 that never ends: an operator can have it made under another key', async () => {
    const { apply, emulator, restart, clock, other } = await bought({
      reusedKeyStatus: 409,
      reusedKeyCode: 'conflicting_request',
    });
    emulator.mutate({ do: 'delete_server', id: 2001 });

    const [refused] = (await apply(server(2))).blocked;
    await clock.run(
      restart(other).resolve(load(server(2)), 'servers.web' as ResourceKey, { type: 'absent' }),
    );

    expect(refused).toMatchObject({ code: 'key_conflict' });
    expect(resolveOf(refused)).toMatch(
      /^vdcsync resolve servers\.web --adopt ID .*\| vdcsync resolve servers\.web --absent/,
    );
    expect((await apply(server(2))).outcome).toBe('converged');
  });

  const isolated = (cores: number) => server(cores).replace(', public_ipv4: {new: true}', '');
  const unknown = { reusedKeyStatus: 409, reusedKeyCode: 'conflicting_request' } as const;
  /** In the middle of waiting the refusal out. */
  const meanwhile = (played: Pick<Rig, 'clock'>, happens: () => void) =>
    void played.clock.sleep(60_000).then(happens);

  test('refused with a 409, and then somebody makes a server: not bought again', async () => {
    const played = rig({ emulator: { readings: unknown } });
    const asking = (cores: number) => isolated(cores).replace(head, '');
    await played.apply(asking(1));
    played.restart(memoryState({ createdAt: played.clock.now(), lineage: 'other' }));
    meanwhile(played, () => played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true }));

    const [first] = (await played.apply(asking(2))).blocked;
    await played.clock.run(played.engine.ignore(load(asking(2)), ['2002']));
    const [then] = (await played.apply(asking(2))).blocked;

    expect([first?.code, then?.code]).toEqual(['key_conflict', 'key_conflict']);
    expect(resolveOf(then)).toContain('vdcsync resolve servers.web --adopt');
    expect(billsOf(played)).toBe(1);
  });

  test.each([
    [401, 'unauthorized'],
    [402, 'payment_required'],
    [403, 'insufficient_privileges'],
    [404, 'server_type_not_found'],
    [409, 'no_gpu_capacity'],
    [422, 'image_not_supported'],
    [500, 'internal_error'],
    [502, 'bad_gateway'],
  ])('refused with a 409, and then answered %s %s: not bought again when that is over', async (status, code) => {
    let at = 0;
    const problem = { 'content-type': 'application/problem+json', 'x-request-id': 'req-x' };
    const { apply, bills, restart, other, clock } = await bought(unknown, (service) => ({
      ...service,
      send: async (request, options) =>
        request.method === 'POST' && ++at === 3
          ? { status, headers: problem, body: JSON.stringify({ status, code, title: 'No' }) }
          : service.send(request, options),
    }));
    await apply(server(2));
    await clock.run(clock.sleep(3_600_000));
    restart(other);

    const [then] = (await apply(server(4))).blocked;

    expect(then?.code).toBe('key_conflict');
    expect(resolveOf(then)).toContain('vdcsync resolve servers.web --adopt');
    expect(bills()).toBe(1);
  });

  test.each([
    422, 409,
  ] as const)('refused with a %s after a lost answer: not bought again', async (reusedKeyStatus) => {
    const { apply, bills, emulator } = await bought({ ...unknown, reusedKeyStatus });
    emulator.setFaults([faultRule({ path: 'create_server', nth: 1 }, { do: 'reset', effect: 'none' })]);
    await apply(server(2));

    const [then] = (await apply(server(4))).blocked;

    expect(resolveOf(then)).toContain('vdcsync resolve servers.web --adopt');
    expect(bills()).toBe(1);
  });

  test('a body that is refused for its fields waits for the spec alone', async () => {
    const played = rig({ emulator: { readings: { sizeBounds: 'on' } } });

    const [blocked] = (await played.apply(server(10_000))).blocked;
    const edited = await played.apply(server(2));

    expect(blocked).toMatchObject({ code: 'invalid_request' });
    expect(resolveOf(blocked)).toMatch(/^correct `cores` at vdcsync\.yaml:/);
    expect(edited.outcome).toBe('converged');
  });

  test('a refusal that names fields points at them in the spec', async () => {
    const played = rig({ emulator: { readings: { unknownSshKey: '422 invalid_request' } } });
    const spec = [
      'ips: {one: {}}',
      'servers:',
      '  web:',
      '    server_type: sliders-1',
      '    image: ubuntu-24.04',
      '    cores: 1',
      '    memory_mb: 1024',
      '    disk_gb: 20',
      '    ssh_keys: [999]',
      '    public_ipv4: {ip: one}',
      '',
    ];
    const at = (text: string) => spec.findIndex((line) => line.includes(text)) + 3;
    const blocked = (await played.apply(spec.join('\n'))).blocked.find(({ key }) => key === 'servers.web');

    expect(resolveOf(blocked).split(' | ')[0]).toBe(
      `correct \`ssh_keys\` at vdcsync.yaml:${at('ssh_keys')}:5`,
    );
  });
});
