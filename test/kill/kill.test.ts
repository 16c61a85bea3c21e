import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { Mutation } from '../../src/emulator/mutations.ts';
import type { World } from '../../src/emulator/world.ts';
import { chance } from '../../src/simulation/chance.ts';
import { ended, folderWith, serve, start } from '../cli/run.ts';
import { playsAll } from '../support/drawn.ts';

/** Stories run side by side; each is a project of its own. */
const stories = Number(process.env.KILL_STORIES ?? 2);
const killsAStory = 20;

const spec = `version: 1
project: {id: 4711}
settings: {exclusive: true}
networks:
  backend: {cidr: 10.20.0.0/24}
ips:
  spare: {}
isos:
  rescue: {url: "https://mirror.example.com/rescue.iso"}
servers:
  web-1:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: {new: true}
    network_interfaces: [backend]
    firewall: {enabled: true, rules: [{direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22"}]}
    backup: {max_age: 365d}
  web-2:
    server_type: plans-1
    plan_id: 51
    image: debian-13
    public_ipv4: {new: true}
    network_interfaces: [backend]
`;

/** What has to be there in the end, and no more: everything else would be bought twice. */
const wanted = { backup: 1, ip: 3, iso: 1, network: 2, network_interface: 2, server: 2 };

describe.concurrent('src/engine: the built command under repeated kills', () => {
  test.each(
    Array.from({ length: playsAll ? stories : 1 }, (_, at) => at + 1),
  )(`story %i survives ${killsAStory} kills, converges, and creates nothing twice`, async (seed) => {
    const random = chance(seed);
    const service = await serve({
      ...{ speed: 600, seed },
      faults: [
        faultRule({ method: 'POST', probability: 0.1 }, { do: 'reset', effect: 'done' }),
        faultRule({ method: 'POST', probability: 0.05 }, { do: 'reset', effect: 'none' }),
        faultRule({ method: 'PUT', probability: 0.1 }, { do: 'reset', effect: 'done' }),
      ],
    });
    const before = { ...service.emulator.world.nextId };
    try {
      const cwd = folderWith({ 'vdcsync.yaml': spec, ...service.files });
      const env = { ...service.env, LOG_LEVEL: 'error' };
      for (let kills = 0; ; ) {
        const child = start(['apply', '--yes'], { cwd, env });
        const timer =
          kills < killsAStory
            ? setTimeout(() => child.kill('SIGKILL'), 150 + random.next() * 1500)
            : undefined;
        const { code, stdout, stderr } = await ended(child);
        clearTimeout(timer);
        if (code === 0 && kills === killsAStory) break;
        if (code !== null && code !== 0)
          throw new Error(`exit ${code} after ${kills} kills:\n${stdout}${stderr}`);
        if (code === null) kills++;
        // Converged sooner than it could be killed: the rest of the kills strike a project that changes.
        else service.emulator.mutate(openedFirewall(service.emulator.world));
        if (kills === killsAStory) service.emulator.setFaults([]);
      }
      expect(counts(service.emulator.world)).toEqual(wanted);
      // Nor was anything made twice and taken away again.
      expect(service.emulator.world.nextId).toMatchObject({
        server: before.server + wanted.server,
        ip: before.ip + wanted.ip,
        iso: before.iso + wanted.iso,
        network: before.network + 1,
      });
    } finally {
      await service.close();
    }
  });
});

function openedFirewall(world: World): Mutation {
  const server = world.projects[0]?.servers[0]?.id ?? 0;
  return { do: 'set_firewall', server_id: server, policy_in: 'accept', rules: [] };
}

function counts(world: World) {
  const [project] = world.projects;
  const cards = (project?.servers ?? [])
    .flatMap((server) => server.interfaces)
    .filter((card) => !card.public);
  return {
    backup: project?.backups.length,
    ip: project?.ips.length,
    iso: project?.isos.length,
    network: project?.networks.length,
    network_interface: cards.length,
    server: project?.servers.length,
  };
}
