import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadFaults } from '../../src/emulator/faults-file.ts';
import { startEmulator } from '../../src/emulator/http-server.ts';
import { allRoutes } from '../../src/emulator/pipeline.ts';
import { DEFAULT_PROFILE, KNOWN_OPERATIONS, loadProfile } from '../../src/emulator/profile.ts';

describe('docs/emulator.md', () => {
  const text = readFileSync(new URL('../../docs/emulator.md', import.meta.url), 'utf8');

  test('lists every operation', () => {
    const [, list = ''] = /Operations: ([\s\S]*?), and those a\s+profile adds/.exec(text) ?? [];
    const named = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    expect(named.sort()).toEqual(
      allRoutes(DEFAULT_PROFILE)
        .map(({ name }) => name)
        .sort(),
    );
  });

  test('shows requests that the emulator answers as written', async () => {
    const { baseUrl, emulator, projects, close } = await startEmulator({ seed: '1', speed: 60 });
    const [, section = ''] = /## Use it with curl\n([\s\S]*?)\n## /.exec(text) ?? [];
    const calls = [
      ...section.matchAll(/^curl .*\$EMULATOR\/v1\/\S+$|^curl [^$]*"\$AUTH"[^$]*\$EMULATOR\/v1\/\S+$/gm),
    ];
    expect(calls).toHaveLength(section.match(/^curl .*"\$AUTH"/gm)?.length ?? 0);
    for (const [call] of calls) {
      const method = /-X (\w+)/.exec(call)?.[1] ?? 'GET';
      const body = /--json '([^']*)'/.exec(call)?.[1];
      const answer = await fetch(baseUrl + (/\/v1(\/\S+)$/.exec(call)?.[1] ?? ''), {
        method,
        headers: {
          authorization: `Bearer ${projects[0]?.tokens.readWrite}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body }),
      });
      expect([call, answer.status < 300 ? 'good' : await answer.text()]).toEqual([call, 'good']);
      emulator.mutate({ do: 'forward_clock', ms: 120_000 });
    }
    await close();
  });

  test('shows a valid faults file', () => {
    const [, yaml = ''] = /<<'YAML'\n([\s\S]*?)\nYAML/.exec(text) ?? [];
    expect(loadFaults(yaml).faults).toHaveLength(3);
  });

  test('names a profile with the paths that the emulator serves by default', () => {
    const profile = readFileSync(new URL('../../examples/profile.yaml', import.meta.url), 'utf8');
    expect(loadProfile(profile).operations).toEqual(KNOWN_OPERATIONS);
  });
});
