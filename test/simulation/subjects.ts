import type { SpecModel } from '../../src/simulation/story.ts';

const empty: SpecModel = {
  settings: { prune: true, max_deletions: 10, exclusive: true },
  networks: {},
  ips: {},
  isos: {},
  servers: {},
};
const server = { server_type: 'sliders-1', cores: 2, memory_mb: 4096, disk_gb: 40, image: 'ubuntu-24.04' };
const firewall = {
  enabled: true,
  policy_in: 'drop',
  rules: [{ direction: 'in', action: 'accept', enabled: true, protocol: 'tcp', destination_port: '22' }],
};

/** The smallest files in which each operation is needed once; the second version takes all away again. */
export const subjects: Readonly<Record<string, readonly SpecModel[]>> = {
  ip: [{ ...empty, ips: { web: {} } }, empty],
  many: [
    {
      ...empty,
      settings: { ...empty.settings, max_deletions: 100 },
      ips: Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`ip-${at}`, {}])),
    },
  ],
  network: [{ ...empty, networks: { backend: { cidr: '10.20.0.0/24' } } }, empty],
  iso: [{ ...empty, isos: { rescue: { url: 'https://mirror.example.com/a.iso' } } }, empty],
  server: [{ ...empty, servers: { web: { ...server, public_ipv4: { new: true } } } }, empty],
  'bare server': [{ ...empty, servers: { web: server } }, empty],
  parts: [
    {
      ...empty,
      networks: { backend: { cidr: '10.20.0.0/24' } },
      servers: {
        web: {
          ...server,
          public_ipv4: { new: true },
          network_interfaces: ['backend'],
          firewall,
          backup: { max_age: '24h' },
        },
      },
    },
    empty,
  ],
  gpu: [
    {
      ...empty,
      servers: {
        gpu: { server_type: 'gpu-fixed', gpu_package: ['l40s-2', 'l40s-1'], image: 'ubuntu-24.04' },
      },
    },
    empty,
  ],
};

const web = { ...server, public_ipv4: { new: true } };
const withServer = (more: Readonly<Record<string, unknown>>, beside: Partial<SpecModel> = {}): SpecModel => ({
  ...empty,
  ...beside,
  servers: { web: { ...web, ...more } },
});
const isos = { rescue: { url: 'https://mirror.example.com/a.iso' } };
const networks = { a: { cidr: '10.20.0.0/24' }, b: { cidr: '10.21.0.0/24' } };
const policy = (hour: number) => ({ enabled: true, days: ['mon'], hour, minute: 0, keep: 4 });
const rotating = withServer({ backup: { max_age: '24h', keep: 1 } });

/** The same for the fields that only a profile enables. */
export const profiledSubjects: Readonly<Record<string, readonly SpecModel[]>> = {
  drive: [withServer({ iso: 'rescue' }, { isos }), withServer({ iso: null }, { isos }), empty],
  backups: [rotating, rotating, rotating, empty],
  image: [withServer({}, { server_images: { golden: { server: 'web' } } }), empty],
  cards: [
    withServer({ network_interfaces: ['a', 'b'] }, { networks }),
    withServer({ network_interfaces: ['a'] }, { networks }),
    empty,
  ],
  policy: [withServer({ backup_policy: policy(3) }), withServer({ backup_policy: policy(5) }), empty],
  sizes: [withServer({}), withServer({ cores: 4 }), empty],
};
