import { defineProject } from 'vdcsync';

const names = Array.from({ length: 40 }, (_, at) => `web-${String(at + 1).padStart(2, '0')}`);

export default defineProject({
  project: { id: 4711 },
  networks: { backend: { cidr: '10.20.0.0/24' } },
  defaults: {
    servers: { server_type: 'sliders-1', image: 'ubuntu-24.04', cores: 2, memory_mb: 4096, disk_gb: 40 },
  },
  servers: Object.fromEntries(
    names.map((name, at) => [name, { network_interfaces: ['backend'], protect: at === 0 }]),
  ),
});
