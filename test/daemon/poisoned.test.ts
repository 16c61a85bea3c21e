import { linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { folderWith } from '../cli/run.ts';
import { emulate, type RunningDaemon, startDaemon } from './support.ts';

/** A container of 300 MiB has room for it, and for more. */
const mostRssKib = 260 * 1024;

const ids = [1, 2, 3, 4, 5, 6, 7, 8, 9];

const specOf = (id: number, cidr = '10.20.0.0/24') =>
  `version: 1\nproject: { id: ${id}, token_env: TOKEN_${id} }\nnetworks: { backend: { cidr: ${cidr} } }\n`;

const poison: readonly (readonly [name: string, text: string, why: RegExp])[] = [
  [
    '130,000 network interfaces',
    `version: 1\nproject: { id: 10, token_env: TOKEN_10 }\nservers:\n  a:\n    network_interfaces: [${'a, '.repeat(130_000)}]\n`,
    /a list has at most 1000 entries/,
  ],
  [
    'a missing token file',
    'version: 1\nproject: { id: 10, token_file: tokens/nope }\nips: { web: {} }\n',
    /tokens\/nope cannot be read: the file does not exist/,
  ],
  [
    'a device as the token file',
    'version: 1\nproject: { id: 10, token_file: /dev/urandom }\nips: { web: {} }\n',
    /`token_file` may only name a file in the folder of --token-folder/,
  ],
  [
    'a link to a device in the folder for tokens',
    'version: 1\nproject: { id: 10, token_file: tokens/link }\nips: { web: {} }\n',
    /leads out of/,
  ],
  [
    '1 MiB of unknown fields',
    `version: 1\nproject: { id: 10 }\n${Array.from({ length: 70_000 }, (_, at) => `field${at}: 1`).join('\n')}\n`,
    /a map has at most 10000 entries/,
  ],
];

const peakRssKib = ({ child }: RunningDaemon) =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]);

const notifiedOf = (daemon: RunningDaemon, file: string, why: RegExp) =>
  expect
    .poll(async () => (await daemon.status()).source.broken)
    .toContainEqual(expect.objectContaining({ file, message: expect.stringMatching(why) }));

const allConverged = (daemon: RunningDaemon) =>
  daemon.until((_, { projects }) =>
    ids.every((id) =>
      projects.some((each) => each.project.id === id && each.converged && each.daemon.reconciliations > 0),
    ),
  );

const cloud = () => emulate({ projects: [...ids, 10].map((id) => ({ id, name: `project ${id}` })) });

const tokensOf = (api: RunningEmulator) =>
  Object.fromEntries([...ids, 10].map((id) => [`TOKEN_${id}`, api.emulator.tokens(id).readWrite]));

describe('src/daemon: one poisoned project next to nine healthy ones', () => {
  test('nine projects continue, also after a restart, one reports its error, and memory stays limited', async () => {
    const api = await cloud();
    const folder = folderWith({
      ...Object.fromEntries(ids.map((id) => [`projects/p${id}.yaml`, specOf(id)])),
      'tokens/one': 'x',
    });
    symlinkSync('/dev/urandom', join(folder, 'tokens/link'));
    const env = { ...tokensOf(api), VDC_TOKEN: '', VDCSYNC_TOKEN_FOLDER: 'tokens' };
    const begin = () => startDaemon(api, { folder, args: ['-f', 'projects'], env });
    let daemon = await begin();
    await allConverged(daemon);
    for (const [at, [, text, why]] of poison.entries()) {
      writeFileSync(join(folder, 'projects/a-poisoned.yaml'), text);
      await notifiedOf(daemon, 'projects/a-poisoned.yaml', why);
      writeFileSync(join(folder, 'projects/p9.yaml'), specOf(9, `10.${30 + at}.0.0/24`));
      await daemon.until(
        (_, { projects }) =>
          projects
            .find(({ project }) => project.id === 9)
            ?.operations.some(({ key }) => key === 'networks.backend') === true ||
          projects.find(({ project }) => project.id === 9)?.blocked.length === 1,
      );
      writeFileSync(join(folder, 'projects/p9.yaml'), specOf(9));
      await allConverged(daemon);
      expect(peakRssKib(daemon)).toBeLessThan(mostRssKib);
    }
    for (const [, text, why] of poison.slice(0, 2)) {
      expect(await daemon.end()).toBe(0);
      writeFileSync(join(folder, 'projects/a-poisoned.yaml'), text);
      daemon = await begin();
      await allConverged(daemon);
      await notifiedOf(daemon, 'projects/a-poisoned.yaml', why);
      expect(peakRssKib(daemon)).toBeLessThan(mostRssKib);
    }
  });

  test('with 1,500 links to one large file, nine projects are read, and few of the links are reported', async () => {
    const api = await cloud();
    const folder = folderWith(Object.fromEntries(ids.map((id) => [`projects/p${id}.yaml`, specOf(id)])));
    const large = `version: 1\nproject: { id: 10 }\nips:\n${'# padding\n'.repeat(100_000)}  web: {}\n`;
    mkdirSync(join(folder, 'other'));
    writeFileSync(join(folder, 'other/large'), large);
    for (let at = 0; at < 1_500; at += 1) {
      linkSync(join(folder, 'other/large'), join(folder, `projects/a${at}.yaml`));
    }
    const daemon = await startDaemon(api, {
      ...{ folder, args: ['-f', 'projects'] },
      env: { ...tokensOf(api), VDC_TOKEN: '' },
    });
    await allConverged(daemon);
    const { broken } = (await daemon.status()).source;
    expect(broken.length).toBeLessThan(100);
    expect(broken.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/at most 1000 files and 8 MiB, and 1492 of its largest files are left out/),
    );
    expect(peakRssKib(daemon)).toBeLessThan(mostRssKib);
    rmSync(join(folder, 'projects'), { recursive: true });
  });
});
