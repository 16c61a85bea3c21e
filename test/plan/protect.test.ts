import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Plan } from '../../src/core/plan.ts';
import { commandLine, stepsOf } from '../../src/core/remedy.ts';
import { projectOf, sliders } from '../reconcilers/support.ts';
import { type Rig, rig } from '../support/rig.ts';

const settings = 'settings: {prune: true, max_deletions: 20, exclusive: true}\n';
const others = `networks:
  backend: {cidr: 10.20.0.0/24}
  other: {cidr: 10.22.0.0/24}
ips:
  web: {}
  spare: {}
`;
/** Entries that may be protected, by their keys. */
const entries: Readonly<Record<string, readonly [collection: string, entry: string]>> = {
  'servers.db': [
    'servers',
    `  db: {${sliders}, public_ipv4: {new: true}, network_interfaces: [backend], firewall: {enabled: true, policy_in: drop, rules: []}, PROTECT}\n`,
  ],
  'isos.rescue': ['isos', '  rescue: {url: "https://mirror.example.com/rescue.iso", PROTECT}\n'],
};

function specOf(key: string, protect: boolean): string {
  const [collection, entry] = entries[key] as readonly [string, string];
  return `${settings}${others}${collection}:\n${entry.replace('PROTECT', `protect: ${protect}`)}`;
}

/** The commands of the way out, in their order. */
function commandsOf({ blocked }: Plan, key: string): readonly string[] {
  const permit = blocked.find((each) => each.key === key)?.remedies.at(-1);
  const steps = permit === undefined ? [] : stepsOf([permit]);
  return steps.flatMap((step) => (step.type === 'run' ? [commandLine(step)] : []));
}

async function run(played: Rig, command: string, spec: string) {
  const [, verb, target] = /^vdcsync (apply|destroy)(?: --target (\S+))?$/.exec(command) ?? [];
  expect(verb).toBeDefined();
  const selection =
    target === undefined ? {} : { selection: { targets: [target as ResourceKey], excludes: [] } };
  return played.apply(spec, { destroy: verb === 'destroy', ...selection });
}

const creations = (played: Rig, from: number) =>
  played
    .writes()
    .slice(from)
    .filter(({ method }) => method !== 'DELETE');

describe('src/plan/guards.ts: the way to delete what is protected', () => {
  test.each(Object.keys(entries))('%s after a destroy: deletes it and creates nothing', async (key) => {
    const played = rig();
    await played.apply(specOf(key, true));
    const { plan } = await played.apply(specOf(key, true), { destroy: true });
    const from = played.writes().length;

    const commands = commandsOf(plan, key);
    expect(commands).toEqual([`vdcsync apply --target ${key}`, 'vdcsync destroy']);
    for (const command of commands) await run(played, command, specOf(key, false));

    expect(creations(played, from)).toEqual([]);
    expect(projectOf(played.emulator)).toMatchObject({ servers: [], ips: [], isos: [] });
    expect(await played.store.bindings()).toEqual([]);
  });

  test('an apply with --target records the end of the protection of its targets alone', async () => {
    const played = rig();
    const two = (protect: boolean) =>
      `networks:\n  a: {cidr: 10.1.0.0/24, protect: ${protect}}\n  b: {cidr: 10.2.0.0/24, protect: ${protect}}\n`;
    await played.apply(two(true));

    await run(played, 'vdcsync apply --target networks.a', two(false));

    const kept = (await played.store.bindings()).filter(({ protect }) => protect);
    expect(kept.map(({ key }) => key)).toEqual(['networks.b']);
  });
});
