import { describe, expect, test } from 'vitest';
import { type Rig, rig } from '../../support/rig.ts';

const size = (cores: number) =>
  `server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, replace: allowed`;
const file = (name: string, cores: number, more = '') => `servers: {${name}: {${size(cores)}${more}}}\n`;
const servers = ({ emulator }: Rig) => emulator.world.projects[0]?.servers.map(({ id }) => id);

/** The file is applied by a new state. */
async function lost(played: Rig, spec: string): Promise<string> {
  played.loseState();
  return (await played.apply(spec)).outcome;
}

describe('src/engine/claims/scope.ts: a server without an address, whose state is lost after a replacement', () => {
  test.each<[string, readonly string[]]>([
    ['under a new name', [file('a', 1), file('b', 1, ', moved: {from: servers.a}'), file('b', 1)]],
    ['taken over by its id', [file('a', 1), file('b', 1, ', id: 2001'), file('b', 1)]],
    ['with a rename in one edit', [file('a', 1)]],
    ['under its own name', [file('b', 1)]],
  ])('%s, is found', async (name, before) => {
    const played = rig();
    for (const each of before) await played.apply(each);
    const last = file('b', 2, name.endsWith('one edit') ? ', name: bb, moved: {from: servers.a}' : '');
    await played.apply(last);
    expect(servers(played)).toEqual([2002]);

    expect(await lost(played, last)).toBe('converged');
    expect(servers(played)).toEqual([2002]);
  });
});
