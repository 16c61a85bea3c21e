import { expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { load, rig } from '../../support/rig.ts';

const web =
  '{server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, network_interfaces: [net]}';
const entries: Readonly<Record<string, string>> = {
  'networks.net': '{cidr: 10.1.0.0/24}',
  'ips.spare': '{}',
  'isos.rescue': '{url: "https://mirror.example.com/rescue.iso"}',
  'servers.web': web,
};
const written = (all: Readonly<Record<string, string>>) =>
  `settings: {prune: true, max_deletions: 10}\n${Object.entries(all)
    .map(([key, entry]) => `${key.replace('.', ': {')}: ${entry}}\n`)
    .join('')}`;

test.each([
  'ips.spare',
  'isos.rescue',
  'servers.web',
])('%s is released as the refusal of forget says, and nothing goes', async (name) => {
  const played = rig();
  const key = name as ResourceKey;
  await played.apply(written(entries));

  const refusal = await played.clock
    .run(played.engine.forget(load(written(entries)), key))
    .then(() => '', String);
  const [, entry = ''] = /Write `(\{.*?\})` as its entry/.exec(refusal) ?? [];
  const next = { ...entries, [name]: entry };
  expect((await played.apply(written(next))).outcome).toBe('converged');

  expect(refusal).toContain('an apply in between would delete it');
  const keys = (await played.store.bindings()).map((binding) => binding.key as string);
  expect(keys.filter((each) => each === name || each.startsWith(`${name}.`))).toEqual([]);
  const { [name]: _gone, ...rest } = next;
  expect((await played.apply(written(rest))).outcome).toBe('converged');
  expect(played.writes().filter(({ method }) => method === 'DELETE')).toEqual([]);
});
