import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { applied, around, type Rig, rig, sliders } from '../support/rig.ts';

const file = (ips: string, web: string, db: string) =>
  `settings: {prune: true, max_deletions: 9}
ips: {${ips}}
servers:
  db: {${sliders}, replace: {order: delete_first}, public_ipv4: ${db}}
  web: {${sliders}, replace: {order: delete_first}, public_ipv4: ${web}}
`;
/** The address that `web` is to have is in use until `db` has been made anew. */
const before = file('a: {}, b: {}', '{ip: a}', '{ip: b}');
const after = file('b: {}', '{ip: b}', '{new: true}');
const shown = ({ operations }: Plan) =>
  operations.map(({ id }) => id).filter((id) => id.startsWith('delete'));

describe('src/engine/run/plan.ts: a replacement that the first plan showed as blocked, and the run makes possible', () => {
  test('is not carried out without approval; the next run shows it, and carries it out', async () => {
    const played = await applied(before);
    const [web] = (await played.store.bindings()).filter(({ key }) => key === 'servers.web');
    expect((await played.plan(after)).blocked).toContainEqual(
      expect.objectContaining({ key: 'servers.web', verb: 'update', code: 'dependency_blocked' }),
    );

    const report = await played.apply(after, { unattended: true });

    expect(report.outcome).toBe('blocked');
    expect(report.blocked).toContainEqual(
      expect.objectContaining({ key: 'servers.web', verb: 'update', code: 'not_shown' }),
    );
    expect(played.writes().filter(({ path }) => path === `/servers/${web?.id}`)).toEqual([]);
    const next = await played.plan(after);
    expect([shown(next), next.blocked]).toEqual([['delete:servers.web', 'delete:ips.a'], []]);
    expect((await played.apply(after, { unattended: true })).outcome).toBe('converged');
    expect((await played.plan(after)).operations).toEqual([]);
  });

  test('is shown to an operator who approves plans', async () => {
    const played = await applied(before);
    const asked: string[][] = [];

    const report = await played.apply(after, {
      approve: async (plan) => {
        asked.push(shown(plan));
        return true;
      },
    });

    expect(report.outcome).toBe('converged');
    expect(asked).toEqual([['delete:servers.db'], ['delete:servers.web', 'delete:ips.a']]);
  });

  test('is carried out by a destroy', async () => {
    const played = await applied(before);

    expect((await played.apply(before, { destroy: true, unattended: true })).outcome).toBe('converged');
  });
});

/** A run at whose first POST another user deletes the address with that id. */
function withByHand() {
  const byHand: { id?: number } = {};
  const played: Rig = rig({
    wrap: around(async (request, send) => {
      if (request.method === 'POST' && byHand.id !== undefined) {
        played.emulator.mutate({ do: 'delete_ip', id: byHand.id });
        delete byHand.id;
      }
      return send();
    }),
  });
  return { played, byHand };
}

describe('src/engine/run/plan.ts: a purchase that the first plan asked about', () => {
  test('is not made once another client makes it possible; the next run shows it, and makes it', async () => {
    const { played, byHand } = withByHand();
    const { id } = played.emulator.mutate({ do: 'add_ip' }) as { id: number };
    const spec = 'networks: {n: {cidr: 10.0.0.0/24}}\nips: {a: {}}\n';
    expect((await played.plan(spec)).blocked).toMatchObject([{ key: 'ips.a', code: 'unmanaged_resources' }]);
    byHand.id = id;

    const report = await played.apply(spec, { unattended: true });

    expect(report.blocked).toMatchObject([{ key: 'ips.a', verb: 'create', code: 'not_shown' }]);
    expect(played.project.ips).toEqual([]);
    expect((await played.plan(spec)).operations.map((each) => each.id)).toEqual(['create:ips.a']);
    expect((await played.apply(spec, { unattended: true })).outcome).toBe('converged');
  });

  test('is made if it only waited for another change of the run', async () => {
    const db = (address: string) => `  db: {${sliders}, replace: allowed, public_ipv4: ${address}}\n`;
    const head = 'settings: {prune: true}\nips: {a: {}}\nservers:\n';
    const played = await applied(head + db('{ip: a}'));
    const spec = `${head}${db('{new: true}')}  web: {${sliders}, public_ipv4: {ip: a}}\n`;
    const { blocked } = await played.plan(spec);
    expect(blocked).toMatchObject([{ key: 'servers.web', code: 'dependency_blocked' }]);

    expect((await played.apply(spec, { unattended: true })).outcome).toBe('converged');
  });
});

describe('src/engine/run/plan.ts: a deletion that the first plan showed as over the cap', () => {
  test('is not made once another client deletes another resource; the next run shows it, and makes it', async () => {
    const capped = 'settings: {prune: true, max_deletions: 1}\n';
    const { played, byHand } = withByHand();
    await played.apply(`${capped}ips: {a: {}, b: {}}\n`);
    byHand.id = 5001;
    const next = `${capped}networks: {n: {cidr: 10.0.0.0/24}}\n`;

    const report = await played.apply(next, { unattended: true });

    expect(report.blocked).toMatchObject([{ key: 'ips.b', verb: 'delete', code: 'not_shown' }]);
    expect(played.writes().filter(({ method }) => method === 'DELETE')).toEqual([]);
    expect((await played.apply(next, { unattended: true })).outcome).toBe('converged');
    expect(played.project.ips).toEqual([]);
  });
});
