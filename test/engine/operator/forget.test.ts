import { describe, expect, test } from 'vitest';
import type { ConfigError } from '../../../src/core/errors.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { type Edit, stepsOf } from '../../../src/core/remedy.ts';
import { flowYaml } from '../../../src/core/text.ts';
import { applied } from '../../support/rig.ts';

const web =
  '{server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, network_interfaces: [net]}';
const all: Readonly<Record<string, string>> = {
  'networks.net': '{cidr: 10.1.0.0/24}',
  'ips.spare': '{}',
  'isos.rescue': '{url: "https://mirror.example.com/rescue.iso"}',
  'servers.web': web,
};
interface File {
  readonly settings: Readonly<Record<string, unknown>>;
  readonly entries: Readonly<Record<string, string>>;
}
const before: File = { settings: { prune: true, max_deletions: 10 }, entries: all };

function written({ settings, entries }: File): string {
  const kinds = Map.groupBy(Object.entries(entries), ([key]) => key.split('.')[0]);
  const lines = [...kinds].map(([kind, of]) => {
    const each = of.map(([key, entry]) => `${key.split('.')[1]}: ${entry}`);
    return `${kind}: {${each.join(', ')}}\n`;
  });
  return `settings: ${flowYaml(settings)}\n${lines.join('')}`;
}

/** The spec after an edit that a remedy asks for. */
function edited(file: File, { path, set = {}, entry }: Edit): File {
  if (path === 'settings') return { ...file, settings: { ...file.settings, ...set } };
  const { [path]: _old, ...others } = file.entries;
  return { ...file, entries: entry === 'remove' ? others : { ...others, [path]: flowYaml(set) } };
}

describe('src/engine/operator/ignore.ts: a key of the spec is not forgotten', () => {
  const cases = ['ips.spare', 'isos.rescue', 'servers.web'].flatMap((key) =>
    [0, 1].map((way) => [key, way] as const),
  );
  test.each(cases)('%s is released by remedy %i, and no resource is deleted', async (name, way) => {
    const key = name as ResourceKey;
    const played = await applied(written(before));

    const refusal: ConfigError = await played.forget(written(before), key).then(
      () => undefined,
      (error) => error,
    );
    const remedy = refusal.remedies?.[way];
    let file = before;
    for (const step of stepsOf(remedy === undefined ? [] : [remedy])) {
      if (step.type === 'edit') file = edited(file, step);
      else if (step.type === 'run' && step.command === 'forget') await played.forget(written(file), key);
      else await played.apply(written(file));
    }

    expect(written(file)).not.toBe(written(before));
    expect((await played.apply(written(file))).outcome).toBe('converged');
    const keys = (await played.store.bindings()).map((binding) => binding.key as string);
    expect(keys.filter((each) => each === name || each.startsWith(`${name}.`))).toEqual([]);
    expect(played.writes().filter(({ method }) => method === 'DELETE')).toEqual([]);
  });
});

describe('src/reconcilers/verdicts.ts: an unmanaged entry with the id of another resource', () => {
  const key = 'servers.web' as ResourceKey;

  test('the id of the bound server resolves the conflict, and no server is deleted', async () => {
    const played = await applied(written(before));
    played.emulator.mutate({ do: 'add_server', name: 'other', public: true });
    const file = edited(before, { type: 'edit', path: key, set: { managed: false, id: 2002 } });

    const { blocked } = await played.plan(written(file));

    expect(blocked).toMatchObject([{ key, code: 'id_conflict' }]);
    const first = blocked[0]?.remedies[0];
    expect(first).toMatchObject({ path: key, set: { id: 2001 } });
    const set = { managed: false, ...(first?.type === 'edit' ? first.set : {}) };
    const mended = edited(file, { type: 'edit', path: key, set });
    expect((await played.apply(written(mended))).outcome).toBe('converged');
    expect(played.writes().filter(({ method }) => method === 'DELETE')).toEqual([]);
  });

  test.each([
    0, 1,
  ])('remedy %i of the message resolves the conflict, and no server is deleted', async (way) => {
    // The entry of the other server has left the spec too.
    const played = await applied(written({ ...before, entries: { ...all, 'servers.www': web } }));
    const entry = flowYaml({ managed: false, id: 2002 });
    let file: File = { ...before, entries: { ...all, [key]: entry } };

    const { blocked } = await played.plan(written(file));

    expect(blocked).toMatchObject([{ key, code: 'id_conflict' }]);
    const [first, second] = blocked[0]?.remedies ?? [];
    if (way === 0) expect(first).toMatchObject({ path: key, set: { id: 2001 } });
    for (const step of stepsOf(way === 0 || second === undefined ? [] : [second])) {
      if (step.type === 'run') await played.forget(written(file), key);
      else if (step.type === 'edit' && step.entry === 'restore')
        file = { ...file, entries: { ...file.entries, [key]: entry } };
      else if (step.type === 'edit') file = edited(file, step);
      await played.apply(written(file));
    }
    expect((await played.apply(written(file))).outcome).toBe(way === 0 ? 'blocked' : 'converged');
    expect(played.writes().filter(({ method }) => method === 'DELETE')).toEqual([]);
  });
});
